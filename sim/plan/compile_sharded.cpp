// Sharded data parallelism: parameters gathered unit by unit, gradients reduced to their share.
//
// With S bytes of parameters and P ranks in a shard group, a rank sends S (P-1)/P in every all-gather and as much in
// the reduce-scatter: at stage 3 with parameters freed after their forward pass 3 S (P-1)/P a step, else 2 S (P-1)/P.
// Over R groups (hybrid shard) the all-reduce of its share adds 2 (S/P) (R-1)/R. With micro-steps, stage 3 gathers in
// each of them, and from stage 2 on each of them reduces what it adds (Sharding::reduce_every_micro_step).
// Broadcasts of whole variables send S through all ranks in place of one all-gather (Sharding::whole_variables).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/plan_writer.hpp"
#include "sim/plan/units.hpp"

namespace simsync::detail {
namespace {

/// Collectives of the groups of one grouping, on a stream of their own, in the order in which they are written.
class Stream {
public:
  Stream(PlanWriter& writer, GroupingId grouping, QueueId queue) : w_(writer), grouping_(grouping), queue_(queue) {
    std::vector<Place> ranks;
    for (const int rank : w_.plan.grouping(grouping).ranks(0))
      ranks.push_back(w_.plan.ranks[static_cast<std::size_t>(rank)]);
    costs_ = group_costs(w_.cluster, ranks);
  }

  [[nodiscard]] int ranks() const { return costs_.shape.ranks(); }

  /// The next one. All-gather: `bytes` are what each rank contributes.
  OpId launch(const CollectiveKind& kind, double bytes, const std::string& label, const std::vector<OpId>& after) {
    const CollectivePrimitive primitive = kind.primitive;
    const bool chooses = primitive == CollectivePrimitive::AllReduce;
    const CollectiveAlgorithm asked = chooses ? w_.strategy.graph.algorithm : CollectiveAlgorithm::Auto;
    const CollectiveChoice choice = choose(primitive, asked, costs_, bytes);
    Op op;
    op.grouping = grouping_;
    op.queue = queue_;
    op.reason = {Phase::Synchronize, -1, label};
    op.body =
        Collective{.primitive = primitive,
                   .algorithm = choice.algorithm,
                   .protocol = choice.protocol,
                   .root = kind.root,
                   .bytes = bytes,
                   .setup = collective_setup(w_.cluster.collective, bytes) + w_.strategy.graph.per_operation_cost};
    for (const OpId id : after) op.after.push_back({id, 0});
    if (previous_ >= 0) op.after.push_back({previous_, 0});
    return previous_ = w_.add(std::move(op));
  }

private:
  PlanWriter& w_;
  GroupingId grouping_;
  QueueId queue_;
  GroupCosts costs_;
  OpId previous_ = -1;
};

/// Shard groups are consecutive ranks; a replica group has the ranks of the same place in them.
struct ShardGroups {
  GroupingId shard = kWholeJob;
  GroupingId replica = kEachRank;
};

GroupingId add_grouping(Plan& plan, const std::string& name, int size, bool consecutive) {
  const int ranks = plan.rank_count();
  std::vector<int> group_of;
  for (int rank = 0; rank < ranks; ++rank) group_of.push_back(consecutive ? rank / size : rank % size);
  plan.groupings.emplace_back(name, std::move(group_of));
  return static_cast<GroupingId>(plan.groupings.size()) - 1;
}

ShardGroups add_groups(Plan& plan, int size) {
  if (size == plan.rank_count()) return {};
  if (size == 1) return {.shard = kEachRank, .replica = kWholeJob};
  const auto nodes = static_cast<int>(plan.nodes.size());
  bool are_nodes = true;
  for (int node = 0; node < nodes; ++node)
    are_nodes = are_nodes && static_cast<int>(plan.grouping(kEachNode).ranks(node).size()) == size;
  const GroupingId shard = are_nodes ? kEachNode : add_grouping(plan, "shard", size, true);
  return {.shard = shard, .replica = add_grouping(plan, "replica", size, false)};
}

class Writer {
public:
  Writer(PlanWriter& writer, std::vector<Unit> units)
      : w_(writer),
        sharding_(writer.strategy.graph.sharding),
        units_(std::move(units)),
        groups_(add_groups(w_.plan, sharding_.group_of(w_.plan.rank_count()))),
        shard_(stream("shard", groups_.shard)),
        replica_(stream("replica", groups_.replica)) {}

  void write() {
    w_.update_share = largest_share(w_.model, w_.strategy);
    for (step_ = 0; step_ < w_.micro_steps.size(); ++step_) {
      const bool last = step_ + 1 == w_.micro_steps.size();
      const bool gathers = shard_.ranks() > 1 && (step_ == 0 || sharding_.stage == 3);
      if (gathers) sharding_.whole_variables ? broadcast_for_forward() : gather_for_forward();
      gather_for_backward_and_reduce(last || sharding_.reduces_early());
    }
  }

private:
  Stream stream(const char* name, GroupingId grouping) {
    QueueId queue = -1;
    if (grouping == kWholeJob) {
      queue = w_.communication;
    } else if (w_.plan.grouping(grouping).ranks(0).size() > 1) {
      queue = w_.add_queue({.name = fmt::format("{} communication", name), .grouping = grouping, .slots = 1});
    }
    return {w_, grouping, queue};
  }

  [[nodiscard]] double bytes_of(const std::vector<VariableId>& variables, const std::optional<DType>& dtype) const {
    double bytes = 0.0;
    for (const VariableId id : variables) {
      const Variable& variable = w_.model.variable(id);
      bytes += static_cast<double>(variable.elements()) * width_of(variable, dtype, w_.profile.precision);
    }
    return bytes;
  }

  OpId gather(const Unit& unit, const char* pass, const std::vector<OpId>& after) {
    return shard_.launch({.primitive = CollectivePrimitive::AllGather},
                         bytes_of(unit.variables, sharding_.param_dtype) / shard_.ranks(),
                         fmt::format("{} ({}){}", unit.label, pass, of_step()), after);
  }

  /// Of a label: which of several micro-steps it belongs to.
  [[nodiscard]] std::string of_step() const {
    if (w_.micro_steps.size() == 1) return "";
    const bool last = step_ + 1 == w_.micro_steps.size();
    return fmt::format(", micro-step {}", last ? w_.profile.micro_steps : static_cast<int>(step_) + 1);
  }

  void gate(OpId op, OpId gathered) { w_.plan.ops[static_cast<std::size_t>(op)].after.push_back({gathered, 0}); }

  /// Those of later micro-steps begin when the backward pass before has ended, as PyTorch's root module asks for.
  void gather_for_forward() {
    const MicroStep& step = w_.micro_steps[step_];
    const bool limited = sharding_.stage == 3;
    const bool at_once = !limited && !sharding_.overlap_gather;
    // Blocks are computed one after another, the root beside them.
    const std::size_t begin = units_.front().root ? 1 : 0;
    const auto ahead = static_cast<std::size_t>(sharding_.prefetch) + 1;
    for (std::size_t u = 0; u < units_.size(); ++u) {
      const Unit& unit = units_[u];
      std::vector<OpId> after;
      if (step_ > 0) after.push_back(w_.micro_steps[step_ - 1].backward.front());
      if (limited && u >= begin + ahead) after.push_back(step.forward[units_[u - ahead].last]);
      const OpId gathered = gather(unit, "forward", after);
      gate(step.forward[at_once ? 0 : unit.first], gathered);
      if (step_ > 0) continue;
      for (const VariableId id : unit.variables) w_.gathers[w_.model.variable(id).layer].insert(gathered);
    }
  }

  /// One broadcast of each rank that owns anything, in the order of the ranks.
  void broadcast_for_forward() {
    const auto owned = owned_variables(w_.model, w_.strategy);
    for (std::size_t rank = 0; rank < owned.size(); ++rank) {
      if (owned[rank].empty()) continue;
      const OpId sent =
          shard_.launch({.primitive = CollectivePrimitive::Broadcast, .root = static_cast<int>(rank)},
                        bytes_of(owned[rank], sharding_.param_dtype), fmt::format("variables of rank {}", rank), {});
      std::set<LayerId> waiting;
      for (const VariableId id : owned[rank]) {
        const LayerId layer = w_.model.variable(id).layer;
        waiting.insert(sharding_.overlap_gather ? layer : 0);
        w_.gathers[layer].insert(sent);
      }
      for (const LayerId layer : waiting) gate(w_.micro_steps.front().forward[layer], sent);
    }
  }

  /// In the order in which a framework launches them: a unit's gradients are reduced when its backward pass has ended,
  /// and then the unit is gathered that comes `prefetch` after the next.
  void gather_for_backward_and_reduce(bool reduces) {
    const MicroStep& step = w_.micro_steps[step_];
    const std::size_t begin = units_.front().root ? 1 : 0;
    const bool again = sharding_.stage == 3 && sharding_.reshard_after_forward && shard_.ranks() > 1;
    std::size_t to_gather = again ? units_.size() : begin;
    const auto gather_down_to = [&](std::size_t lowest, OpId after) {
      for (; to_gather > std::max(lowest, begin); --to_gather) {
        const Unit& unit = units_[to_gather - 1];
        gate(step.backward_begin[unit.last], gather(unit, "backward", {after}));
      }
    };
    const auto ahead = static_cast<std::size_t>(sharding_.prefetch) + 1;
    const auto below = [](std::size_t unit, std::size_t by) { return unit > by ? unit - by : 0; };
    if (units_.size() > begin) gather_down_to(below(units_.size(), ahead), step.forward[units_.back().last]);
    for (std::size_t u = units_.size(); u-- > begin;) {
      if (reduces) reduce(units_[u], units_[u].first);
      gather_down_to(below(u, ahead), step.backward[units_[u].first]);
    }
    if (reduces && begin > 0) reduce(units_.front(), 0);
  }

  /// When the backward pass of its first layer has ended.
  void reduce(const Unit& unit, LayerId first) {
    const OverlapShares& shares = w_.strategy.graph.collectives_overlap;
    OpId ready = w_.gradient_ready(w_.micro_steps[step_], first,
                                   w_.plan.nodes.size() > 1 ? shares.between_nodes : shares.in_node);
    double bytes = bytes_of(unit.variables, sharding_.reduce_dtype);
    if (shard_.ranks() > 1) {
      ready = shard_.launch({.primitive = CollectivePrimitive::ReduceScatter}, bytes, unit.label + of_step(), {ready});
      bytes /= shard_.ranks();
    }
    if (replica_.ranks() > 1)
      ready = replica_.launch({.primitive = CollectivePrimitive::AllReduce}, bytes, unit.label + of_step(), {ready});
    if (step_ + 1 < w_.micro_steps.size()) return;
    for (const VariableId id : unit.variables) w_.to_update.emplace_back(id, ready);
  }

  PlanWriter& w_;
  const Sharding& sharding_;
  std::vector<Unit> units_;
  ShardGroups groups_;
  Stream shard_;
  Stream replica_;
  std::size_t step_ = 0;  ///< the micro-step that is written
};

}  // namespace

bool exchanges_in_every_micro_step(const Strategy& strategy) {
  const Sharding& sharding = strategy.graph.sharding;
  return has_sharded(strategy) && (sharding.stage == 3 || sharding.reduces_early());
}

void write_sharded(PlanWriter& writer) {
  if (!has_sharded(writer.strategy)) return;
  std::vector<Unit> units = units_of(writer.model, writer.strategy);
  if (!units.empty()) Writer(writer, std::move(units)).write();
}

}  // namespace simsync::detail
