#include "sim/plan/stages_estimate.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "sim/plan/estimate_context.hpp"
#include "sim/plan/mesh_groups.hpp"
#include "sim/plan/sharded_passes.hpp"
#include "sim/plan/stage_exchange.hpp"
#include "sim/plan/stage_profile.hpp"
#include "sim/plan/stage_times.hpp"
#include "sim/plan/units.hpp"
#include "strategies/pipeline/pipeline_timing.hpp"

namespace simsync {
namespace {

using detail::automatic;
using detail::MeshGroupKind;
using detail::MeshGroups;
using detail::Resource;
using detail::StageExchange;
using detail::StageTimes;
using detail::StageWork;
using detail::UnitStreams;
using detail::UnitTimes;

}  // namespace

struct StagesEstimator::Parts {
  const Model& model;
  const Cluster& cluster;
  int workers;
  MeshGroups groups;
  /// Tensor, pipeline, experts, context and whether it is balanced, chunks, blocks, sequence and splits.
  using Cut = std::tuple<int, int, int, int, bool, int, StageBlocks, bool, std::vector<SplitChoice>>;
  std::map<Cut, std::vector<StageModel>> stages = {};

  static Cut cut_of(const ModelParallel& parallel) {
    return {parallel.tensor, parallel.pipeline, parallel.experts,  parallel.context, parallel.context_balanced,
            parallel.chunks, parallel.blocks,   parallel.sequence, parallel.splits};
  }
};

namespace {

/// One strategy.
class StagesEstimate {
public:
  StagesEstimate(MeshGroups& groups, const std::vector<StageModel>& parts, const Model& model, const Strategy& strategy,
                 const Profile& profile)
      : groups_(groups),
        parts_(parts),
        strategy_(strategy),
        graph_(strategy.graph),
        profile_(profile),
        mesh_(graph_.parallel, graph_.workers),
        sharded_(has_sharded(strategy)),
        shard_ranks_(sharded_ ? shard_ranks(graph_, GradientSum::Replicas) : 1) {
    for (int stage = 0; stage < mesh_.stages(); ++stage) {
      const StageModel& part = parts_[index(stage)];
      const Profile of_stage = graph_.parallel.is_trivial() ? profile : stage_profile(profile, model, part);
      StageTimes times(groups_, mesh_, strategy, stage);
      work_.push_back(times.work(part, of_stage));
      exchanges_.emplace_back(times, mesh_, part, strategy, profile);
      work_.back().update *= exchanges_.back().updated_share();
    }
  }

  Evaluation run() {
    const PipelineShape shape = graph_.parallel.shape(graph_.micro_steps);
    PipelineTimes times;
    for (int stage = 0; stage < mesh_.stages(); ++stage) {
      times.chunks.emplace_back();
      for (int chunk = 0; chunk < graph_.parallel.chunks; ++chunk)
        times.chunks.back().push_back(chunk_times(stage, chunk));
      times.transfers.emplace_back(transfer_after(stage));
    }
    const PipelineTiming timing = time_pipeline(shape, times);
    Evaluation out{.step = timing.makespan, .bound = {}, .loads = {}};
    double late = 0.0;  // by how much the first gather holds up the whole step
    std::vector<double> summed;
    for (int stage = 0; stage < mesh_.stages(); ++stage) {
      const std::vector<TimedTask>& tasks = timing.stages[index(stage)];
      summed.push_back(exchanges_[index(stage)].summed(gradients_ready(stage, tasks), tasks.back().end.value()));
      late = std::max(late, late_by_gather(stage) - tasks.front().begin.value());
      add_loads(stage, out.loads);
      out.loads.collectives = std::max(out.loads.collectives, sent_to_stages(stage, times.transfers));
    }
    sum_shared_table(summed);
    for (int stage = 0; stage < mesh_.stages(); ++stage)
      out.step = std::max(out.step, Seconds{summed[index(stage)] + work(stage).update});
    out.step += Seconds{late};
    out.bound = std::max(out.loads.compute, out.loads.collectives);
    out.step = std::max(out.step, out.bound);
    return out;
  }

private:
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
  [[nodiscard]] const StageChunk& chunk_of(int stage, int chunk) const {
    return parts_[index(stage)].chunks[index(chunk)];
  }
  [[nodiscard]] const StageWork& work(int stage) const { return work_[index(stage)]; }
  double collective(int stage, const MeshGroups::Question& among, const CollectiveKind& kind, double bytes) {
    return StageTimes(groups_, mesh_, strategy_, stage).collective(among, kind, bytes);
  }
  [[nodiscard]] bool gathers_each_pass() const { return sharded_ && shard_ranks_ > 1 && graph_.sharding.stage == 3; }
  [[nodiscard]] bool reduces_each_pass() const { return sharded_ && graph_.sharding.reduces_early(); }

  ChunkTimes chunk_times(int stage, int chunk) {
    const auto [begin, end, received] = chunk_of(stage, chunk);
    const StageWork& of = work(stage);
    double forward = 0.0;
    double backward = 0.0;
    double weight = 0.0;
    for (LayerId id = begin; id < end; ++id) {
      forward += of.forward[id];
      backward += of.backward[id];
      weight += of.weight[id];
    }
    if (gathers_each_pass() || reduces_each_pass()) {
      const std::vector<UnitTimes> units = units_in(stage, chunk);
      const bool again = gathers_each_pass() && graph_.sharding.reshard_after_forward;
      UnitStreams ahead;
      UnitStreams back;
      if (gathers_each_pass()) forward = std::max(forward, forward_pass(units, graph_.sharding, true, 0.0, ahead));
      const double computed =
          backward_pass(units, graph_.sharding, {.gathers = again, .reduces = reduces_each_pass()}, 0.0, back);
      const double beside = std::max({computed, back.shard.busy, back.replicas.busy});
      weight *= backward > 0.0 ? std::max(1.0, beside / backward) : 1.0;
      backward = std::max(backward, beside);
    }
    if (graph_.parallel.schedule != PipelineSchedule::ZeroBubble) weight = 0.0;
    return {
        .forward = Seconds{forward}, .backward_input = Seconds{backward - weight}, .backward_weight = Seconds{weight}};
  }

  /// Of activations of a micro-step to the next model chunk.
  Seconds transfer_after(int stage) {
    if (mesh_.stages() == 1) return {};
    const int next = (stage + 1) % mesh_.stages();
    const bool wraps = next == 0;
    if (wraps && graph_.parallel.chunks == 1) return {};
    const double bytes = profile_.activation_bytes(chunk_of(next, wraps ? 1 : 0).received_bytes);
    return Seconds{collective(stage, {.kind = MeshGroupKind::Pair, .other = next},
                              automatic(CollectivePrimitive::SendReceive), bytes)};
  }

  /// Units that begin in a chunk, with the compute of the layers from there on.
  std::vector<UnitTimes> units_in(int stage, int chunk) {
    const auto [begin, end, received] = chunk_of(stage, chunk);
    std::vector<UnitTimes> out;
    std::vector<LayerId> first;
    for (const Unit& unit : exchanges_[index(stage)].units()) {
      const LayerId at = unit.root ? begin : unit.first;
      if (at < begin || at >= end || (unit.root && chunk > 0)) continue;
      out.push_back(exchanges_[index(stage)].times_of(unit));
      first.push_back(at);
    }
    if (out.empty()) return out;
    std::size_t unit = 0;
    for (LayerId id = begin; id < end; ++id) {
      while (unit + 1 < out.size() && first[unit + 1] <= id) ++unit;
      out[unit].forward += work(stage).forward[id];
      out[unit].backward += work(stage).backward[id];
    }
    return out;
  }

  /// When the gradients of each layer are there: after its chunk's last backward pass has got to it.
  [[nodiscard]] std::vector<double> gradients_ready(int stage, const std::vector<TimedTask>& tasks) const {
    std::vector<double> out(parts_[index(stage)].model.layer_count(), 0.0);
    for (const TimedTask& timed : tasks) {
      if (timed.task.kind == StageTask::Kind::Forward) continue;
      const auto [begin, end, received] = chunk_of(stage, timed.task.chunk);
      double length = 0.0;
      for (LayerId id = begin; id < end; ++id) length += work(stage).backward[id];
      const double stretch = length > 0.0 ? (timed.end - timed.begin).value() / length : 0.0;
      double now = timed.begin.value();
      for (LayerId id = end; id-- > begin;) out[id] = std::max(out[id], now += stretch * work(stage).backward[id]);
    }
    return out;
  }

  /// All that a rank of a stage sends to the stages beside it, one after another.
  [[nodiscard]] Seconds sent_to_stages(int stage, const std::vector<Seconds>& transfers) const {
    const int last = mesh_.stages() * graph_.parallel.chunks - 1;
    Seconds sum;
    for (int chunk = stage; chunk <= last && mesh_.stages() > 1; chunk += mesh_.stages()) {
      if (chunk < last) sum += transfers[index(stage)];
      if (chunk > 0) sum += transfers[index((stage + mesh_.stages() - 1) % mesh_.stages())];
    }
    return graph_.micro_steps * sum;
  }

  /// Gradients of a table that the first stage looks up and the last one multiplies with are summed between the two
  /// once both have theirs (`summed`, by stage).
  void sum_shared_table(std::vector<double>& summed) {
    std::vector<int> holders;
    for (int stage = 0; stage < mesh_.stages(); ++stage)
      if (parts_[index(stage)].shared_copy) holders.push_back(stage);
    if (holders.size() < 2) return;
    const int first = holders.front();
    const int last = holders.back();
    double bytes = 0.0;
    for (const int holder : holders) bytes = std::max(bytes, exchanges_[index(holder)].table_bytes());
    const double both = std::max(summed[index(first)], summed[index(last)]) +
                        collective(first, {.kind = MeshGroupKind::TiedPair, .other = last},
                                   automatic(CollectivePrimitive::AllReduce), bytes);
    summed[index(first)] = summed[index(last)] = both;
  }

  /// Below stage 3 of ZeRO: the first forward pass of a step waits for the parameters, unit by unit.
  double late_by_gather(int stage) {
    if (!sharded_ || shard_ranks_ < 2 || graph_.sharding.stage == 3) return 0.0;
    double late = 0.0;
    for (int chunk = 0; chunk < graph_.parallel.chunks; ++chunk) {
      Resource stream;
      double now = 0.0;
      double computed = 0.0;
      for (const UnitTimes& unit : units_in(stage, chunk)) {
        now = std::max(now, stream.serve(0.0, unit.gather)) + unit.forward;
        computed += unit.forward;
      }
      late += graph_.sharding.overlap_gather ? now - computed : stream.busy;
      if (graph_.sharding.overlap_gather) break;  // those of later chunks are there by then
    }
    return late;
  }

  void add_loads(int stage, StepLoads& loads) const {
    const StageWork& of = work(stage);
    loads.compute = std::max(loads.compute, Seconds{graph_.micro_steps * of.computed + of.update});
    loads.collectives = std::max(loads.collectives,
                                 Seconds{std::max(exchanges_[index(stage)].busy(), graph_.micro_steps * of.exchanged)});
  }

  MeshGroups& groups_;
  const std::vector<StageModel>& parts_;
  const Strategy& strategy_;
  const GraphStrategy& graph_;
  const Profile& profile_;
  ModelMesh mesh_;
  bool sharded_;
  int shard_ranks_;
  std::vector<StageWork> work_;           ///< by stage
  std::vector<StageExchange> exchanges_;  ///< by stage
};

}  // namespace

StagesEstimator::StagesEstimator(const Model& model, const Cluster& cluster, int workers)
    : parts_(std::make_unique<Parts>(Parts{model, cluster, workers, MeshGroups(cluster, workers)})) {}

StagesEstimator::~StagesEstimator() = default;
StagesEstimator::StagesEstimator(StagesEstimator&&) noexcept = default;

const std::vector<StageModel>& StagesEstimator::stages(const ModelParallel& parallel) {
  const auto found = parts_->stages.find(Parts::cut_of(parallel));
  if (found != parts_->stages.end()) return found->second;
  return parts_->stages.emplace(Parts::cut_of(parallel), stage_models(parts_->model, parallel)).first->second;
}

Evaluation StagesEstimator::estimate(const Strategy& strategy, const Profile& profile) {
  check_samples(parts_->model, strategy.graph.parallel, profile.batch);
  for (const VariableStrategy& entry : strategy.variables) {
    const bool reduced = std::holds_alternative<AllReduceSynchronizer>(entry.shards.front().synchronizer);
    if (entry.shards.size() != 1 || !(reduced || is_sharded(entry)) || is_sharded(entry) != has_sharded(strategy))
      throw PlanError("strategy '" + strategy.name +
                      "': only variables that are all of them all-reduced or sharded, and whole, are estimated");
  }
  return StagesEstimate(parts_->groups, stages(strategy.graph.parallel), parts_->model, strategy, profile).run();
}

}  // namespace simsync
