#include "sim/plan/estimated_sharding.hpp"

#include <optional>

#include "sim/plan/sharded_passes.hpp"
#include "sim/plan/units.hpp"

namespace simsync::detail {
namespace {

class EstimatedSharding {
public:
  EstimatedSharding(const EstimateContext& context, const Strategy& strategy)
      : c_(context), strategy_(strategy), sharding_(strategy.graph.sharding) {
    const auto all = static_cast<int>(c_.ranks.size());
    shard_ranks_ = sharding_.group_of(all);
    const std::vector<Unit> units = units_of(c_.model, strategy);
    for (const Unit& unit : units) units_.push_back(times_of(unit));
    spread_compute(units);
  }

  Evaluation run() {
    double now = 0.0;
    const int steps = c_.profile.micro_steps;
    for (int step = 0; step < steps; ++step) {
      const bool last = step + 1 == steps;
      const bool gathers = shard_ranks_ > 1 && (step == 0 || sharding_.stage == 3);
      now = forward_pass(units_, sharding_, gathers, now, streams_);
      const bool again = sharding_.stage == 3 && sharding_.reshard_after_forward && shard_ranks_ > 1;
      now = backward_pass(units_, sharding_, {.gathers = again, .reduces = last || sharding_.reduces_early()}, now,
                          streams_);
    }
    const double end = std::max({now, streams_.shard.free, streams_.replicas.free}) + c_.update / shard_ranks_;
    Evaluation out{.step = Seconds{end}, .bound = {}, .loads = {}};
    out.loads.collectives = Seconds{std::max(streams_.shard.busy, streams_.replicas.busy)};
    double compute = c_.update / shard_ranks_;
    for (std::size_t layer = 0; layer < c_.forward.size(); ++layer)
      compute += steps * (c_.forward[layer] + c_.backward[layer]);
    out.loads.compute = Seconds{compute};
    out.bound = std::max(out.loads.compute, out.loads.collectives);
    return out;
  }

private:
  [[nodiscard]] UnitTimes times_of(const Unit& unit) const {
    const GroupCosts& group = c_.shard_group(shard_ranks_);
    const double operation = strategy_.graph.per_operation_cost.value();
    const double reduced = reduced_bytes(c_.model, unit.variables, sharding_, c_.profile);
    UnitTimes out{.root = unit.root};
    if (shard_ranks_ > 1) {
      out.gather =
          operation + c_.collective(group, CollectivePrimitive::AllGather, CollectiveAlgorithm::Auto,
                                    gathered_bytes(c_.model, unit.variables, sharding_, c_.profile) / shard_ranks_);
      out.reduce =
          operation + c_.collective(group, CollectivePrimitive::ReduceScatter, CollectiveAlgorithm::Auto, reduced);
    }
    if (shard_ranks_ < static_cast<int>(c_.ranks.size()))
      out.replicas = operation + c_.collective(c_.replica_group(shard_ranks_), CollectivePrimitive::AllReduce,
                                               strategy_.graph.algorithm, reduced / shard_ranks_);
    return out;
  }
  /// Every layer belongs to the last block that begins before it, or to the root.
  void spread_compute(const std::vector<Unit>& units) {
    std::size_t unit = 0;
    for (LayerId layer = 0; layer < c_.forward.size(); ++layer) {
      while (unit + 1 < units.size() && units[unit + 1].first <= layer) ++unit;
      units_[unit].forward += c_.forward[layer];
      units_[unit].backward += c_.backward[layer];
    }
  }

  const EstimateContext& c_;
  const Strategy& strategy_;
  const Sharding& sharding_;
  int shard_ranks_ = 1;
  std::vector<UnitTimes> units_;
  UnitStreams streams_;
};

}  // namespace

Evaluation estimate_sharded(const EstimateContext& context, const Strategy& strategy) {
  return EstimatedSharding(context, strategy).run();
}

}  // namespace simsync::detail
