// Strategies drawn from all that can be said of a variable: servers or collectives, shards, groups, placement.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.hpp"
#include "strategies/strategy.hpp"

namespace simsync::test {

/// What the variables of one strategy have in common.
struct StrategyOdds {
  double served = 0.5;  ///< share of variables on servers
  double cut = 0.2;     ///< share of them that is cut into shards
  double halved = 0.0;  ///< share of them that travels in fp16
  int group_size = 1;   ///< collectives are fused by so many
  int servers = 1;      ///< among so many nodes
  bool replicas = false;
  bool aggregates = true;
};

inline StrategyOdds draw_odds(Random& random, int nodes) {
  constexpr double kServed[] = {0.0, 0.1, 0.5, 1.0};
  constexpr int kGroups[] = {1, 8, 64, 512};
  return {.served = kServed[random.below(4)],
          .cut = 0.5 * random.unit(),
          .halved = random.below(3) == 0 ? random.unit() : 0.0,
          .group_size = kGroups[random.below(4)],
          .servers = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(nodes))),
          .replicas = random.below(2) == 0,
          .aggregates = random.below(4) != 0};
}

/// One of AutoDist's space (its PSSynchronizer and AllReduceSynchronizer, partitions of axis 0), or of servers that
/// answer at once with priorities and credits, as BytePS and ByteScheduler have.
inline Strategy draw_strategy(Random& random, const Model& model, int workers, int nodes) {
  const StrategyOdds odds = draw_odds(random, nodes);
  Strategy out;
  out.name = "random";
  out.graph.workers = workers;
  const bool scheduled = random.below(4) == 0;
  if (scheduled) {
    out.graph.gate = Gate::PerVariable;
    out.graph.update_at = UpdateAt::Worker;
    out.graph.scheduling = {.ordering = Ordering::Priority,
                            .partition = Bytes{static_cast<std::int64_t>(1e6 * (1.0 + 7.0 * random.unit()))},
                            .credit = Bytes{random.below(2) == 0 ? 1 : 16'000'000}};
  } else {
    out.graph.pull_at_step_start = true;
    out.graph.parallel_host_ops = true;
  }
  std::vector<double> loads(static_cast<std::size_t>(odds.servers), 0.0);
  const auto server = [&](double bytes) {
    const auto least = std::min_element(loads.begin(), loads.end());
    const auto chosen = random.below(2) == 0 ? static_cast<std::size_t>(least - loads.begin())
                                             : static_cast<std::size_t>(random.below(loads.size()));
    loads[chosen] += bytes;
    return Place{static_cast<int>(chosen), -1};
  };
  int reduced = 0;
  for (VariableId id = 0; id < model.variables().size(); ++id) {
    const Variable& variable = model.variable(id);
    VariableStrategy how;
    how.variable = id;
    how.priority = static_cast<int>(variable.layer);
    if (random.unit() < odds.halved) how.compressor = Compressor::Fp16;
    const bool served = random.unit() < odds.served;
    const std::int64_t rows = variable.shape.empty() ? 1 : variable.shape.front();
    const std::int64_t shards =
        random.unit() < odds.cut ? std::min<std::int64_t>(rows, 2 + static_cast<std::int64_t>(random.below(6))) : 1;
    how.partition_axis = shards > 1 ? 0 : kWholeVariable;
    for (std::int64_t shard = 0; shard < shards; ++shard) {
      const std::int64_t own = rows * (shard + 1) / shards - rows * shard / shards;
      Shard part{.elements = variable.elements() / rows * own,
                 .synchronizer = AllReduceSynchronizer{.group = reduced / odds.group_size}};
      if (served)
        part.synchronizer = PsSynchronizer{.server = server(4.0 * static_cast<double>(part.elements)),
                                           .local_replication = odds.replicas && !variable.sparse,
                                           .local_aggregation = odds.aggregates};
      else
        ++reduced;
      how.shards.push_back(part);
    }
    out.variables.push_back(how);
  }
  return out;
}

}  // namespace simsync::test
