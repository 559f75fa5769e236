#include "sim/engine/step_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "sim/engine/explain.hpp"
#include "sim/engine/explain_pace.hpp"
#include "sim/engine/flow_limits.hpp"
#include "strategies/names.hpp"

namespace simsync {
namespace {

constexpr const char* kSlowestRank = "waiting for the slowest rank";

std::vector<double> slowdowns_of(const Problem& problem) {
  std::vector<double> out;
  for (const Place& rank : problem.plan.ranks) out.push_back(problem.cluster.group_of(rank.node).compute_slowdown);
  return out;
}

/// The lower one of two, so that a slow half is told.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The number behind `node`; nothing for what belongs to no node.
std::optional<int> node_of(const std::string& where) {
  constexpr std::size_t kDigits = 4;
  if (!where.starts_with("node") || where.size() <= kDigits || std::isdigit(where[kDigits]) == 0) return std::nullopt;
  return std::atoi(where.c_str() + kDigits);
}

/// Sorts the pieces of one path into parts.
class PartSorter {
public:
  explicit PartSorter(const Problem& problem)
      : problem_(problem),
        median_(median(slowdowns_of(problem))),
        servers_(problem.plan.servers.size() < problem.plan.nodes.size() ? servers_of(problem) : std::set<int>{}) {}

  void add(const PathPiece& piece) {
    if (piece.resource.starts_with("compute")) return add_compute(piece);
    if (piece.resource == kLatency) return add(PartKind::Fixed, kLatency, piece.length);
    if (piece.resource == kPacking) return add(PartKind::Fixed, "packing of gradients", piece.length);
    if (piece.resource == kFrameworkWait) return add(PartKind::Fixed, piece.resource, piece.length);
    if (piece.resource == kServerDispatch) return add(PartKind::Host, "server CPU", piece.length);
    if (piece.resource.starts_with("server") || piece.resource.starts_with("host"))
      return add(PartKind::Host, piece.resource, piece.length);
    add(PartKind::Communication, words_of_link(piece), piece.length, class_of(piece.where));
  }

  /// Compute that is longer than the mean is a wait for who drew it.
  void tell_draws(Seconds mean) {
    const auto compute = parts_.find({PartKind::Compute, "compute"});
    if (compute == parts_.end() || compute->second.time <= mean) return;
    add(PartKind::Waiting, kSlowestRank, compute->second.time - mean);
    compute->second.time = mean;
  }

  [[nodiscard]] std::vector<StepPart> parts() const {
    std::vector<StepPart> out;
    for (const auto& entry : parts_) out.push_back(entry.second);
    std::stable_sort(out.begin(), out.end(), [](const StepPart& a, const StepPart& b) { return a.time > b.time; });
    return out;
  }

private:
  static std::set<int> servers_of(const Problem& problem) {
    std::set<int> out;
    for (const Place& server : problem.plan.servers) out.insert(server.node);
    return out;
  }

  void add(PartKind kind, const std::string& name, Seconds time, const std::string& limit = {}) {
    if (time <= Seconds{0.0}) return;
    const StepPart fresh{.kind = kind, .name = name, .limit = limit.empty() ? name : limit, .time = {}};
    parts_.try_emplace({kind, name}, fresh).first->second.time += time;
  }

  void add_compute(const PathPiece& piece) {
    const bool slowed = piece.resource == kSlowedCompute;
    if (slowed) return add(PartKind::Compute, piece.resource, piece.length);
    const auto node = node_of(piece.where);
    const double slowdown = node ? problem_.cluster.group_of(*node).compute_slowdown : median_;
    const Seconds waited = std::max(0.0, 1.0 - median_ / slowdown) * piece.length;
    add(PartKind::Waiting, kSlowestRank, waited);
    add(PartKind::Compute, "compute", piece.length - waited);
  }

  /// `ethernet`, as the cluster calls the link.
  [[nodiscard]] std::string class_of(const std::string& where) const {
    const auto node = node_of(where);
    std::string role = detail::role_of(where);
    if (role == "up" || role == "down") return "leaf uplinks";
    if (!node) return role;
    const NodeGroup& group = problem_.cluster.group_of(*node);
    const NodeFabric& fabric = group.fabric;
    if (role.starts_with("pcie")) return fabric.pcie_link;
    if (role.starts_with("port")) return fabric.gpu_link;
    if (role.starts_with("uplink")) return fabric.switch_link.empty() ? fabric.pcie_link : fabric.switch_link;
    if (role.starts_with("link")) return fabric.socket_link;
    if (role.starts_with("memory")) return fabric.memory_link;
    return group.nic_link;
  }

  [[nodiscard]] std::string words_of_link(const PathPiece& piece) const {
    const bool capped = piece.resource.starts_with("stream cap");
    std::string link = (capped ? "stream cap on " : "") + class_of(piece.where);
    if (piece.op < 0) return link;
    const Op& op = problem_.plan.ops[static_cast<std::size_t>(piece.op)];
    if (const auto* all = std::get_if<Collective>(&op.body))
      return std::string(name_of(all->algorithm)) + (capped ? ", " : " on ") + link;
    const auto node = node_of(piece.where);
    const bool nic = detail::role_of(piece.where).starts_with("nic");
    return nic && node && servers_.contains(*node) ? link + " of the servers" : link;
  }

  const Problem& problem_;
  double median_;
  std::set<int> servers_;                                       ///< nodes that host them, unless every node does
  std::map<std::pair<PartKind, std::string>, StepPart> parts_;  ///< by kind and name
};

std::string with_share(double share, const std::string& what) {
  return fmt::format("{:.0f} % {}", 100.0 * share, what);
}

}  // namespace

const char* name_of(PartKind kind) {
  switch (kind) {
    case PartKind::Compute:
      return "compute";
    case PartKind::Waiting:
      return "waiting";
    case PartKind::Communication:
      return "communication";
    case PartKind::Host:
      return "hosts";
    case PartKind::Fixed:
      return "fixed costs";
  }
  return "?";
}

std::vector<StepPart> step_parts(const Problem& problem, const Prediction& recorded,
                                 const std::vector<PathPiece>& path) {
  PartSorter sorter(problem);
  for (const PathPiece& piece : path) sorter.add(piece);
  if (problem.plan.steps_vary()) sorter.tell_draws(recorded.compute);
  return sorter.parts();
}

std::string slow_nodes(const Problem& problem) {
  constexpr double kTold = 1.01;
  const double usual = median(slowdowns_of(problem));
  std::vector<std::string> slow;
  for (const int node : problem.plan.nodes)
    if (problem.cluster.group_of(node).compute_slowdown > kTold * usual) slow.push_back(fmt::format("node{}", node));
  return fmt::format("{}", fmt::join(slow, ", "));
}

std::string limit_phrase(const Problem& problem, const Prediction& prediction) {
  if (!prediction.recorded || prediction.spans.empty()) {
    const double compute = prediction.compute / prediction.step;
    return compute >= 0.5 ? with_share(std::min(1.0, compute), "compute") : with_share(1.0 - compute, "communication");
  }
  if (!problem.plan.in_lock_step()) {
    const PaceLimit most = pace_limit(problem, prediction);
    return with_share(most.busy, most.name);
  }
  const int iteration = typical_iteration(problem.plan, prediction);
  const auto path = critical_path(problem.plan, problem.cluster, prediction, iteration);
  const auto parts = step_parts(problem, prediction, path);
  Seconds step;
  for (const StepPart& part : parts) step += part.time;
  return parts.empty() ? std::string{} : with_share(parts.front().time / step, parts.front().name);
}

ReplayOptions recorded_for_limit(const Problem& problem) {
  constexpr std::int64_t kMost = 3'000'000;  // of some 70 bytes each
  ReplayOptions options = problem.options;
  options.record = true;
  options.recorded_steps = problem.plan.steps_vary() ? 0 : 1;
  options.most_recorded = kMost;
  return options;
}

}  // namespace simsync
