#include "sim/engine/folding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "sim/engine/alike_traffic.hpp"
#include "sim/plan/alike_nodes.hpp"
#include "sim/plan/compile.hpp"

namespace simsync::detail {
namespace {

/// Ranks of a group on each of its nodes, counted from the node's first rank.
std::vector<std::vector<int>> places_of(const Plan& plan, std::span<const int> group) {
  std::map<int, std::vector<int>> by_node;
  for (const int rank : group) {
    const int node = plan.grouping(kEachNode).group_of(rank);
    by_node[node].push_back(rank - plan.node_begin[static_cast<std::size_t>(node)]);
  }
  std::vector<std::vector<int>> out;
  for (auto& [node, places] : by_node) out.push_back(std::move(places));
  return out;
}

/// Places of a group on a node, and how many ranks it has in all.
using Part = std::pair<std::vector<int>, std::size_t>;

/// By node, in ascending order: the groups that have ranks there. A group has the same places on all of its nodes, or
/// there is none of this: what one rank of it waits for would not be what the others do.
std::optional<std::vector<std::vector<Part>>> parts_by_node(const Plan& plan, const Grouping& grouping) {
  std::vector<std::vector<Part>> out(plan.nodes.size());
  for (int group = 0; group < grouping.count(); ++group) {
    const auto ranks = grouping.ranks(group);
    const auto places = places_of(plan, ranks);
    if (std::any_of(places.begin(), places.end(), [&](const auto& of_node) { return of_node != places.front(); }))
      return std::nullopt;
    for (std::size_t i = 0; i < ranks.size(); i += places.front().size())
      out[static_cast<std::size_t>(plan.grouping(kEachNode).group_of(ranks[i]))].emplace_back(places.front(),
                                                                                              ranks.size());
  }
  for (auto& parts : out) std::sort(parts.begin(), parts.end());
  return out;
}

/// Whether every group has ranks of one node only, or of as many nodes as `other`.
bool within_nodes_or_over(const Plan& plan, const Grouping& grouping, int other) {
  for (int group = 0; group < grouping.count(); ++group) {
    const int nodes = group_shape(plan, grouping.ranks(group)).nodes();
    if (nodes != 1 && nodes != other) return false;
  }
  return true;
}

/// Whether nodes differ in their groups. Where they are not all equally fast, a group has to have as many of each
/// speed as any other.
std::string groups_differ(const Plan& plan, const Grouping& grouping, bool equally_fast) {
  const auto parts = parts_by_node(plan, grouping);
  if (!parts) return "groups have other ranks on one node than on another";
  if (std::any_of(parts->begin(), parts->end(), [&](const auto& of_node) { return of_node != parts->front(); }))
    return "nodes differ in their groups of ranks";
  if (!equally_fast && !within_nodes_or_over(plan, grouping, static_cast<int>(plan.nodes.size())))
    return "groups differ in the speeds of their ranks";
  return {};
}

bool equally_fast(const Plan& plan, const Cluster& cluster) {
  const NodeGroup& first = cluster.group_of(plan.nodes.front());
  return std::all_of(plan.nodes.begin(), plan.nodes.end(), [&](int node) {
    const NodeGroup& group = cluster.group_of(node);
    return group.compute_slowdown == first.compute_slowdown && group.device == first.device;
  });
}

/// Whether what waits in ports and send buffers, of which a flow that stands for several shows one, decides when others
/// go on.
bool keeps_queues(const Cluster& cluster, const Plan& plan) {
  const auto keeps = [](const PortService& service) {
    return service.queueing_delay.value() > 0.0 || service.passing_delay.value() > 0.0 || service.turn.count > 0;
  };
  const auto sends_ahead = [&](int node) { return cluster.group_of(node).cpu.send_ahead.value() > 0.0; };
  return std::any_of(cluster.links.begin(), cluster.links.end(),
                     [&](const auto& named) { return keeps(named.second.service); }) ||
         std::any_of(plan.nodes.begin(), plan.nodes.end(), sends_ahead) ||
         std::any_of(plan.servers.begin(), plan.servers.end(),
                     [&](const Place& server) { return sends_ahead(server.node); });
}

/// Why what one node has to do takes turns with what others do; empty when it does not. Every queue that the first node
/// has a part in serves as many instances of an op whether all nodes are looked at or this one.
std::string queues_join_nodes(const Plan& plan) {
  std::set<std::pair<GroupingId, GroupingId>> seen;
  for (const Op& op : plan.ops) {
    const auto* work = std::get_if<HostWork>(&op.body);
    if (op.queue < 0 || (work != nullptr && work->at.is_fixed())) continue;
    const GroupingId of_queue = plan.queues[static_cast<std::size_t>(op.queue)].grouping;
    if (of_queue == op.grouping || !seen.emplace(of_queue, op.grouping).second) continue;
    const Grouping& queues = plan.grouping(of_queue);
    const Grouping& groups = plan.grouping(op.grouping);
    std::map<int, std::set<int>> served;
    for (int rank = 0; rank < plan.node_begin[1]; ++rank)
      if (const int queue = queues.group_of(rank); queue >= 0) served[queue].insert(groups.group_of(rank));
    for (const auto& [queue, here] : served)
      for (const int rank : queues.ranks(queue))
        if (!here.contains(groups.group_of(rank))) return "nodes take turns in a queue that they share";
  }
  return {};
}

/// Nodes that some work or transfer of the plan is bound to. A wait alone binds none: it has a place, but occupies
/// nothing there. Beside servers it does, because they are told by a message that it is over.
std::set<int> fixed_nodes(const Plan& plan) {
  std::set<int> out;
  std::set<int> waiting;
  for (const Op& op : plan.ops) {
    if (const auto* work = std::get_if<HostWork>(&op.body); work != nullptr && work->at.is_fixed())
      (work->action == HostAction::Wait ? waiting : out).insert(work->at.place.node);
    if (const auto* moved = std::get_if<Transfer>(&op.body))
      for (const End& end : {moved->from, moved->to})
        if (end.is_fixed()) out.insert(end.place.node);
  }
  if (!out.empty()) out.merge(waiting);
  return out;
}

/// Empty when nodes without servers may stand for each other.
std::string servers_tell_apart(const Plan& plan, const Cluster& cluster) {
  if (keeps_queues(cluster, plan)) return "nodes wait for what is queued in ports or send buffers";
  std::vector<bool> in_turn;
  for (const Op& op : plan.ops) in_turn.push_back(is_served_in_turn(op));
  for (const Op& op : plan.ops) {
    if (op.random_order) return "every worker draws an order of its own";
    if (op.kind() == OpKind::Collective && crosses_nodes(plan, op.grouping))
      return "servers take part in collectives between nodes";
    if (op.kind() == OpKind::Transfer && crosses_nodes(plan, op.grouping))
      return "a transfer is that of a group over several nodes";
    const bool waits_in_turn = std::any_of(op.after.begin(), op.after.end(), [&](const After& after) {
      return in_turn[static_cast<std::size_t>(after.op)];
    });
    if (waits_in_turn && op.grouping != kWholeJob)
      return "servers answer one node after another (their cpu.per_tensor is not 0)";
  }
  return {};
}

/// Why the nodes of a plan may not stand for each other with SimGrid, whose routes take a link once. Empty when they
/// may.
std::string obstacle_to_simgrid(const Plan& plan, const Cluster& cluster, const std::set<int>& fixed) {
  if (!fixed.empty()) return "on links of parameter servers SimGrid counts a flow once, whomever it stands for";
  if (loops_cross_links_twice(plan, cluster))
    return "SimGrid counts a flow once on half-duplex links and in the host's memory, though nodes send and receive";
  return {};
}

/// Empty when folding is exact, else why it is not.
std::string obstacle(const Plan& plan, const Cluster& cluster, const std::set<int>& fixed) {
  if (plan.steps_vary()) return "every rank draws how long its steps take";
  if (have_token_buckets(cluster)) return "nodes pause at different times, which token buckets of links tell apart";
  if (!fixed.empty())
    if (std::string why = servers_tell_apart(plan, cluster); !why.empty()) return why;
  if (std::string why = queues_join_nodes(plan); !why.empty()) return why;
  if (std::string why = nodes_differ(plan, cluster); !why.empty()) return why;
  const bool alike_in_speed = equally_fast(plan, cluster);
  for (auto grouping = plan.groupings.begin() + kWholeJob + 1; grouping < plan.groupings.end(); ++grouping)
    if (std::string why = groups_differ(plan, *grouping, alike_in_speed); !why.empty()) return why;
  return traffic_differs(plan, cluster, alike_in_speed);
}

/// One node of each class.
Folding folded_by_class(const Plan& plan, const Cluster& cluster, const std::set<int>& fixed) {
  Folding folded{.fidelity = Fidelity::Folded, .nodes = {}, .stands_for = {}, .by_node = true};
  // Speed, device and, of a node that work is bound to, the node itself -> representative.
  std::map<std::tuple<double, std::string, int>, std::size_t> seen;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const int node = plan.nodes[i];
    const NodeGroup& group = cluster.group_of(node);
    const auto [known, fresh] =
        seen.try_emplace({group.compute_slowdown, group.device, fixed.contains(node) ? node : -1}, folded.nodes.size());
    if (fresh) {
      folded.nodes.push_back(static_cast<int>(i));
      folded.stands_for.push_back(0);
    }
    ++folded.stands_for[known->second];
  }
  return folded;
}

/// Whether more than each node, each rank and the whole job matters to ranks: they have groups besides, or collectives
/// leave the nodes.
bool has_groups_besides(const Plan& plan) {
  return plan.groupings.size() != kWholeJob + 1 || has_collectives_between_nodes(plan);
}

/// Ranks of the simulated nodes that stand for others, if there are any.
void fold_ranks(const Plan& plan, const Cluster& cluster, Folding& folding) {
  if (have_token_buckets(cluster) || keeps_queues(cluster, plan) || (folding.by_node && has_groups_besides(plan)))
    return;
  const RankOrbits all = find_rank_orbits(plan, cluster, folding.by_node);
  if (all.empty()) return;
  folding.fidelity = Fidelity::Folded;
  folding.orbits.orbit_of.assign(all.orbit_of.size(), -1);
  const std::set<int> simulated(folding.nodes.begin(), folding.nodes.end());
  for (const auto& orbit : all.members) {
    if (folding.by_node && !simulated.contains(plan.grouping(kEachNode).group_of(orbit.front()))) continue;
    for (const int rank : orbit)
      folding.orbits.orbit_of[static_cast<std::size_t>(rank)] = static_cast<int>(folding.orbits.members.size());
    folding.orbits.members.push_back(orbit);
  }
}

/// Whether ranks compute and the whole job does all else, in one order for all.
bool works_by_rank(const Plan& plan) {
  const auto is_of_rank_or_job = [](GroupingId grouping) { return grouping == kEachRank || grouping == kWholeJob; };
  return std::all_of(plan.ops.begin(), plan.ops.end(), [&](const Op& op) {
    const bool queue_too = op.queue < 0 || is_of_rank_or_job(plan.queues[static_cast<std::size_t>(op.queue)].grouping);
    return is_of_rank_or_job(op.grouping) && queue_too && !op.random_order;
  });
}

/// One rank of each speed and device, where ranks meet in collectives alone whose times are known; nothing, where more
/// than that tells them apart, or no two are alike.
std::optional<Folding> folded_by_rank(const Plan& plan, const Cluster& cluster) {
  if (plan.steps_vary() || !works_by_rank(plan) || !fixed_nodes(plan).empty()) return std::nullopt;
  Folding folded = folded_by_class(plan, cluster, {});
  if (folded.nodes.size() == plan.ranks.size()) return std::nullopt;
  folded.collectives_alone = true;
  folded.orbits.orbit_of.assign(plan.ranks.size(), -1);
  for (const int node : folded.nodes) {
    const auto ranks = plan.grouping(kEachNode).ranks(node);
    for (const int rank : ranks)
      folded.orbits.orbit_of[static_cast<std::size_t>(rank)] = static_cast<int>(folded.orbits.members.size());
    folded.orbits.members.emplace_back(ranks.begin(), ranks.end());
  }
  return folded;
}

}  // namespace

bool is_served_in_turn(const Op& op) {
  const auto* work = std::get_if<HostWork>(&op.body);
  return work != nullptr && work->at.is_server() && op.queue >= 0 && op.grouping != kWholeJob;
}

namespace {

/// What lets nodes or ranks stand for each other, of a plan of which none does.
std::string what_folds_it(const Plan& plan, const Cluster& cluster, ReplayOptions options) {
  const auto folds = [&] { return choose_folding(plan, cluster, options).fidelity == Fidelity::Folded; };
  options.fidelity = Fidelity::Auto;
  options.solver = Solver::Native;
  if (folds()) return "; --set solver=native folds it";
  options.record = false;
  return folds() ? "; the native solver folds it where nothing is recorded" : "";
}

}  // namespace

Folding choose_folding(const Plan& plan, const Cluster& cluster, const ReplayOptions& options) {
  const Fidelity asked = options.fidelity;
  Folding all{.fidelity = asked == Fidelity::Steps ? Fidelity::Steps : Fidelity::Fluid,
              .nodes = {},
              .stands_for = std::vector<int>(plan.nodes.size(), 1)};
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) all.nodes.push_back(static_cast<int>(i));
  if (asked == Fidelity::Steps || asked == Fidelity::Fluid) return all;
  const bool unrecorded_native = options.solver == Solver::Native && !options.record;
  all.collectives_alone = unrecorded_native && collectives_are_alone(plan, cluster);
  if (all.collectives_alone)
    if (std::optional<Folding> folded = folded_by_rank(plan, cluster)) return *std::move(folded);
  const std::set<int> fixed = fixed_nodes(plan);
  // Below three nodes there is too little to save.
  std::string why_not = plan.nodes.size() <= 2 ? "the job has no more than two" : obstacle(plan, cluster, fixed);
  if (why_not.empty() && options.solver != Solver::Native) why_not = obstacle_to_simgrid(plan, cluster, fixed);
  Folding out = why_not.empty() ? folded_by_class(plan, cluster, fixed) : all;
  out.collectives_alone = all.collectives_alone;
  if (unrecorded_native) fold_ranks(plan, cluster, out);
  if (out.fidelity != Fidelity::Folded && asked == Fidelity::Folded)
    throw PlanError(fmt::format("fidelity 'folded': nodes cannot stand for each other here: {}{}", why_not,
                                what_folds_it(plan, cluster, options)));
  return out;
}

}  // namespace simsync::detail
