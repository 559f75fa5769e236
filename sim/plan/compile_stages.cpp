// Strategies whose replicas are several ranks: tensor parallelism inside of stages, a pipeline of stages, and among
// those that hold the same variables the gradients as in data parallelism.
//
// A rank sends per micro-step and split layer what strategies/layer_boxing.hpp says; from stage to stage go the
// activations of a micro-step and back their gradients, on a stream for each direction. Gradients are exchanged over
// Plan groupings `replicas`, one for each stage.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "sim/plan/compile.hpp"
#include "sim/plan/group_stream.hpp"
#include "sim/plan/stage_profile.hpp"
#include "sim/plan/units.hpp"

namespace simsync::detail {
namespace {

/// What compile knows of one stage, for a writer of its own.
struct Stage {
  StageModel part;
  Profile profile;
  Strategy strategy;
};

/// One end of a transfer of activations.
struct PassEnd {
  int stage = 0;
  int chunk = 0;
};

class StagesWriter {
public:
  explicit StagesWriter(PlanWriter& whole)
      : whole_(whole),
        plan_(whole.plan),
        parallel_(whole.strategy.graph.parallel),
        mesh_(parallel_, whole.strategy.graph.workers) {
    check_samples(whole.model, parallel_, whole.profile.batch);
    for (StageModel& part : stage_models(whole.model, parallel_)) {
      Profile profile = stage_profile(whole.profile, whole.model, part);
      Strategy strategy = stage_strategy(whole.strategy, part);
      stages_.push_back({std::move(part), std::move(profile), std::move(strategy)});
    }
  }

  void write() {
    for (int stage = 0; stage < mesh_.stages(); ++stage) add_writer(stage);
    for (PlanWriter& writer : writers_) write_compute(writer);
    write_activations();
    for (PlanWriter& writer : writers_) {
      write_all_reduce(writer);
      write_sharded(writer);
      sum_partial_shares(writer);
    }
    write_shared_table();
    for (PlanWriter& writer : writers_) write_updates(writer);
  }

private:
  /// Ranks for which `group_of` says -1 take no part.
  template <typename GroupOf>
  GroupingId add_grouping(const std::string& name, const GroupOf& group_of) {
    std::vector<int> groups;
    for (int rank = 0; rank < mesh_.ranks(); ++rank) groups.push_back(group_of(mesh_.place_of(rank)));
    plan_.groupings.emplace_back(name, std::move(groups));
    return static_cast<GroupingId>(plan_.groupings.size()) - 1;
  }

  void add_writer(int number) {
    Stage& stage = stages_[static_cast<std::size_t>(number)];
    PlanWriter& writer = writers_.emplace_back(PlanWriter{.model = stage.part.model,
                                                          .profile = stage.profile,
                                                          .cluster = whole_.cluster,
                                                          .strategy = stage.strategy,
                                                          .plan = plan_});
    writer.stage = &stage.part;
    writer.stage_number = number;
    writer.first_layer = static_cast<std::int32_t>(plan_.layers.size());
    for (LayerId id = 0; id < stage.part.model.layer_count(); ++id)
      plan_.layers.push_back(stage.part.model.layer(id).name);
    writer.compute = whole_.compute;
    const std::string suffix = mesh_.stages() > 1 ? fmt::format(" of stage {}", number) : "";
    const auto here = [&](const MeshPlace& place, int group) { return place.stage == number ? group : -1; };
    if (mesh_.stages() > 1)
      writer.each = add_grouping("ranks" + suffix, [&](const MeshPlace& place) {
        return here(place, place.replica * mesh_.tensor() + place.tensor);
      });
    writer.replicas =
        add_grouping("replicas" + suffix, [&](const MeshPlace& place) { return here(place, place.tensor); });
    writer.communication = writer.add_queue({.name = "communication", .grouping = writer.replicas, .slots = 1});
    add_groups(writer, suffix);
  }

  /// Ranks that exchange something else than activations or gradients of all replicas.
  void add_groups(PlanWriter& writer, const std::string& suffix) {
    const Stage& stage = stages_[static_cast<std::size_t>(writer.stage_number)];
    const auto here = [&](const MeshPlace& place, int group) {
      return place.stage == writer.stage_number ? group : -1;
    };
    const auto next_replicas = [&](const char* name, int count) {
      return add_grouping(name + suffix, [&](const MeshPlace& place) {
        return here(place, place.replica / count * mesh_.tensor() + place.tensor);
      });
    };
    if (mesh_.tensor() > 1)
      writer.boxing[BoxingGroup::Tensor] =
          add_grouping("tensor" + suffix, [&](const MeshPlace& place) { return here(place, place.replica); });
    if (mesh_.context() > 1) writer.boxing[BoxingGroup::Context] = next_replicas("context", mesh_.context());
    // A stage without experts exchanges nothing among these, and has no such variables.
    if (mesh_.experts() > 1) writer.boxing[BoxingGroup::Experts] = next_replicas("experts", mesh_.experts());
    const auto add_sum = [&](GradientSum sum, const std::string& name, const auto& group_of) {
      const std::vector<GradientSum>& all = stage.part.gradient_sum;
      if (std::find(all.begin(), all.end(), sum) == all.end()) return;
      const GroupingId ranks = add_grouping(name + suffix, group_of);
      writer.sums[sum] = {ranks, writer.add_queue({.name = "communication of " + name, .grouping = ranks, .slots = 1})};
    };
    if (!has_sharded(stage.strategy))
      add_sum(GradientSum::Stage, "all", [&](const MeshPlace& place) { return here(place, 0); });
    add_sum(GradientSum::Experts, "replicas of experts", [&](const MeshPlace& place) {
      return here(place, place.replica % mesh_.experts() * mesh_.tensor() + place.tensor);
    });
  }

  /// Of sharded variables whose gradients tensor-parallel ranks have parts of, the shares are summed at the end, all at
  /// once, as Megatron-LM does with its layer norms (_allreduce_non_tensor_model_parallel_grads).
  void sum_partial_shares(PlanWriter& writer) {
    if (!has_sharded(writer.strategy)) return;
    std::vector<OpId> ready;
    std::vector<VariableId> partial;
    for (const auto& [variable, op] : writer.to_update) {
      if (writer.sum_of(variable) != GradientSum::Stage) continue;
      ready.push_back(op);
      partial.push_back(variable);
    }
    if (ready.empty()) return;
    const double bytes = reduced_bytes(writer.model, partial, writer.strategy.graph.sharding, writer.profile);
    GroupStream stream(writer, writer.boxing.at(BoxingGroup::Tensor), -1);
    const OpId summed = stream.add({.primitive = CollectivePrimitive::AllReduce},
                                   bytes / shard_ranks(writer.strategy.graph, GradientSum::Stage),
                                   {Phase::Synchronize, -1, "gradients of tokens"}, ready);
    for (auto& [variable, op] : writer.to_update)
      if (writer.sum_of(variable) == GradientSum::Stage) op = summed;
  }

  PlanWriter& writer_of(int stage) { return writers_[static_cast<std::size_t>(stage)]; }

  /// Pairs of ranks with the same place in two stages.
  GroupingId pairs(const std::string& name, int one, int other) {
    return add_grouping(name, [&](const MeshPlace& place) {
      return place.stage == one || place.stage == other ? place.replica * mesh_.tensor() + place.tensor : -1;
    });
  }

  /// A communicator and a stream for each direction: what comes back must not wait for what is still to be sent.
  GroupStream& channel(Phase pass, int from, int to) {
    const auto known = channels_.find({pass, from, to});
    if (known != channels_.end()) return known->second;
    const char* what = pass == Phase::Forward ? "activations" : "gradients";
    const GroupingId grouping = pairs(fmt::format("{} from stage {} to {}", what, from, to), from, to);
    const QueueId queue = whole_.add_queue({.name = what, .grouping = grouping, .slots = 1});
    return channels_.try_emplace({pass, from, to}, whole_, grouping, queue).first->second;
  }

  /// In the order in which the stages that send compute.
  void write_activations() {
    if (mesh_.stages() == 1) return;
    const int last = mesh_.stages() * parallel_.chunks - 1;
    const PipelineShape shape = parallel_.shape(whole_.profile.micro_steps);
    const auto end_of = [&](int chunk) { return PassEnd{chunk % mesh_.stages(), chunk / mesh_.stages()}; };
    for (int stage = 0; stage < mesh_.stages(); ++stage) {
      for (const StageTask& task : stage_order(shape, stage)) {
        const int chunk = task.chunk * mesh_.stages() + stage;
        if (task.kind == StageTask::Kind::BackwardWeight) continue;
        const bool onward = task.kind == StageTask::Kind::Forward;
        if (chunk == (onward ? last : 0)) continue;
        send(onward ? Phase::Forward : Phase::Backward, end_of(chunk), end_of(onward ? chunk + 1 : chunk - 1),
             task.micro_batch);
      }
    }
    for (auto& [key, channel] : channels_) channel.repeat();
  }

  void send(Phase pass, const PassEnd& from, const PassEnd& to, int step) {
    const PassEnd& receives = pass == Phase::Forward ? to : from;
    const StageChunk& chunk =
        stages_[static_cast<std::size_t>(receives.stage)].part.chunks[static_cast<std::size_t>(receives.chunk)];
    const double bytes = whole_.profile.activation_bytes(chunk.received_bytes);
    const OpId sent = writer_of(from.stage).passes.at({pass, step, from.chunk}).last;
    const OpId waits = writer_of(to.stage).passes.at({pass, step, to.chunk}).first;
    const OpId launches = writer_of(to.stage).passes.at({pass, step, to.chunk}).launch;
    Reason reason{Phase::Activations, -1,
                  fmt::format("{}micro-step {} from stage {} to {}", pass == Phase::Forward ? "" : "gradients of ",
                              step + 1, from.stage, to.stage)};
    // Ranks of a pair stand in the order of their stages.
    const OpId arrives =
        channel(pass, from.stage, to.stage)
            .launch({.primitive = CollectivePrimitive::SendReceive, .root = from.stage < to.stage ? 0 : 1}, bytes,
                    std::move(reason), {sent});
    plan_.ops[static_cast<std::size_t>(waits)].after.push_back({arrives, 0});
    if (parallel_.host.transfer.value() > 0.0)
      plan_.ops[static_cast<std::size_t>(launches)].after.push_back({arrives, 0});
    // The buffer that it is received in is free once the pass of the step before has read it.
    plan_.ops[static_cast<std::size_t>(arrives)].after.push_back({waits, 1});
  }

  /// A table that the first stage looks up and the last one multiplies with has two gradients, which both need summed:
  /// they are all-reduced between the two stages once each stage has summed its own among replicas. tied_table_bytes
  /// says how much of them.
  void write_shared_table() {
    std::vector<PlanWriter*> holders;
    for (PlanWriter& writer : writers_)
      if (writer.stage->shared_copy) holders.push_back(&writer);
    if (holders.size() < 2) return;
    const GroupingId grouping = pairs("tied table", holders.front()->stage_number, holders.back()->stage_number);
    GroupStream stream(whole_, grouping, -1);
    std::vector<OpId> ready;
    double bytes = 0.0;
    for (PlanWriter* writer : holders) {
      const VariableId copy = *writer->stage->shared_copy;
      // The larger of two, where the splits of the lookup and of the product cut it into different parts.
      bytes = std::max(bytes, tied_table_bytes(*writer->stage, writer->strategy, writer->profile));
      const auto own = std::find_if(writer->to_update.begin(), writer->to_update.end(),
                                    [&](const auto& update) { return update.first == copy; });
      ready.push_back(own != writer->to_update.end() ? own->second
                                                     : writer->gradient_ready(writer->model.variable(copy).layer));
    }
    const OpId summed = stream.launch({.primitive = CollectivePrimitive::AllReduce}, bytes,
                                      {Phase::Synchronize, -1, "tied table"}, ready);
    for (PlanWriter* writer : holders) writer->to_update.emplace_back(*writer->stage->shared_copy, summed);
  }

  PlanWriter& whole_;
  Plan& plan_;
  const ModelParallel& parallel_;
  ModelMesh mesh_;
  std::deque<Stage> stages_;
  std::deque<PlanWriter> writers_;
  std::map<std::tuple<Phase, int, int>, GroupStream> channels_;  ///< by what goes from which stage to which
};

}  // namespace

void write_stages(PlanWriter& whole) {
  StagesWriter(whole).write();
}

}  // namespace simsync::detail
