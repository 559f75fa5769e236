#include "sim/engine/critical_path.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "base/error.hpp"
#include "sim/engine/flow_limits.hpp"

namespace simsync {
namespace {

/// Cuts spans into pieces.
class Cutter {
public:
  Cutter(const Plan& plan, const Cluster& cluster, const Prediction& prediction)
      : plan_(plan), cluster_(cluster), prediction_(prediction), limits_(prediction) {}

  /// In order of time, without gaps from the span's start to its end.
  std::vector<PathPiece> pieces(const Span& span) {
    const Op& op = plan_.ops[static_cast<std::size_t>(span.op)];
    out_.clear();
    title_ = title_of(plan_, op);
    switch (op.kind) {
      case OpKind::Compute:
        cut_compute(op, span);
        break;
      case OpKind::HostWork:
        cut_host(op, span);
        break;
      case OpKind::Transfer:
        cut_transfer(span);
        break;
      case OpKind::Collective:
        cut_collective(op, span);
        break;
    }
    return std::move(out_);
  }

private:
  void add(double begin, double end, const std::string& resource, const std::string& where, Seconds shared = {}) {
    if (end > begin) out_.push_back({Seconds{begin}, Seconds{end - begin}, shared, resource, where, title_});
  }

  void cut_compute(const Op& op, const Span& span) {
    const Place place = prediction_.ranks[static_cast<std::size_t>(span.cell)];
    const double slowdown = cluster_.group_of(place.node).compute_slowdown;
    double at = span.start.value();
    const double end = span.end.value();
    for (const ComputePart& part : op.parts) {
      const double next = std::min(end, at + part.duration.value() * slowdown);
      title_ = title_of(plan_, part);
      add(at, next, std::string("compute ") + name_of(part.phase), name_of(place));
      at = next;
    }
    title_ = title_of(plan_, op);
    const bool rounding = end - at <= 1e-9 * (end - span.start.value());
    if (rounding && !out_.empty()) {
      out_.back().length = Seconds{end} - out_.back().begin;
    } else {
      add(at, end, op.parts.empty() ? "compute" : "compute slowed by collectives", name_of(place));
    }
  }

  void cut_host(const Op& op, const Span& span) {
    const bool timer = op.reason.phase == Phase::Start;
    const bool server = op.from.kind == End::Kind::Fixed;
    const Place place =
        server ? op.from.place : Place{prediction_.nodes[static_cast<std::size_t>(node_cell(op, span.cell))], -1};
    const char* resource = "host CPU";
    if (server) resource = place.gpu < 0 ? "server CPU" : "server GPU";
    add(span.start.value(), span.end.value(), timer ? "wait of the framework" : resource, name_of(place));
  }

  /// Index into Prediction::nodes.
  int node_cell(const Op& op, int cell) const {
    if (op.scope == Scope::Node) return cell;
    if (op.scope == Scope::Job) return 0;
    const int node = prediction_.ranks[static_cast<std::size_t>(cell)].node;
    return static_cast<int>(std::find(prediction_.nodes.begin(), prediction_.nodes.end(), node) -
                            prediction_.nodes.begin());
  }

  void cut_transfer(const Span& span) {
    double at = span.start.value();
    for (const FlowSpan* flow : limits_.flows_of(span)) {
      add(at, flow->start.value(), kLatency, {});
      add_flow(*flow, flow->start.value(), flow->end.value());
      at = flow->end.value();
    }
    add(at, span.end.value(), kLatency, {});
  }

  /// [begin, end] by what limited `flow`: the share of its bytes that stands for fixed costs, then the rest.
  void add_flow(const FlowSpan& flow, double begin, double end) {
    const detail::FlowLimit limit = limits_.limit_of(flow);
    const double fixed = flow.bytes > 0.0 ? flow.message_bytes / flow.bytes * (end - begin) : 0.0;
    const double length = (flow.end - flow.start).value();
    const double share = length > 0.0 ? (end - begin - fixed) / length : 0.0;
    add(begin, begin + fixed, kLatency, limit.where);
    add(begin + fixed, end, limit.resource, limit.where, share * limit.shared);
  }

  /// One hop's flows together.
  struct HopTime {
    double begin = std::numeric_limits<double>::infinity();
    double end = 0.0;
    double busy = 0.0;
    const FlowSpan* longest = nullptr;
  };

  /// A pipeline of a collective, with its busiest hop.
  struct Stage {
    double end = 0.0;
    HopTime hop;
  };

  std::vector<Stage> stages_of(const Span& span) const {
    std::map<int, std::map<int, HopTime>> hops;  // pipeline -> hop
    for (const FlowSpan* flow : limits_.flows_of(span)) {
      HopTime& hop = hops[flow->pipeline][flow->hop];
      const double length = (flow->end - flow->start).value();
      hop.begin = std::min(hop.begin, flow->start.value());
      hop.busy += length;
      hop.end = std::max(hop.end, flow->end.value());
      if (hop.longest == nullptr || length > (hop.longest->end - hop.longest->start).value()) hop.longest = flow;
    }
    std::vector<Stage> stages;
    for (const auto& [pipeline, members] : hops) {
      Stage stage;
      for (const auto& [id, hop] : members) {
        stage.end = std::max(stage.end, hop.end);
        if (stage.hop.longest == nullptr || hop.busy > stage.hop.busy) stage.hop = hop;
      }
      stages.push_back(stage);
    }
    return stages;
  }

  void cut_collective(const Op& op, const Span& span) {
    // Backwards: the stage that ended last, then the one that ended last before that began, ...
    std::vector<Stage> stages = stages_of(span);
    std::stable_sort(stages.begin(), stages.end(), [](const Stage& a, const Stage& b) { return a.end > b.end; });
    std::vector<Stage> chain;
    for (const Stage& stage : stages)
      if (chain.empty() || stage.end <= chain.back().hop.begin) chain.push_back(stage);
    const double opened = std::min(span.end.value(), (span.start + op.duration).value());
    add(span.start.value(), opened, kLatency, "launch");
    double at = opened;
    for (auto stage = chain.rbegin(); stage != chain.rend(); ++stage) {
      const double begin = std::max(at, stage->end - stage->hop.busy);
      add(at, begin, kLatency, "rounds");
      add_flow(*stage->hop.longest, begin, stage->end);
      at = stage->end;
    }
    add(at, span.end.value(), kLatency, "rounds");
  }

  const Plan& plan_;
  const Cluster& cluster_;
  const Prediction& prediction_;
  detail::FlowLimits limits_;
  std::vector<PathPiece> out_;
  std::string title_;
};

/// Cuts off what lies before `from` and notes what was spent behind others since `queued`.
bool clip(PathPiece& piece, double from, double queued) {
  const double end = (piece.begin + piece.length).value();
  if (end <= from) return false;
  const double begin = std::max(from, piece.begin.value());
  piece.shared *= (end - begin) / piece.length.value();
  piece.begin = Seconds{begin};
  piece.length = Seconds{end - begin};
  piece.shared = std::max(piece.shared, Seconds{std::min(end - begin, end - queued)});
  return true;
}

}  // namespace

std::vector<std::vector<PathPiece>> pieces_of(const Plan& plan, const Cluster& cluster, const Prediction& prediction,
                                              const std::vector<std::size_t>& spans) {
  Cutter cutter(plan, cluster, prediction);
  std::vector<std::vector<PathPiece>> out;
  for (const std::size_t span : spans) out.push_back(cutter.pieces(prediction.spans.at(span)));
  return out;
}

std::vector<PathPiece> critical_path(const Plan& plan, const Cluster& cluster, const Prediction& prediction,
                                     int iteration) {
  const auto& spans = prediction.spans;
  if (iteration < 0) iteration = static_cast<int>(prediction.iteration_end.size()) - 1;
  const double from =
      iteration > 0 ? prediction.iteration_end.at(static_cast<std::size_t>(iteration) - 1).value() : 0.0;
  auto at = static_cast<std::int32_t>(spans.size()) - 1;  // spans are in order of completion
  while (at >= 0 && spans[static_cast<std::size_t>(at)].iteration != iteration) --at;
  SIMSYNC_ASSERT(at >= 0);
  Cutter cutter(plan, cluster, prediction);
  std::vector<PathPiece> path;
  double queued = std::numeric_limits<double>::infinity();  // since when the op that follows was ready
  while (at >= 0) {
    const Span& span = spans[static_cast<std::size_t>(at)];
    auto pieces = cutter.pieces(span);
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece)
      if (clip(*piece, from, queued)) path.push_back(std::move(*piece));
    if (span.start.value() <= from) break;
    // A device that works off its own queue is not shared with anyone.
    const bool own = plan.ops[static_cast<std::size_t>(span.op)].kind == OpKind::Compute;
    queued = span.start > span.ready && !own ? std::min(queued, span.ready.value())
                                             : std::numeric_limits<double>::infinity();
    at = span.cause;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace simsync
