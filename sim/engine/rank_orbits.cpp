#include "sim/engine/rank_orbits.hpp"

#include <boost/pending/disjoint_sets.hpp>
#include <map>
#include <numeric>
#include <set>
#include <span>

#include "base/error.hpp"
#include "sim/engine/plan_symmetry.hpp"
#include "sim/plan/compile.hpp"

namespace simsync::detail {
namespace {

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
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

using Sets = boost::disjoint_sets_with_storage<>;

/// Whether a permutation joins no two of the sets.
bool is_within(Sets& sets, const Permutation& to) {
  for (std::size_t rank = 0; rank < to.size(); ++rank)
    if (sets.find_set(rank) != sets.find_set(at(to[rank]))) return false;
  return true;
}

/// The sets, each by ascending ranks, in the order of their first ones.
RankOrbits orbits_of(Sets& sets, int ranks) {
  RankOrbits out;
  std::map<std::size_t, int> numbers;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto [known, fresh] = numbers.try_emplace(sets.find_set(at(rank)), static_cast<int>(numbers.size()));
    if (fresh) out.members.emplace_back();
    out.members[at(known->second)].push_back(rank);
    out.orbit_of.push_back(known->second);
  }
  return out;
}

/// A group of which some or all ranks are simulated, and those whose ranks are in the same orbits.
class AlikeGroups {
public:
  AlikeGroups(const RouteContext& context, const ScheduleKey& key, const RankOrbits& orbits)
      : context_(context), key_(key), orbits_(orbits), costs_(costs_of(context.cluster, key.protocol)) {
    const Grouping& grouping = context.plan.grouping(key.grouping);
    ranks_ = grouping.ranks(key.group);
    std::set<int> groups;
    for (const int rank : orbits.members[at(orbit_of(ranks_.front()))]) groups.insert(grouping.group_of(rank));
    for (const int group : groups) all_.emplace_back(context.plan, grouping.ranks(group));
    for (int place = 0; place < static_cast<int>(ranks_.size()); ++place) rotated_ = rotated_ || !is_simulated(place);
  }

  [[nodiscard]] bool is_simulated(int place) const {
    const int rank = ranks_[at(place)];
    return orbits_.members[at(orbit_of(rank))].front() == rank;
  }
  /// Some of its ranks stand for others of it: a ring.
  [[nodiscard]] bool is_rotated() const { return rotated_; }
  /// Of a hop and those that it stands for.
  [[nodiscard]] std::vector<std::vector<LinkId>> routes(const RoutedHop& hop) const {
    const int size = static_cast<int>(ranks_.size());
    std::vector<std::vector<LinkId>> out;
    for (const GroupMembers& group : all_) {
      if (!rotated_) out.push_back(route(group, hop.from, hop.to));
      for (int place = 0; rotated_ && place < size; ++place)
        if (orbit_of(group.ranks[at(place)]) == orbit_of(ranks_[at(hop.from)]))
          out.push_back(route(group, place, (place + 1) % size));
    }
    return out;
  }

private:
  [[nodiscard]] int orbit_of(int rank) const { return orbits_.orbit_of[at(rank)]; }
  [[nodiscard]] std::vector<LinkId> route(const GroupMembers& group, int from, int to) const {
    const Hop hop{.from = from, .to = to, .needs = {}, .after = {}};
    return group.path(context_.topology, costs_, key_.kind.algorithm, hop).path.links;
  }

  const RouteContext& context_;
  const ScheduleKey& key_;
  const RankOrbits& orbits_;
  CollectiveCosts costs_;
  std::span<const int> ranks_;
  std::vector<GroupMembers> all_;
  bool rotated_ = false;
};

}  // namespace

RankOrbits find_rank_orbits(const Plan& plan, const Cluster& cluster, bool within_nodes) {
  PlanSymmetry symmetry(plan, cluster);
  if (!symmetry.is_possible()) return {};
  const int ranks = plan.rank_count();
  Sets sets(at(ranks));
  const auto attempt = [&](const Permutation& to) {
    if (is_within(sets, to) || !symmetry.is_kept_by(to)) return;
    Sets joined = sets;
    for (int rank = 0; rank < ranks; ++rank) joined.union_set(at(rank), at(to[at(rank)]));
    const RankOrbits orbits = orbits_of(joined, ranks);
    if (symmetry.is_shown_by_first(orbits.orbit_of, orbits.members)) sets = std::move(joined);
  };
  attempt(shift_within(plan.grouping(kEachNode), ranks));
  // Long runs first: what they join, shorter ones need not.
  for (int run = ranks; !within_nodes && run > 1; --run)
    for (int block = 1; ranks % run == 0 && block < run; ++block)
      if (run % block == 0) attempt(shift_blocks(ranks, block, run / block));
  RankOrbits out = orbits_of(sets, ranks);
  return static_cast<int>(out.members.size()) < ranks ? out : RankOrbits{};
}

std::vector<LinkId> links_of_one(const std::vector<std::vector<LinkId>>& routes) {
  std::vector<LinkId> out;
  for (std::size_t place = 0; place < routes.front().size(); ++place) {
    std::set<LinkId> links;
    for (const auto& route : routes) links.insert(route.at(place));
    SIMSYNC_ASSERT(routes.size() % links.size() == 0);
    out.insert(out.end(), routes.size() / links.size(), *links.begin());
  }
  return out;
}

void merge_alike_hops(const RouteContext& context, const ScheduleKey& key, const RankOrbits& orbits,
                      RoutedSchedule& schedule) {
  const AlikeGroups groups(context, key, orbits);
  const bool rotated = groups.is_rotated();
  SIMSYNC_ASSERT(!rotated || (schedule.pipelines.size() == 1 && schedule.pipelines.front().ring));
  std::vector<RoutedHop> kept;
  for (RoutedHop& hop : schedule.hops) {
    if (!groups.is_simulated(hop.from)) continue;
    if (hop.path >= 0) {
      hop.links = links_of_one(groups.routes(hop));
      hop.path = context.path_of(hop.links, hop.cap);
    }
    if (rotated) {  // the order of messages round the ring, which a flow of all of them does not show
      hop.needs.clear();
      hop.unblocks.clear();
    }
    kept.push_back(std::move(hop));
  }
  schedule.hops = std::move(kept);
  if (!rotated) return;
  schedule.members = {std::vector<int>(schedule.hops.size())};
  std::iota(schedule.members.front().begin(), schedule.members.front().end(), 0);
}

}  // namespace simsync::detail
