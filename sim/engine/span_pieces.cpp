#include "sim/engine/span_pieces.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace simsync::detail {
namespace {

/// One hop's flows together.
struct HopTime {
  double begin = std::numeric_limits<double>::infinity();
  double end = 0.0;
  double busy = 0.0;
  const FlowSpan* longest = nullptr;
};

}  // namespace

/// A pipeline of a collective, with its busiest hop.
struct SpanCutter::Stage {
  double end = 0.0;
  HopTime hop;
};

std::vector<PathPiece> SpanCutter::pieces(const Span& span) {
  const Op& op = op_of(span);
  out_.clear();
  title_ = title_of(plan_, op);
  switch (op.kind()) {
    case OpKind::Compute:
      cut_compute(op, span);
      break;
    case OpKind::HostWork:
      cut_host(op, span);
      break;
    case OpKind::Transfer:
      cut_transfer(op, span);
      break;
    case OpKind::Collective:
      cut_collective(op, span);
      break;
  }
  for (PathPiece& piece : out_) piece.op = span.op;
  return std::move(out_);
}

const FlowSpan* SpanCutter::waited_in_turn(const Span& span) const {
  if (op_of(span).kind() != OpKind::Transfer) return nullptr;
  const auto flows = limits_.flows_of(span);
  return flows.empty() || flows.front()->cause < 0 ? nullptr : flows.front();
}

void SpanCutter::add(double begin, double end, const std::string& resource, const std::string& where, Seconds shared) {
  if (end > begin) out_.push_back({Seconds{begin}, Seconds{end - begin}, shared, resource, where, title_, -1});
}

void SpanCutter::cut_compute(const Op& op, const Span& span) {
  const Place& place = first_place(op, span.group);
  const Compute& work = op.compute();
  const int rank = prediction_.groupings[static_cast<std::size_t>(op.grouping)].ranks(span.group).front();
  const Seconds drawn = compute_time(plan_, op, rank, span.iteration);
  const double slowdown =
      cluster_.group_of(place.node).compute_slowdown * (work.duration.value() > 0.0 ? drawn / work.duration : 1.0);
  double at = span.start.value();
  const double end = span.end.value();
  for (const ComputePart& part : work.parts) {
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
    add(at, end, work.parts.empty() ? "compute" : kSlowedCompute, name_of(place));
  }
}

void SpanCutter::cut_host(const Op& op, const Span& span) {
  const HostWork& work = op.host();
  const bool timer = work.action == HostAction::Wait;
  const bool dispatch = work.action == HostAction::Dispatch;
  const bool server = work.at.is_server();
  const Place place = work.at.is_fixed() ? work.at.place : Place{first_place(op, span.group).node, -1};
  const char* resource = "host CPU";
  if (server) resource = dispatch ? kServerDispatch : place.gpu < 0 ? "server CPU" : "server GPU";
  add(span.ready.value(), span.start.value(), resource, name_of(place), span.start - span.ready);
  add(span.start.value(), span.end.value(), timer ? kFrameworkWait : resource, name_of(place));
}

const Place& SpanCutter::first_place(const Op& op, int group) const {
  const int rank = prediction_.groupings[static_cast<std::size_t>(op.grouping)].ranks(group).front();
  return prediction_.ranks[static_cast<std::size_t>(rank)];
}

/// The first part of a set-up; returns its end.
double SpanCutter::cut_packing(Seconds packing, const Span& span) {
  const double packed = std::min(span.end.value(), (span.start + packing).value());
  add(span.start.value(), packed, kPacking, {});
  return packed;
}

void SpanCutter::cut_transfer(const Op& op, const Span& span) {
  const Transfer& moved = op.transfer();
  double at = cut_packing(moved.packing, span);
  const auto flows = limits_.flows_of(span);
  if (moved.asks_host()) {
    const Place server = moved.from.place;
    const double begin = (flows.empty() ? span.end : flows.front()->ready).value();
    const double asked = std::max(at, begin - cluster_.group_of(server.node).cpu.dispatch_latency.value());
    add(at, asked, kLatency, {});
    add(asked, begin, kServerDispatch, name_of(server));
    at = begin;
  }
  for (const FlowSpan* flow : flows) {
    add(at, flow->ready.value(), kLatency, {});
    add(flow->ready.value(), flow->start.value(), kTurn, {}, flow->start - flow->ready);
    add_flow(*flow, flow->start.value(), flow->end.value());
    at = flow->end.value();
  }
  add(at, span.end.value(), kLatency, {});
}

/// [begin, end] by what limited `flow`: the share of its bytes that stands for fixed costs, then the rest.
void SpanCutter::add_flow(const FlowSpan& flow, double begin, double end) {
  const FlowLimit limit = limits_.limit_of(flow);
  const double fixed = flow.bytes > 0.0 ? flow.message_bytes / flow.bytes * (end - begin) : 0.0;
  const double length = (flow.end - flow.start).value();
  const double share = length > 0.0 ? (end - begin - fixed) / length : 0.0;
  add(begin, begin + fixed, kLatency, limit.where);
  add(begin + fixed, end, limit.resource, limit.where, share * limit.shared);
}

std::vector<SpanCutter::Stage> SpanCutter::stages_of(const Span& span) const {
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

void SpanCutter::cut_collective(const Op& op, const Span& span) {
  // Backwards: the stage that ended last, then the one that ended last before that began, ...
  std::vector<Stage> stages = stages_of(span);
  std::stable_sort(stages.begin(), stages.end(), [](const Stage& a, const Stage& b) { return a.end > b.end; });
  std::vector<Stage> chain;
  for (const Stage& stage : stages)
    if (chain.empty() || stage.end <= chain.back().hop.begin) chain.push_back(stage);
  const double opened = std::min(span.end.value(), (span.start + op.collective().setup).value());
  add(cut_packing(op.collective().packing, span), opened, kLatency, "launch");
  double at = opened;
  for (auto stage = chain.rbegin(); stage != chain.rend(); ++stage) {
    const double begin = std::max(at, stage->end - stage->hop.busy);
    add(at, begin, kLatency, "rounds");
    add_flow(*stage->hop.longest, begin, stage->end);
    at = stage->end;
  }
  add(at, span.end.value(), kLatency, "rounds");
}

}  // namespace simsync::detail
