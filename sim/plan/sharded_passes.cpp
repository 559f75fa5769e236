#include "sim/plan/sharded_passes.hpp"

#include <algorithm>

namespace simsync::detail {

double forward_pass(const std::vector<UnitTimes>& units, const Sharding& sharding, bool gathers, double now,
                    UnitStreams& streams) {
  std::vector<double> computed(units.size(), now);
  const auto ahead = static_cast<std::size_t>(sharding.prefetch) + 1;
  for (std::size_t u = 0; u < units.size(); ++u) {
    double there = now;
    if (gathers) {
      const bool limited = sharding.stage == 3 && u >= ahead;
      there = streams.shard.serve(limited ? computed[u - ahead] : 0.0, units[u].gather);
    }
    now = computed[u] = std::max(now, there) + units[u].forward;
  }
  return now;
}

double backward_pass(const std::vector<UnitTimes>& units, const Sharding& sharding, const BackwardExchange& exchange,
                     double now, UnitStreams& streams) {
  const auto ahead = static_cast<std::size_t>(sharding.prefetch) + 1;
  std::vector<double> there(units.size(), 0.0);
  std::size_t to_gather = units.size();
  const auto gather_down_to = [&](std::size_t lowest, double from) {
    for (; exchange.gathers && to_gather > lowest; --to_gather)
      if (!units[to_gather - 1].root) there[to_gather - 1] = streams.shard.serve(from, units[to_gather - 1].gather);
  };
  gather_down_to(units.size() > ahead ? units.size() - ahead : 0, now);
  for (std::size_t u = units.size(); u-- > 0;) {
    now = std::max(now, there[u]) + units[u].backward;
    if (exchange.reduces) {
      double reduced = now;
      if (units[u].reduce > 0.0) reduced = streams.shard.serve(now, units[u].reduce);
      if (units[u].replicas > 0.0) streams.replicas.serve(reduced, units[u].replicas);
    }
    gather_down_to(u > ahead ? u - ahead : 0, now);
  }
  return now;
}

}  // namespace simsync::detail
