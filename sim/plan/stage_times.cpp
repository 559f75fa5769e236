#include "sim/plan/stage_times.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "models/blocks.hpp"
#include "sim/plan/boxing_collective.hpp"
#include "sim/plan/plan_writer.hpp"

namespace simsync::detail {

double StageTimes::collective(MeshGroups::Question among, const CollectiveKind& kind, double bytes) {
  among.stage = stage_;
  const MeshGroup& group = groups_.group(mesh_, among);
  if (group.ranks() < 2 || bytes <= 0.0) return 0.0;
  return groups_.time(group, kind, bytes) + graph_.per_operation_cost.value();
}

/// One pass of a run of layers, as compile_compute.cpp writes it.
class StageTimes::Pass {
public:
  Pass(StageTimes& times, const StageModel& part, const Profile& profile)
      : times_(times), part_(part), profile_(profile) {}

  /// Of ranks that share out layers, before a pass of this layer. Returns what it takes by itself.
  double exchange(const std::vector<TensorBoxing>& steps, LayerId layer) {
    double sum = 0.0;
    for (const TensorBoxing& step : steps) {
      const double time = times_.boxing(step, profile_);
      sum += time;
      const LayerKind kind = part_.model.layer(layer).kind;
      if (time <= 0.0) continue;
      if (!begun_ || !runs_beside(times_.graph_.parallel, step, kind, previous_)) {
        end_ = std::max(end_, joined_) + time;
        joined_ = 0.0;
        previous_.reset();
      } else if (step.op == BoxingOp::AllGather) {
        beside_ = stream_ = std::max({end_, joined_, stream_}) + time;
      } else {
        joined_ = stream_ = std::max(previous_begin_, stream_) + time;
      }
      begun_ = true;
    }
    return sum;
  }

  void compute(LayerId layer, double time) {
    previous_begin_ = std::max(end_, joined_);
    end_ = previous_begin_ + time;
    joined_ = std::exchange(beside_, 0.0);
    previous_ = part_.model.layer(layer).kind;
    begun_ = true;
  }

  /// By how much it has become longer since it was asked before.
  double advance() {
    const double now = std::max({end_, joined_, beside_});
    return now - std::exchange(told_, now);
  }

private:
  StageTimes& times_;
  const StageModel& part_;
  const Profile& profile_;
  bool begun_ = false;
  std::optional<LayerKind> previous_;  ///< of the layer whose pass ended last; none: an exchange did
  double previous_begin_ = 0.0;
  double end_ = 0.0;     ///< of what came last
  double joined_ = 0.0;  ///< of collectives beside it
  double beside_ = 0.0;  ///< of those beside what comes next
  double stream_ = 0.0;  ///< of all collectives
  double told_ = 0.0;
};

StageWork StageTimes::work(const StageModel& part, const Profile& profile) {
  const std::size_t layers = part.model.layer_count();
  const double slowdown = groups_.slowdown(mesh_, stage_);
  StageWork out{.forward = std::vector<double>(layers),
                .backward = std::vector<double>(layers),
                .weight = std::vector<double>(layers),
                .update = profile.update.value()};
  std::map<LayerId, LayerId> ends;  // of blocks that are computed again, with where they begin
  if (!profile.recomputed.empty())
    for (const Block& block : blocks_of(part.model)) ends[block.last] = block.first;
  const auto compute = [&](Pass& pass, LayerId layer, double time) {
    out.computed += time;
    pass.compute(layer, time);
  };
  for (const StageChunk& chunk : part.chunks) {
    Pass forward(*this, part, profile);
    for (LayerId id = chunk.begin; id < chunk.end; ++id) {
      out.exchanged += forward.exchange(part.boxing.before_forward[id], id);
      compute(forward, id, slowdown * profile.layers[id].forward.value());
      out.forward[id] = forward.advance();
    }
    Pass backward(*this, part, profile);
    for (LayerId id = chunk.end; id-- > chunk.begin;) {
      const double time = slowdown * profile.layers[id].backward.value();
      const LayerKind kind = part.model.layer(id).kind;
      const bool has_product = kind == LayerKind::Dense || kind == LayerKind::Conv;
      out.weight[id] = has_product ? kWeightShare * time : 0.0;
      out.exchanged += backward.exchange(part.boxing.before_backward[id], id);
      if (const auto block = ends.find(id); block != ends.end())
        for (LayerId again = block->second; again <= id; ++again) {
          if (!profile.recomputed[again]) continue;
          out.exchanged += backward.exchange(part.boxing.before_forward[again], again);
          compute(backward, again, slowdown * profile.layers[again].forward.value());
        }
      compute(backward, id, time);
      out.backward[id] = backward.advance();
    }
  }
  return out;
}

double StageTimes::boxing(const TensorBoxing& step, const Profile& profile) {
  const int ranks = ranks_of(step.group, graph_.parallel);
  const auto [primitive, bytes] = collective_of(step.op, profile.activation_bytes(step.bytes), ranks);
  const MeshGroupKind kind = step.group == BoxingGroup::Tensor ? MeshGroupKind::Tensor : MeshGroupKind::Shard;
  return collective({.kind = kind, .size = ranks}, automatic(primitive), bytes);
}

}  // namespace simsync::detail
