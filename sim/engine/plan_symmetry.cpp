#include "sim/engine/plan_symmetry.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/engine/routes.hpp"
#include "sim/plan/collectives.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/routed_collective.hpp"

namespace simsync::detail {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

/// What tells routes of ops apart.
using RouteKind = std::tuple<GroupingId, OpKind, CollectiveKind, std::string, std::pair<End::Kind, Place>,
                             std::pair<End::Kind, Place>>;

RouteKind route_kind(const Op& op) {
  RouteKind out{op.grouping, op.kind(), {}, {}, {}, {}};
  if (op.kind() == OpKind::Collective) {
    std::get<CollectiveKind>(out) = op.collective().kind();
    std::get<std::string>(out) = op.collective().protocol;
    return out;
  }
  const auto end = [](const End& of) { return std::pair{of.kind, of.is_fixed() ? of.place : Place{}}; };
  std::get<4>(out) = end(op.transfer().from);
  std::get<5>(out) = end(op.transfer().to);
  return out;
}

/// Groups become groups.
bool keeps_groups(const Grouping& grouping, const Permutation& to) {
  for (int rank = 0; rank < static_cast<int>(to.size()); ++rank)
    if ((grouping.group_of(rank) < 0) != (grouping.group_of(to[at(rank)]) < 0)) return false;
  for (int group = 0; group < grouping.count(); ++group) {
    const auto ranks = grouping.ranks(group);
    const int image = grouping.group_of(to[at(ranks.front())]);
    if (grouping.ranks(image).size() != ranks.size()) return false;
    if (std::any_of(ranks.begin(), ranks.end(), [&](int rank) { return grouping.group_of(to[at(rank)]) != image; }))
      return false;
  }
  return true;
}

/// Every group stays where it is.
bool leaves_groups(const Grouping& grouping, const Permutation& to) {
  for (int rank = 0; rank < static_cast<int>(to.size()); ++rank)
    if (grouping.group_of(rank) != grouping.group_of(to[at(rank)])) return false;
  return true;
}

/// The group whose place a group takes.
std::span<const int> image_of(const Grouping& grouping, int group, const Permutation& to) {
  return grouping.ranks(grouping.group_of(to[at(grouping.ranks(group).front())]));
}

/// By how many places further the ranks of a group are in the one whose place it takes; -1: not all by the same number.
int rotation_of(std::span<const int> here, std::span<const int> there, const Permutation& to) {
  const auto rotation =
      static_cast<std::size_t>(std::find(there.begin(), there.end(), to[at(here.front())]) - there.begin());
  for (std::size_t i = 0; i < here.size(); ++i)
    if (to[at(here[i])] != there[(i + rotation) % there.size()]) return -1;
  return static_cast<int>(rotation);
}

}  // namespace

PlanSymmetry::PlanSymmetry(const Plan& plan, const Cluster& cluster) : plan_(plan), cluster_(cluster) {
  std::set<RouteKind> seen;
  for (const Op& op : plan.ops) {
    groupings_.insert(op.grouping);
    if (op.queue >= 0) {
      const GroupingId of_queue = plan.queues[at(op.queue)].grouping;
      groupings_.insert(of_queue);
      in_turn_.insert({of_queue, op.grouping, op.kind() == OpKind::HostWork && op.host().at.is_fixed()});
    }
    if (op.kind() == OpKind::Collective && is_rotatable(op.collective().kind())) rings_.insert(op.grouping);
    const bool crosses_links = op.kind() == OpKind::Collective || op.kind() == OpKind::Transfer;
    if (crosses_links && seen.insert(route_kind(op)).second) routed_.push_back(&op);
  }
}

bool PlanSymmetry::is_possible() {
  if (plan_.steps_vary() || plan_.progress.backups > 0) return false;
  const bool ops_allow = std::none_of(plan_.ops.begin(), plan_.ops.end(), [&](const Op& op) {
    const bool of_server = op.kind() == OpKind::Transfer && op.grouping == kEachRank &&
                           (op.transfer().from.is_fixed() || op.transfer().to.is_fixed());
    return op.random_order || of_server;
  });
  return ops_allow && std::all_of(plan_.ranks.begin(), plan_.ranks.end(),
                                  [&](const Place& rank) { return topology().links_beside_compute(rank).empty(); });
}

bool PlanSymmetry::is_kept_by(const Permutation& to) {
  const auto keeps = [&](GroupingId id) { return keeps_groups(plan_.grouping(id), to); };
  if (!keeps_devices(to) || !keeps(kEachNode) || !std::all_of(groupings_.begin(), groupings_.end(), keeps))
    return false;
  if (!plan_.servers.empty() && !leaves_groups(plan_.grouping(kEachNode), to)) return false;
  const auto keeps_op = [&](const Op* op) { return keeps_places(*op, to); };
  return keeps_turns(to) && std::all_of(routed_.begin(), routed_.end(), keeps_op) && keeps_routes(to);
}

bool PlanSymmetry::is_shown_by_first(const std::vector<int>& orbit_of,
                                     const std::vector<std::vector<int>>& orbits) const {
  const auto first_of = [&](int rank) { return orbits[at(orbit_of[at(rank)])].front(); };
  const auto is_repeated = [&](std::span<const int> ring) {
    const auto simulated = static_cast<std::size_t>(
        std::count_if(ring.begin(), ring.end(), [&](int rank) { return first_of(rank) == rank; }));
    for (std::size_t i = 0; i < ring.size(); ++i)
      if (first_of(ring[i]) != first_of(ring[(i + simulated) % ring.size()])) return false;
    return true;
  };
  for (const GroupingId id : groupings_) {
    const Grouping& grouping = plan_.grouping(id);
    for (const auto& orbit : orbits) {
      const int group = grouping.group_of(orbit.front());
      if (group < 0) continue;
      const auto ranks = grouping.ranks(group);
      if (std::any_of(ranks.begin(), ranks.end(), [&](int r) { return grouping.group_of(first_of(r)) != group; }))
        return false;
      if (rings_.contains(id) && !is_repeated(ranks)) return false;
    }
  }
  return std::all_of(in_turn_.begin(), in_turn_.end(), [&](const Turn& turn) {
    const Grouping& ops = plan_.grouping(turn.of_op);
    const Grouping& queues = plan_.grouping(turn.of_queue);
    for (int rank = 0; rank < plan_.rank_count(); ++rank) {
      const int first = first_of(rank);
      if (queues.group_of(rank) == queues.group_of(first) && ops.group_of(rank) != ops.group_of(first)) return false;
    }
    return true;
  });
}

bool PlanSymmetry::keeps_devices(const Permutation& to) const {
  for (int rank = 0; rank < plan_.rank_count(); ++rank) {
    const NodeGroup& here = cluster_.group_of(plan_.ranks[at(rank)].node);
    const NodeGroup& there = cluster_.group_of(plan_.ranks[at(to[at(rank)])].node);
    if (here.device != there.device || here.compute_slowdown != there.compute_slowdown) return false;
  }
  return true;
}

bool PlanSymmetry::keeps_turns(const Permutation& to) const {
  for (const Turn& turn : in_turn_) {
    const Grouping& ops = plan_.grouping(turn.of_op);
    const Grouping& queues = plan_.grouping(turn.of_queue);
    for (int rank = 0; rank < plan_.rank_count(); ++rank) {
      const int image = to[at(rank)];
      const bool one_queue = turn.at_fixed_place || queues.group_of(rank) == queues.group_of(image);
      if (one_queue && ops.group_of(rank) != ops.group_of(image)) return false;
    }
  }
  return true;
}

/// What can be told of an op without the network.
bool PlanSymmetry::keeps_places(const Op& op, const Permutation& to) const {
  const Grouping& grouping = plan_.grouping(op.grouping);
  if (op.kind() == OpKind::Transfer) {
    const Transfer& moved = op.transfer();
    const bool of_device = moved.from.kind == End::Kind::Device || moved.to.kind == End::Kind::Device;
    return op.grouping == kEachRank || (!of_device && leaves_groups(grouping, to));
  }
  for (int group = 0; group < grouping.count(); ++group) {
    const auto here = grouping.ranks(group);
    const auto there = image_of(grouping, group, to);
    const int rotation = rotation_of(here, there, to);
    if (rotation < 0 || (rotation > 0 && !is_rotatable(op.collective().kind()))) return false;
    if (rotation == 0 && group_shape(plan_, here).node_begin != group_shape(plan_, there).node_begin) return false;
  }
  return true;
}

Topology& PlanSymmetry::topology() {
  if (!topology_) {
    std::set<int> nodes(plan_.nodes.begin(), plan_.nodes.end());
    for (const Place& server : plan_.servers) nodes.insert(server.node);
    topology_ = std::make_unique<Topology>(cluster_, std::vector(nodes.begin(), nodes.end()), gpus_in_use(plan_.ranks));
  }
  return *topology_;
}

bool PlanSymmetry::keeps_routes(const Permutation& to) {
  LinkMap map(topology());
  return std::all_of(routed_.begin(), routed_.end(), [&](const Op* op) {
    return op->kind() == OpKind::Collective ? keeps_collective(*op, to, map) : keeps_transfer(*op, to, map);
  });
}

Path PlanSymmetry::route_of(const Transfer& moved, int rank) const {
  const Place& device = plan_.ranks[at(rank)];
  return topology_->path(Routes::place_of(moved.from, device), Routes::place_of(moved.to, device));
}

bool PlanSymmetry::keeps_transfer(const Op& op, const Permutation& to, LinkMap& map) const {
  const Grouping& grouping = plan_.grouping(op.grouping);
  for (int group = 0; group < grouping.count(); ++group) {
    const int first = grouping.ranks(group).front();
    const int image = op.grouping == kEachRank ? to[at(first)] : first;
    if (!map.carries(route_of(op.transfer(), first), route_of(op.transfer(), image))) return false;
  }
  return true;
}

bool PlanSymmetry::keeps_collective(const Op& op, const Permutation& to, LinkMap& map) const {
  const Grouping& grouping = plan_.grouping(op.grouping);
  const CollectiveKind kind = op.collective().kind();
  const CollectiveCosts costs = costs_of(cluster_, op.collective().protocol);
  for (int group = 0; group < grouping.count(); ++group) {
    const GroupMembers here(plan_, grouping.ranks(group));
    const GroupMembers there(plan_, image_of(grouping, group, to));
    const int size = here.shape.ranks();
    const int rotation = rotation_of(here.ranks, there.ranks, to);
    for (const Hop& hop : schedule_of(kind, here.shape, 1).hops) {
      Hop image = hop;
      image.from = (hop.from + rotation) % size;
      image.to = (hop.to + rotation) % size;
      const bool inside = here.shape.node_of(hop.from) == here.shape.node_of(hop.to);
      if (inside != (there.shape.node_of(image.from) == there.shape.node_of(image.to))) return false;
      const HopPath way = here.path(*topology_, costs, kind.algorithm, hop);
      const HopPath image_way = there.path(*topology_, costs, kind.algorithm, image);
      if (way.rate != image_way.rate || !map.carries(way.path, image_way.path)) return false;
    }
  }
  return true;
}

}  // namespace simsync::detail
