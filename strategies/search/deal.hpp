// Which server gets which shard, and which fusion group: all shards of a strategy at once, after AutoSync.
#pragma once
#include <vector>

#include "strategies/placement.hpp"
#include "strategies/search/decisions.hpp"
#include "strategies/search/space.hpp"

namespace simsync {

/// For every shard of so many bytes an index of `weights`, which are shares of the load that servers should get.
std::vector<std::size_t> deal_to_servers(ServerRule rule, const std::vector<double>& bytes,
                                         const std::vector<double>& weights, Decisions& decisions);
/// For every shard of so many bytes, in the order of the model, a group below `groups`.
std::vector<int> deal_to_groups(GroupRule rule, const std::vector<double>& bytes, std::size_t groups,
                                Decisions& decisions);

}  // namespace simsync
