#include "sim/engine/rank_orbits.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.hpp"
#include "sim/plan/collective_maker.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/link_map.hpp"

namespace simsync::detail {
namespace {

using Permutation = std::vector<int>;  ///< by rank: whose place it takes

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

/// Whether it is a ring, which no rank begins.
bool turns(const CollectiveKind& kind) {
  return kind.algorithm == CollectiveAlgorithm::Ring && !is_chain(kind.primitive) &&
         kind.primitive != CollectivePrimitive::AllToAll;
}

/// The ranks of every group take the place of the next of them, the last that of the first.
Permutation shift_within(const Grouping& grouping, int ranks) {
  Permutation out(at(ranks));
  std::iota(out.begin(), out.end(), 0);
  for (int group = 0; group < grouping.count(); ++group) {
    const auto of = grouping.ranks(group);
    for (std::size_t i = 0; i < of.size(); ++i) out[at(of[i])] = of[(i + 1) % of.size()];
  }
  return out;
}

/// In every run of `count` blocks of `block` ranks, each block takes the place of the next.
Permutation shift_blocks(int ranks, int block, int count) {
  const int run = block * count;
  Permutation out;
  for (int rank = 0; rank < ranks; ++rank) out.push_back(rank / run * run + (rank % run + block) % run);
  return out;
}

/// What of a plan a permutation must leave as it is.
class Symmetry {
public:
  Symmetry(const Plan& plan, const Cluster& cluster) : plan_(plan), cluster_(cluster) {
    std::set<Kind> seen;
    for (const Op& op : plan.ops) {
      if (op.queue >= 0)
        in_queues_.emplace(plan.queues[at(op.queue)].grouping, op.grouping, at_fixed_place(op) ? 1 : 0);
      groupings_.insert(op.grouping);
      if (op.kind() == OpKind::Collective && turns(op.collective().kind())) rings_.insert(op.grouping);
      if (!has_route(op)) continue;
      if (seen.insert(kind_of(op)).second) routed_.push_back(&op);
    }
    for (const auto& [queue, ops, fixed] : in_queues_) groupings_.insert(queue);
  }

  /// Whether some op tells every rank from all others.
  [[nodiscard]] bool possible() const {
    if (plan_.steps_vary() || plan_.progress.backups > 0) return false;
    return std::none_of(plan_.ops.begin(), plan_.ops.end(), [&](const Op& op) {
      const bool transfers_alone = op.kind() == OpKind::Transfer && op.grouping == kEachRank &&
                                   (op.transfer().from.is_fixed() || op.transfer().to.is_fixed());
      return op.random_order || transfers_alone;
    });
  }

  [[nodiscard]] bool has(const Permutation& to) {
    if (!keeps_devices(to)) return false;
    const auto keeps = [&](GroupingId id) { return keeps_grouping(plan_.grouping(id), to); };
    if (!keeps(kEachNode) || !std::all_of(groupings_.begin(), groupings_.end(), keeps)) return false;
    if (!plan_.servers.empty() && !leaves(plan_.grouping(kEachNode), to)) return false;
    const auto keeps_op = [&](const Op* op) { return keeps_places(*op, to); };
    return keeps_turns(to) && std::all_of(routed_.begin(), routed_.end(), keeps_op) && keeps_routes(to);
  }

  /// Whether one rank of each orbit shows what all do.
  [[nodiscard]] bool is_shown_by_first(const RankOrbits& orbits) const {
    const auto first_of = [&](int rank) { return orbits.members[at(orbits.orbit_of[at(rank)])].front(); };
    for (const GroupingId id : groupings_) {
      const Grouping& grouping = plan_.grouping(id);
      for (const auto& orbit : orbits.members) {
        const int group = grouping.group_of(orbit.front());
        if (group < 0) continue;
        const auto ranks = grouping.ranks(group);
        if (std::any_of(ranks.begin(), ranks.end(), [&](int r) { return grouping.group_of(first_of(r)) != group; }))
          return false;
        if (rings_.contains(id) && !first_is_a_stretch(ranks, first_of)) return false;
      }
    }
    for (const auto& [of_queue, of_op, fixed] : in_queues_) {
      const Grouping& ops = plan_.grouping(of_op);
      const Grouping& queues = plan_.grouping(of_queue);
      for (int rank = 0; rank < plan_.rank_count(); ++rank)
        if (queues.group_of(rank) == queues.group_of(first_of(rank)) &&
            ops.group_of(rank) != ops.group_of(first_of(rank)))
          return false;
    }
    return true;
  }

private:
  using Kind = std::tuple<GroupingId, int, CollectiveKind, std::string, std::pair<int, Place>, std::pair<int, Place>>;

  static bool at_fixed_place(const Op& op) { return op.kind() == OpKind::HostWork && op.host().at.is_fixed(); }
  static bool has_route(const Op& op) { return op.kind() == OpKind::Collective || op.kind() == OpKind::Transfer; }
  static Kind kind_of(const Op& op) {
    Kind out{op.grouping, static_cast<int>(op.kind()), {}, {}, {}, {}};
    if (op.kind() == OpKind::Collective) {
      std::get<2>(out) = op.collective().kind();
      std::get<3>(out) = op.collective().protocol;
    } else {
      const auto end = [](const End& of) {
        return std::pair{static_cast<int>(of.kind), of.is_fixed() ? of.place : Place{}};
      };
      std::get<4>(out) = end(op.transfer().from);
      std::get<5>(out) = end(op.transfer().to);
    }
    return out;
  }

  /// Ranks of a group that are simulated stand side by side, and each stretch as long repeats them: a ring that is
  /// turned.
  template <typename FirstOf>
  static bool first_is_a_stretch(std::span<const int> ranks, const FirstOf& first_of) {
    const auto simulated = static_cast<std::size_t>(
        std::count_if(ranks.begin(), ranks.end(), [&](int rank) { return first_of(rank) == rank; }));
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (first_of(ranks[i]) != first_of(ranks[(i + simulated) % ranks.size()])) return false;
    return true;
  }

  [[nodiscard]] bool keeps_devices(const Permutation& to) const {
    for (int rank = 0; rank < plan_.rank_count(); ++rank) {
      const NodeGroup& here = cluster_.group_of(plan_.ranks[at(rank)].node);
      const NodeGroup& there = cluster_.group_of(plan_.ranks[at(to[at(rank)])].node);
      if (here.device != there.device || here.compute_slowdown != there.compute_slowdown) return false;
    }
    return true;
  }

  static bool keeps_grouping(const Grouping& grouping, const Permutation& to) {
    for (int rank = 0; rank < static_cast<int>(to.size()); ++rank)
      if ((grouping.group_of(rank) < 0) != (grouping.group_of(to[at(rank)]) < 0)) return false;
    for (int group = 0; group < grouping.count(); ++group) {
      const auto ranks = grouping.ranks(group);
      const int image = grouping.group_of(to[at(ranks.front())]);
      if (grouping.ranks(image).size() != ranks.size()) return false;
      if (std::any_of(ranks.begin(), ranks.end(), [&](int r) { return grouping.group_of(to[at(r)]) != image; }))
        return false;
    }
    return true;
  }
  /// Every group where it is.
  static bool leaves(const Grouping& grouping, const Permutation& to) {
    for (int rank = 0; rank < static_cast<int>(to.size()); ++rank)
      if (grouping.group_of(rank) != grouping.group_of(to[at(rank)])) return false;
    return true;
  }

  [[nodiscard]] bool keeps_turns(const Permutation& to) const {
    for (const auto& [of_queue, of_op, fixed] : in_queues_) {
      const Grouping& ops = plan_.grouping(of_op);
      const Grouping& queues = plan_.grouping(of_queue);
      for (int rank = 0; rank < plan_.rank_count(); ++rank) {
        const int image = to[at(rank)];
        const bool one_queue = fixed != 0 || queues.group_of(rank) == queues.group_of(image);
        if (one_queue && ops.group_of(rank) != ops.group_of(image)) return false;
      }
    }
    return true;
  }

  /// By how many places the ranks of a group lie behind the ones that they are mapped onto; -1: by different numbers.
  [[nodiscard]] static int turn_of(std::span<const int> here, std::span<const int> there, const Permutation& to) {
    const auto turn =
        static_cast<std::size_t>(std::find(there.begin(), there.end(), to[at(here.front())]) - there.begin());
    for (std::size_t i = 0; i < here.size(); ++i)
      if (to[at(here[i])] != there[(i + turn) % there.size()]) return -1;
    return static_cast<int>(turn);
  }
  [[nodiscard]] static std::span<const int> image_of(const Grouping& grouping, int group, const Permutation& to) {
    return grouping.ranks(grouping.group_of(to[at(grouping.ranks(group).front())]));
  }

  /// What can be told of an op without the network.
  [[nodiscard]] bool keeps_places(const Op& op, const Permutation& to) const {
    const Grouping& grouping = plan_.grouping(op.grouping);
    if (op.kind() == OpKind::Transfer) {
      const Transfer& moved = op.transfer();
      const bool of_device = moved.from.kind == End::Kind::Device || moved.to.kind == End::Kind::Device;
      return op.grouping == kEachRank || (!of_device && leaves(grouping, to));
    }
    for (int group = 0; group < grouping.count(); ++group) {
      const auto here = grouping.ranks(group);
      const auto there = image_of(grouping, group, to);
      const int turn = turn_of(here, there, to);
      if (turn < 0 || (turn > 0 && !turns(op.collective().kind()))) return false;
      if (turn == 0 && group_shape(plan_, here).node_begin != group_shape(plan_, there).node_begin) return false;
    }
    return true;
  }

  bool keeps_routes(const Permutation& to) {
    if (!topology_) {
      std::set<int> nodes(plan_.nodes.begin(), plan_.nodes.end());
      for (const Place& server : plan_.servers) nodes.insert(server.node);
      topology_ =
          std::make_unique<Topology>(cluster_, std::vector(nodes.begin(), nodes.end()), gpus_in_use(plan_.ranks));
    }
    LinkMap map(*topology_);
    for (const Place& rank : plan_.ranks)
      if (!topology_->links_beside_compute(rank).empty()) return false;
    return std::all_of(routed_.begin(), routed_.end(), [&](const Op* op) {
      return op->kind() == OpKind::Collective ? keeps_collective(*op, to, map) : keeps_transfer(*op, to, map);
    });
  }

  [[nodiscard]] bool keeps_transfer(const Op& op, const Permutation& to, LinkMap& map) const {
    const Transfer& moved = op.transfer();
    const Grouping& grouping = plan_.grouping(op.grouping);
    const bool of_rank = op.grouping == kEachRank;
    const auto route = [&](int rank) {
      const Place& device = plan_.ranks[at(rank)];
      const auto place = [&](const End& end) {
        if (end.is_fixed()) return end.place;
        return end.kind == End::Kind::Device ? device : Place{device.node, -1};
      };
      return topology_->path(place(moved.from), place(moved.to));
    };
    for (int group = 0; group < grouping.count(); ++group) {
      const int first = grouping.ranks(group).front();
      if (!map.carries(route(first), route(of_rank ? to[at(first)] : first))) return false;
    }
    return true;
  }

  [[nodiscard]] bool keeps_collective(const Op& op, const Permutation& to, LinkMap& map) const {
    const Grouping& grouping = plan_.grouping(op.grouping);
    const CollectiveKind kind = op.collective().kind();
    const CollectiveCosts costs = costs_of(cluster_, op.collective().protocol);
    for (int group = 0; group < grouping.count(); ++group) {
      const GroupMembers here(plan_, grouping.ranks(group));
      const GroupMembers there(plan_, image_of(grouping, group, to));
      const int size = here.shape.ranks();
      const int turn = turn_of(here.ranks, there.ranks, to);
      for (const Hop& hop : schedule_of(kind, here.shape, 1).hops) {
        Hop image = hop;
        image.from = (hop.from + turn) % size;
        image.to = (hop.to + turn) % size;
        const HopPath way = here.path(*topology_, costs, kind.algorithm, hop);
        const HopPath image_way = there.path(*topology_, costs, kind.algorithm, image);
        const bool inside = here.shape.node_of(hop.from) == here.shape.node_of(hop.to);
        if (inside != (there.shape.node_of(image.from) == there.shape.node_of(image.to))) return false;
        if (way.rate != image_way.rate || !map.carries(way.path, image_way.path)) return false;
      }
    }
    return true;
  }

  const Plan& plan_;
  const Cluster& cluster_;
  std::set<GroupingId> groupings_;                               ///< of ops and queues
  std::set<std::tuple<GroupingId, GroupingId, int>> in_queues_;  ///< of a queue, of an op in it; 1: at a fixed place
  std::set<GroupingId> rings_;                                   ///< groupings that have rings
  std::vector<const Op*> routed_;                                ///< one of every kind
  std::unique_ptr<Topology> topology_;
};

/// Sets that grow together.
class Sets {
public:
  explicit Sets(int count) : parent_(at(count)) { std::iota(parent_.begin(), parent_.end(), 0); }
  int of(int i) {
    while (parent_[at(i)] != i) i = parent_[at(i)] = parent_[at(parent_[at(i)])];
    return i;
  }
  /// The smaller number stands for both.
  void join(int one, int other) {
    const int a = of(one);
    const int b = of(other);
    parent_[at(std::max(a, b))] = std::min(a, b);
  }

private:
  std::vector<int> parent_;
};

/// Whether a permutation joins no two of the sets.
bool is_within(Sets& sets, const Permutation& to) {
  for (int rank = 0; rank < static_cast<int>(to.size()); ++rank)
    if (sets.of(rank) != sets.of(to[at(rank)])) return false;
  return true;
}

}  // namespace

RankOrbits find_rank_orbits(const Plan& plan, const Cluster& cluster, bool within_nodes) {
  Symmetry symmetry(plan, cluster);
  if (!symmetry.possible()) return {};
  const int ranks = plan.rank_count();
  Sets sets(ranks);
  const auto attempt = [&](const Permutation& to) {
    if (is_within(sets, to) || !symmetry.has(to)) return;
    for (int rank = 0; rank < ranks; ++rank) sets.join(rank, to[at(rank)]);
  };
  attempt(shift_within(plan.grouping(kEachNode), ranks));
  // Long runs first: what they join, shorter ones need not.
  for (int run = ranks; !within_nodes && run > 1; --run)
    for (int block = 1; ranks % run == 0 && block < run; ++block)
      if (run % block == 0) attempt(shift_blocks(ranks, block, run / block));
  RankOrbits out{.members = {}, .orbit_of = std::vector<int>(at(ranks), -1)};
  for (int rank = 0; rank < ranks; ++rank) {
    int& orbit = out.orbit_of[at(rank)];
    const int first = sets.of(rank);
    orbit = first == rank ? static_cast<int>(out.members.size()) : out.orbit_of[at(first)];
    if (first == rank) out.members.emplace_back();
    out.members[at(orbit)].push_back(rank);
  }
  const bool useful = static_cast<int>(out.members.size()) < ranks && symmetry.is_shown_by_first(out);
  return useful ? out : RankOrbits{};
}

std::vector<LinkId> links_of_one(const std::vector<std::vector<LinkId>>& routes) {
  std::vector<LinkId> out;
  for (std::size_t place = 0; place < routes.front().size(); ++place) {
    std::set<LinkId> links;
    for (const auto& route : routes) links.insert(route[place]);
    out.insert(out.end(), routes.size() / links.size(), *links.begin());
  }
  return out;
}

void merge_alike_hops(const RouteContext& context, const ScheduleKey& key, const RankOrbits& orbits,
                      RoutedSchedule& schedule) {
  const Grouping& grouping = context.plan.grouping(key.grouping);
  const auto group = grouping.ranks(key.group);
  const auto orbit_of = [&](int rank) { return orbits.orbit_of[at(rank)]; };
  const auto is_simulated = [&](int rank) { return orbits.members[at(orbit_of(rank))].front() == rank; };
  const bool turned = !std::all_of(group.begin(), group.end(), is_simulated);
  std::set<int> images;
  for (const int rank : orbits.members[at(orbit_of(group.front()))]) images.insert(grouping.group_of(rank));
  std::vector<std::vector<std::vector<LinkId>>> routes(schedule.hops.size());  // by hop
  const CollectiveCosts costs = costs_of(context.cluster, key.protocol);
  for (const int image : images) {
    const GroupMembers members(context.plan, grouping.ranks(image));
    const auto route = [&](int from, int to) {
      return members
          .path(context.topology, costs, key.kind.algorithm, {.from = from, .to = to, .needs = {}, .after = {}})
          .path.links;
    };
    const int size = static_cast<int>(group.size());
    for (std::size_t i = 0; i < schedule.hops.size(); ++i) {
      const RoutedHop& hop = schedule.hops[i];
      if (!turned) routes[i].push_back(route(hop.from, hop.to));
      for (int rank = 0; turned && rank < size; ++rank)
        if (orbit_of(members.ranks[at(rank)]) == orbit_of(group[at(hop.from)]))
          routes[i].push_back(route(rank, (rank + 1) % size));
    }
  }
  std::vector<RoutedHop> kept;
  for (std::size_t i = 0; i < schedule.hops.size(); ++i) {
    RoutedHop& hop = schedule.hops[i];
    if (turned && !is_simulated(group[at(hop.from)])) continue;
    if (hop.path >= 0) {
      hop.links = links_of_one(routes[i]);
      hop.path = context.path_of(hop.links, hop.cap);
    }
    if (turned) {
      SIMSYNC_ASSERT(hop.after.empty() && schedule.pipelines.size() == 1 && schedule.pipelines.front().ring);
      hop.needs.clear();
      hop.unblocks.clear();
    }
    kept.push_back(std::move(hop));
  }
  schedule.hops = std::move(kept);
  if (!turned) return;
  schedule.members = {std::vector<int>(schedule.hops.size())};
  std::iota(schedule.members.front().begin(), schedule.members.front().end(), 0);
}

}  // namespace simsync::detail
