// The compute of a step: micro-steps, in each of them the forward and the backward pass, layer by layer.
#include <fmt/format.h>

#include <algorithm>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>
#include <numbers>
#include <optional>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "models/blocks.hpp"
#include "sim/plan/boxing_collective.hpp"
#include "sim/plan/group_stream.hpp"
#include "sim/plan/launch_stream.hpp"

namespace simsync::detail {

double expected_largest(int draws) {
  // The integral would be of rounding alone, which quadrature takes long for.
  if (draws <= 1) return 0.0;
  // The mean of a maximum M: the integral over x > 0 of P(M > x) - P(M < -x).
  const auto tails = [&](double x) {
    const double above = 0.5 * std::erfc(x / std::numbers::sqrt2);
    return -std::expm1(draws * std::log1p(-above)) - std::pow(above, draws);
  };
  constexpr unsigned kPoints = 61;
  constexpr double kFar = 12.0;  // standard deviations; a billion draws stay below 7
  return boost::math::quadrature::gauss_kronrod<double, kPoints>::integrate(tails, 0.0, kFar);
}

namespace {

/// By how much ranks in lock step are held up in every step by the slowest of them, as a factor of their compute. Steps
/// that are drawn one by one (Draws::step_variation) need none.
double waiting_for_slowest(const PlanWriter& writer) {
  if (!in_lock_step(writer.strategy) || writer.plan.draws.step_variation > 0.0) return 1.0;
  double variation = 0.0;
  for (const int node : writer.plan.nodes)
    variation = std::max(variation, writer.cluster.devices.at(writer.cluster.group_of(node).device).compute_variation);
  if (variation <= 0.0) return 1.0;
  return 1.0 + variation * expected_largest(writer.plan.rank_count());
}

/// Largest first.
using Shares = std::set<double, std::greater<>>;

/// Shares of the backward pass that may run beside communication, but for all and nothing of it.
Shares overlap_shares(const GraphStrategy& graph) {
  Shares out;
  for (const OverlapShares& shares : {graph.collectives_overlap, graph.servers_overlap})
    for (const double share : {shares.in_node, shares.between_nodes})
      if (share > 0.0 && share < 1.0) out.insert(share);
  return out;
}

/// A pass of one layer.
struct Piece {
  LayerId layer = 0;
  Phase phase = Phase::Forward;
  Seconds LayerTime::*time = &LayerTime::forward;
};

class ComputeWriter {
public:
  explicit ComputeWriter(PlanWriter& writer)
      : w_(writer),
        waiting_(waiting_for_slowest(writer)),
        drawn_(!in_lock_step(writer.strategy)),
        shares_(overlap_shares(writer.strategy.graph)) {
    if (!w_.profile.recomputed.empty())
      for (const Block& block : blocks_of(w_.model)) block_ending_at_[block.last] = block;
    for (const Block& block : blocks_of(w_.model)) starts_block_.insert(block.first);
    for (LayerId layer = 0; layer < w_.model.layer_count(); ++layer) {
      w_.backward_left.push_back(pass_);
      for_backward_of(layer, [&](const Piece& piece) { pass_ += time_of(piece); });
    }
    w_.backward_pass = pass_;
  }

  void write() {
    w_.plan.waiting = std::max(w_.plan.waiting, (waiting_ - 1.0) * w_.profile.compute());
    if (w_.stage != nullptr) return write_stage();
    const int count = w_.profile.micro_steps;
    const bool each = exchanges_in_every_micro_step(w_.strategy);
    for (int step = 0; step < count; ++step) {
      if (step == 0 || step + 1 == count || each) {
        write_micro_step();
      } else if (step == 1) {
        write_alike(count - 2);
      }
    }
  }

private:
  [[nodiscard]] Seconds time_of(const Piece& piece) const { return w_.profile.layers[piece.layer].*piece.time; }

  /// What the backward pass of a layer begins with, where a block's activations are computed again, and itself.
  template <typename Visit>
  void for_backward_of(LayerId layer, const Visit& visit) const {
    const auto block = block_ending_at_.find(layer);
    if (block != block_ending_at_.end())
      for (LayerId id = block->second.first; id <= block->second.last; ++id)
        if (w_.profile.recomputed[id]) visit(Piece{id, Phase::Recompute, &LayerTime::forward});
    visit(Piece{layer, Phase::Backward, &LayerTime::backward});
  }

  /// The passes of a stage, in the order of its schedule.
  void write_stage() {
    const ModelParallel& parallel = w_.strategy.graph.parallel;
    const PipelineShape shape = parallel.shape(w_.profile.micro_steps);
    MicroStep step;
    for (auto* ops : {&step.forward, &step.backward, &step.backward_begin, &step.input_gradient})
      ops->resize(w_.model.layer_count(), -1);
    w_.micro_steps.assign(static_cast<std::size_t>(w_.profile.micro_steps), step);
    for (const auto& [group, grouping] : w_.boxing) streams_.try_emplace(group, w_, grouping, QueueId{-1});
    if (parallel.host.any()) launches_.emplace(w_);
    for (const StageTask& task : stage_order(shape, w_.stage_number)) {
      const bool passes = task.kind != StageTask::Kind::BackwardWeight;
      const Phase way = task.kind == StageTask::Kind::Forward ? Phase::Forward : Phase::Backward;
      launched_ = launches_ ? launches_->flush() : -1;
      const OpId launch = launched_;
      first_ = -1;
      pass_of_stage_ = task;
      write_pass(task);
      if (way == Phase::Backward) w_.last_back = static_cast<std::size_t>(task.micro_batch);
      if (!passes) continue;
      const OpId sent = announces(task) ? launches_->announce(previous_) : previous_;
      w_.passes[{way, task.micro_batch, task.chunk}] = {.first = first_, .last = sent, .launch = launch};
    }
    if (launches_) launches_->repeat();
  }

  /// Whether host and device wait for the transfer of what a pass gives.
  [[nodiscard]] bool announces(const StageTask& task) const {
    const ModelParallel& parallel = w_.strategy.graph.parallel;
    const int chunk = task.chunk * parallel.pipeline + w_.stage_number;
    const int last = task.kind == StageTask::Kind::Forward ? parallel.pipeline * parallel.chunks - 1 : 0;
    return parallel.host.transfer.value() > 0.0 && chunk != last;
  }

  void write_pass(const StageTask& task) {
    const StageChunk& chunk = w_.stage->chunks[static_cast<std::size_t>(task.chunk)];
    MicroStep& step = w_.micro_steps[static_cast<std::size_t>(task.micro_batch)];
    if (task.kind == StageTask::Kind::Forward) {
      for (LayerId layer = chunk.begin; layer < chunk.end; ++layer) {
        launch(layer, layer + 1 == chunk.end);
        exchange(w_.stage->boxing.before_forward[layer], layer, "forward");
        step.forward[layer] = compute({.layer = layer});
      }
      return;
    }
    for (LayerId layer = chunk.end; layer-- > chunk.begin;) {
      if (task.kind == StageTask::Kind::BackwardWeight) {
        if (weight_share(layer) > 0.0) (void)compute(backward_of(layer), weight_share(layer));
      } else {
        launch(layer, layer == chunk.begin);
        step.backward_begin[layer] = static_cast<OpId>(w_.plan.ops.size());
        exchange(w_.stage->boxing.before_backward[layer], layer, "backward");
        const double share = task.kind == StageTask::Kind::Backward ? 1.0 : 1.0 - weight_share(layer);
        for_backward_of(layer, [&](const Piece& piece) {
          if (piece.phase == Phase::Recompute)
            exchange(w_.stage->boxing.before_forward[piece.layer], piece.layer, "again");
          (void)compute(piece, piece.phase == Phase::Backward ? share : 1.0);
        });
      }
      step.backward[layer] = previous_;
      if (task.kind != StageTask::Kind::BackwardWeight) step.input_gradient[layer] = previous_;
      for (const double share : shares_)
        if (w_.backward_left[layer] <= share * w_.backward_pass) step.backward_but.try_emplace(share, previous_);
    }
  }

  static Piece backward_of(LayerId layer) { return {layer, Phase::Backward, &LayerTime::backward}; }

  /// Of a backward pass, what gives the gradients of weights: of a product with them half.
  [[nodiscard]] double weight_share(LayerId layer) const {
    const Layer& one = w_.model.layer(layer);
    return one.kind == LayerKind::Dense || one.kind == LayerKind::Conv ? kWeightShare : 0.0;
  }

  /// The host launches a pass of a layer. The device looks at what is launched once a block and at the end of a pass.
  void launch(LayerId layer, bool ends) {
    if (!launches_) return;
    if (w_.stage->layer_of[layer]) launches_->add_layer();
    if (ends || starts_block_.contains(layer)) launched_ = launches_->flush();
  }

  /// What ranks that share out layers exchange before a pass of a layer; the pass waits for it.
  void exchange(const std::vector<TensorBoxing>& steps, LayerId layer, const char* pass) {
    for (const TensorBoxing& step : steps) {
      const auto found = streams_.find(step.group);
      if (found == streams_.end()) continue;  // of one rank
      GroupStream& stream = found->second;
      if (launches_) launches_->add_collective(stream.ranks());
      const auto [primitive, bytes] = collective_of(step.op, w_.profile.activation_bytes(step.bytes), stream.ranks());
      Reason reason{Phase::SplitLayer, w_.layer_number(layer),
                    fmt::format("{} ({})", w_.model.layer(layer).name, pass)};
      if (first_ >= 0 && runs_beside(w_.strategy.graph.parallel, step, w_.model.layer(layer).kind, previous_kind_)) {
        (step.op == BoxingOp::AllGather ? beside_ : joined_)
            .push_back(stream.launch({.primitive = primitive}, bytes, std::move(reason), beside_what(step.op)));
        continue;
      }
      std::vector<OpId> after = std::exchange(joined_, {});
      if (previous_ >= 0) after.push_back(previous_);
      if (launched_ >= 0) after.push_back(std::exchange(launched_, -1));
      previous_ = stream.add({.primitive = primitive}, bytes, std::move(reason), after);
      previous_kind_.reset();
      if (first_ < 0) first_ = previous_;
    }
  }

  /// What it waits for: all-gathers for what ended last, reduce-scatters for what the product beside them waits for.
  [[nodiscard]] std::vector<OpId> beside_what(BoxingOp op) const {
    std::vector<OpId> out;
    if (op == BoxingOp::AllGather) {
      out = joined_;
      out.push_back(previous_);
      if (launched_ >= 0) out.push_back(launched_);
      return out;
    }
    for (const After& after : w_.plan.ops[static_cast<std::size_t>(previous_)].after)
      if (after.lag == 0) out.push_back(after.op);
    return out;
  }

  /// The next op of the compute stream.
  OpId add(Reason reason, Compute work) {
    Op op;
    op.grouping = w_.each;
    op.queue = w_.compute;
    op.reason = std::move(reason);
    op.body = std::move(work);
    if (previous_ >= 0) op.after.push_back({previous_, 0});
    if (launched_ >= 0) op.after.push_back({std::exchange(launched_, -1), 0});
    for (const OpId id : joined_) op.after.push_back({id, 0});
    joined_ = std::exchange(beside_, {});
    previous_ = w_.add(std::move(op));
    if (first_ < 0) first_ = previous_;
    return previous_;
  }

  OpId compute(const Piece& piece, double fraction = 1.0) {
    const std::int32_t layer = w_.layer_number(piece.layer);
    const Seconds duration = fraction * waiting_ * time_of(piece);
    Compute work{.duration = duration, .parts = {{layer, piece.phase, duration, pass_of_stage_}}, .samples = {}};
    if (drawn_)
      for (const auto& step : w_.profile.steps) work.samples.push_back(fraction * (step[piece.layer].*piece.time));
    previous_kind_ = w_.model.layer(piece.layer).kind;
    return add({piece.phase, layer, w_.model.layer(piece.layer).name}, std::move(work));
  }

  void write_micro_step() {
    const std::size_t layers = w_.model.layer_count();
    MicroStep& step = w_.micro_steps.emplace_back();
    step.forward.resize(layers);
    step.backward.resize(layers);
    step.backward_begin.resize(layers);
    for (LayerId layer = 0; layer < layers; ++layer) step.forward[layer] = compute({.layer = layer});
    // A layer is cut where so much of the pass is still to come as may run beside communication.
    auto next = shares_.begin();
    Seconds to_come = pass_;
    for (LayerId layer = layers; layer-- > 0;) {
      step.backward_begin[layer] = static_cast<OpId>(w_.plan.ops.size());
      for_backward_of(layer, [&](const Piece& piece) {
        const Seconds whole = time_of(piece);
        double written = 0.0;
        for (; next != shares_.end() && to_come - whole < *next * pass_; ++next) {
          const double until = (to_come - *next * pass_) / whole;
          if (until > written) (void)compute(piece, until - written);
          written = std::max(written, until);
          step.backward_but[*next] = previous_;
        }
        step.backward[layer] = compute(piece, 1.0 - written);
        to_come = to_come - whole;
      });
    }
  }

  /// Micro-steps in a row of which nothing is sent.
  void write_alike(int count) {
    const double times = count;
    const auto whole = [&](const std::vector<LayerTime>& layers) {
      Seconds sum;
      for (LayerId layer = 0; layer < layers.size(); ++layer) {
        sum += layers[layer].forward;
        for_backward_of(layer, [&](const Piece& piece) { sum += layers[piece.layer].*piece.time; });
      }
      return times * sum;
    };
    const Seconds duration = waiting_ * whole(w_.profile.layers);
    Compute work{.duration = duration, .parts = {{-1, Phase::MicroSteps, duration}}, .samples = {}};
    if (drawn_)
      for (const auto& step : w_.profile.steps) work.samples.push_back(whole(step));
    (void)add({Phase::MicroSteps, -1, count > 1 ? fmt::format("2 to {}", count + 1) : "2"}, std::move(work));
  }

  PlanWriter& w_;
  double waiting_;
  bool drawn_;
  Shares shares_;
  std::map<LayerId, Block> block_ending_at_;    ///< empty when nothing is computed again
  Seconds pass_;                                ///< one backward pass
  std::map<BoxingGroup, GroupStream> streams_;  ///< of ranks that share out layers
  std::optional<LaunchStream> launches_;        ///< of the host, where it has a cost
  std::set<LayerId> starts_block_;              ///< first layers of blocks
  std::optional<StageTask> pass_of_stage_;      ///< that is written
  OpId launched_ = -1;                          ///< what the next op of the device waits for
  OpId previous_ = -1;
  std::optional<LayerKind> previous_kind_;  ///< of the layer that `previous_` is a pass of; none: of no layer
  std::vector<OpId> joined_;                ///< collectives beside `previous_`, which the next op waits for, too
  std::vector<OpId> beside_;                ///< those beside the next op
  OpId first_ = -1;                         ///< of a pass of a stage
};

}  // namespace

OpId PlanWriter::gradient_ready(LayerId layer, double share) const {
  return gradient_ready(last_step(), layer, share);
}

OpId PlanWriter::gradient_ready(const MicroStep& step, LayerId layer, double share) const {
  if (strategy.graph.overlap == Overlap::None || share <= 0.0) return step.backward.front();
  if (share >= 1.0) return step.backward[layer];
  // Nothing leaves while more than `share` of the pass is still to come.
  return backward_left[layer] <= share * backward_pass ? step.backward[layer] : step.backward_but.at(share);
}

void write_compute(PlanWriter& writer) {
  ComputeWriter(writer).write();
  writer.gates.resize(writer.model.layer_count());
  writer.gathers.resize(writer.model.layer_count());
}

}  // namespace simsync::detail
