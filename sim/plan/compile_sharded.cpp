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
#include "sim/plan/group_stream.hpp"
#include "sim/plan/units.hpp"

namespace simsync::detail {
namespace {

/// Shard groups are consecutive ranks of those that hold the same variables; a replica group has the ranks of the same
/// place in them.
struct ShardGroups {
  GroupingId shard = kWholeJob;
  GroupingId replica = kEachRank;
};

/// Of the ranks that `of` sums among.
GroupingId add_grouping(const PlanWriter& writer, const SumGroup& of, int size, bool consecutive) {
  const Grouping& all = writer.plan.grouping(of.ranks);
  std::vector<int> group_of(static_cast<std::size_t>(writer.plan.rank_count()), -1);
  int begin = 0;
  for (int group = 0; group < all.count(); ++group) {
    const auto ranks = all.ranks(group);
    const auto count = static_cast<int>(ranks.size());
    for (int i = 0; i < count; ++i)
      group_of[static_cast<std::size_t>(ranks[static_cast<std::size_t>(i)])] =
          begin + (consecutive ? i / size : i % size);
    begin += consecutive ? count / size : size;
  }
  writer.plan.groupings.emplace_back(consecutive ? "shard" : "replica", std::move(group_of));
  return static_cast<GroupingId>(writer.plan.groupings.size()) - 1;
}

ShardGroups add_groups(const PlanWriter& writer, const SumGroup& of, int size) {
  const Plan& plan = writer.plan;
  if (size == static_cast<int>(plan.grouping(of.ranks).ranks(0).size()))
    return {.shard = of.ranks, .replica = writer.each};
  if (size == 1) return {.shard = writer.each, .replica = of.ranks};
  const auto nodes = static_cast<int>(plan.nodes.size());
  bool are_nodes = of.ranks == kWholeJob;
  for (int node = 0; node < nodes; ++node)
    are_nodes = are_nodes && static_cast<int>(plan.grouping(kEachNode).ranks(node).size()) == size;
  const GroupingId shard = are_nodes ? kEachNode : add_grouping(writer, of, size, true);
  return {.shard = shard, .replica = add_grouping(writer, of, size, false)};
}

class Writer {
public:
  /// Of units whose gradients `sum` sums.
  Writer(PlanWriter& writer, std::vector<Unit> units, GradientSum sum)
      : w_(writer),
        sharding_(writer.strategy.graph.sharding),
        units_(std::move(units)),
        among_(writer.sum_group(sum)),
        groups_(add_groups(w_, among_, shard_ranks(w_.strategy.graph, sum))),
        shard_(stream("shard", groups_.shard)),
        replica_(stream("replica", groups_.replica)),
        overlap_(writer.overlap_share()) {}

  void write() {
    if (sharding_.whole_variables && shard_.ranks() > 1) broadcast();
    for (const Pass& pass : passes()) {
      step_ = pass.step;
      if (pass.kind == StageTask::Kind::Forward) {
        const bool gathers = !sharding_.whole_variables && (step_ == 0 || sharding_.stage == 3);
        if (gathers && shard_.ranks() > 1) gather_for_forward(pass);
      } else {
        gather_for_backward_and_reduce(pass);
      }
    }
  }

private:
  /// A forward or backward pass of a micro-step, through the whole model or through one chunk of a stage.
  struct Pass {
    StageTask::Kind kind = StageTask::Kind::Forward;
    std::size_t step = 0;
    std::vector<const Unit*> units = {};  ///< whose layers it goes through; the root first
    OpId before = -1;                     ///< what a stage has computed last when it begins

    [[nodiscard]] std::size_t first_block() const { return !units.empty() && units.front()->root ? 1 : 0; }
  };

  /// In the order in which the device computes them, so that what is launched for one never waits for a later one.
  [[nodiscard]] std::vector<Pass> passes() const {
    std::vector<Pass> out;
    if (w_.stage == nullptr) {
      std::vector<const Unit*> all;
      for (const Unit& unit : units_) all.push_back(&unit);
      for (std::size_t step = 0; step < w_.micro_steps.size(); ++step)
        for (const auto kind : {StageTask::Kind::Forward, StageTask::Kind::Backward}) out.push_back({kind, step, all});
      return out;
    }
    OpId before = -1;
    const PipelineShape shape = w_.strategy.graph.parallel.shape(w_.profile.micro_steps);
    for (const StageTask& task : stage_order(shape, w_.stage_number)) {
      const auto step = static_cast<std::size_t>(task.micro_batch);
      out.push_back({task.kind, step, units_of_chunk(task.chunk), before});
      const Phase way = task.kind == StageTask::Kind::Forward ? Phase::Forward : Phase::Backward;
      if (task.kind != StageTask::Kind::BackwardWeight) before = w_.passes.at({way, task.micro_batch, task.chunk}).last;
    }
    return out;
  }

  /// The root belongs to the chunk of its first variable.
  [[nodiscard]] std::vector<const Unit*> units_of_chunk(int number) const {
    const StageChunk& chunk = w_.stage->chunks[static_cast<std::size_t>(number)];
    std::vector<const Unit*> out;
    for (const Unit& unit : units_) {
      const LayerId at = unit.root ? w_.model.variable(unit.variables.front()).layer : unit.first;
      if (at >= chunk.begin && at < chunk.end) out.push_back(&unit);
    }
    return out;
  }

  GroupStream stream(const char* name, GroupingId grouping) {
    QueueId queue = -1;
    if (grouping == among_.ranks) {
      queue = among_.queue;
    } else if (w_.plan.grouping(grouping).ranks(0).size() > 1) {
      queue = w_.add_queue({.name = fmt::format("{} communication", name), .grouping = grouping, .slots = 1});
    }
    return {w_, grouping, queue};
  }

  OpId gather(const Unit& unit, const char* pass, const std::vector<OpId>& after) {
    return shard_.launch({.primitive = CollectivePrimitive::AllGather},
                         gathered_bytes(w_.model, unit.variables, sharding_, w_.profile) / shard_.ranks(),
                         reason(fmt::format("{} ({}){}", unit.label, pass, of_step())), after);
  }

  /// Of a label: which of several micro-steps it belongs to.
  [[nodiscard]] std::string of_step() const {
    if (w_.micro_steps.size() == 1) return "";
    const bool last = step_ == w_.last_number();
    return fmt::format(", micro-step {}", last ? w_.profile.micro_steps : static_cast<int>(step_) + 1);
  }

  static Reason reason(std::string label) { return {Phase::Synchronize, -1, std::move(label)}; }

  void gate(OpId op, OpId gathered) { w_.plan.ops[static_cast<std::size_t>(op)].after.push_back({gathered, 0}); }

  /// Those of later micro-steps begin when the backward pass before has ended, as PyTorch's root module asks for; on a
  /// stage, with the pass before.
  void gather_for_forward(const Pass& pass) {
    const MicroStep& step = w_.micro_steps[step_];
    const bool limited = sharding_.stage == 3;
    const bool at_once = !limited && !sharding_.overlap_gather;
    // Blocks are computed one after another, the root beside them.
    const auto ahead = static_cast<std::size_t>(sharding_.prefetch) + 1;
    for (std::size_t u = 0; u < pass.units.size(); ++u) {
      const Unit& unit = *pass.units[u];
      std::vector<OpId> after;
      if (limited && pass.before >= 0) after.push_back(pass.before);
      if (w_.stage == nullptr && step_ > 0) after.push_back(w_.micro_steps[step_ - 1].backward.front());
      if (limited && u >= pass.first_block() + ahead) after.push_back(step.forward[pass.units[u - ahead]->last]);
      const OpId gathered = gather(unit, "forward", after);
      gate(step.forward[at_once ? 0 : first_layer(unit)], gathered);
      if (step_ > 0) continue;
      for (const VariableId id : unit.variables) w_.gathers[w_.model.variable(id).layer].insert(gathered);
    }
  }

  /// That needs it. The root of a later chunk begins there.
  [[nodiscard]] LayerId first_layer(const Unit& unit) const {
    return unit.root && w_.stage != nullptr ? w_.model.variable(unit.variables.front()).layer : unit.first;
  }

  /// Before the first forward pass: one broadcast of each rank that owns anything, in the order of the ranks.
  void broadcast() {
    const auto owned = owned_variables(w_.model, w_.strategy);
    for (std::size_t rank = 0; rank < owned.size(); ++rank) {
      if (owned[rank].empty()) continue;
      const OpId sent = shard_.launch({.primitive = CollectivePrimitive::Broadcast, .root = static_cast<int>(rank)},
                                      gathered_bytes(w_.model, owned[rank], sharding_, w_.profile),
                                      reason(fmt::format("variables of rank {}", rank)), {});
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
  /// and then the unit is gathered that comes `prefetch` after the next. Where gradients of weights have a pass of
  /// their own, they are reduced behind that.
  void gather_for_backward_and_reduce(const Pass& pass) {
    const MicroStep& step = w_.micro_steps[step_];
    const std::vector<const Unit*>& units = pass.units;
    const std::size_t begin = pass.first_block();
    const bool gives_weights = pass.kind != StageTask::Kind::BackwardInput;
    const bool reduces = gives_weights && (step_ == w_.last_number() || sharding_.reduces_early());
    const bool again = sharding_.stage == 3 && sharding_.reshard_after_forward && shard_.ranks() > 1 &&
                       pass.kind != StageTask::Kind::BackwardWeight;
    std::size_t to_gather = again ? units.size() : begin;
    const auto gather_down_to = [&](std::size_t lowest, OpId after) {
      for (; to_gather > std::max(lowest, begin); --to_gather) {
        const Unit& unit = *units[to_gather - 1];
        std::vector<OpId> waits{after};
        if (pass.before >= 0) waits.push_back(pass.before);
        gate(step.backward_begin[unit.last], gather(unit, "backward", waits));
      }
    };
    const auto ahead = static_cast<std::size_t>(sharding_.prefetch) + 1;
    const auto below = [](std::size_t unit, std::size_t by) { return unit > by ? unit - by : 0; };
    if (units.size() > begin) gather_down_to(below(units.size(), ahead), step.forward[units.back()->last]);
    for (std::size_t u = units.size(); u-- > begin;) {
      if (reduces) reduce(*units[u], units[u]->first);
      const std::vector<OpId>& passed = step.input_gradient.empty() ? step.backward : step.input_gradient;
      gather_down_to(below(u, ahead), passed[units[u]->first]);
    }
    if (reduces && begin > 0) reduce(*units.front(), first_layer(*units.front()));
  }

  /// When the backward pass of its first layer has ended.
  void reduce(const Unit& unit, LayerId first) {
    OpId ready = w_.gradient_ready(w_.micro_steps[step_], first, overlap_);
    double bytes = reduced_bytes(w_.model, unit.variables, sharding_, w_.profile);
    if (shard_.ranks() > 1) {
      ready = shard_.launch({.primitive = CollectivePrimitive::ReduceScatter}, bytes, reason(unit.label + of_step()),
                            {ready});
      bytes /= shard_.ranks();
    }
    if (replica_.ranks() > 1)
      ready = replica_.launch({.primitive = CollectivePrimitive::AllReduce}, bytes, reason(unit.label + of_step()),
                              {ready});
    if (step_ != w_.last_number()) return;
    for (const VariableId id : unit.variables) w_.to_update.emplace_back(id, ready);
  }

  PlanWriter& w_;
  const Sharding& sharding_;
  std::vector<Unit> units_;
  SumGroup among_;  ///< ranks that hold the same variables
  ShardGroups groups_;
  GroupStream shard_;
  GroupStream replica_;
  double overlap_;        ///< PlanWriter::overlap_share
  std::size_t step_ = 0;  ///< the micro-step that is written
};

}  // namespace

bool exchanges_in_every_micro_step(const Strategy& strategy) {
  const Sharding& sharding = strategy.graph.sharding;
  return has_sharded(strategy) && (sharding.stage == 3 || sharding.reduces_early());
}

void write_sharded(PlanWriter& writer) {
  if (!has_sharded(writer.strategy)) return;
  const std::vector<Unit> units = units_of(writer.model, writer.strategy, writer.stage);
  if (units.empty()) return;
  const double share = largest_share(writer.model, writer.strategy);
  writer.update_share = {{GradientSum::Replicas, share},
                         {GradientSum::Stage, share},
                         {GradientSum::Experts, 1.0 / shard_ranks(writer.strategy.graph, GradientSum::Experts)}};
  if (writer.strategy.graph.parallel.experts == 1) return Writer(writer, units, GradientSum::Replicas).write();
  for (const GradientSum ranks : {GradientSum::Replicas, GradientSum::Experts}) {
    const std::vector<Unit> among = units_among(ranks, units, *writer.stage);
    if (!among.empty()) Writer(writer, among, ranks).write();
  }
}

}  // namespace simsync::detail
