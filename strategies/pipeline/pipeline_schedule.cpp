#include "strategies/pipeline/pipeline_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"

namespace simsync {
namespace {

using Kind = StageTask::Kind;

std::optional<std::string> obstacle_to_chunks(const PipelineShape& shape) {
  if (shape.schedule != PipelineSchedule::Interleaved) {
    if (shape.chunks == 1) return std::nullopt;
    return fmt::format("{} has one model chunk per stage and not {}: expected 1, or the schedule interleaved",
                       name_of(shape.schedule), shape.chunks);
  }
  if (shape.chunks == 1)
    return "interleaved has several model chunks per stage: expected 2 or more, or the schedule 1f1b";
  const int rest = shape.micro_batches % shape.stages;
  if (rest == 0) return std::nullopt;
  const int below = shape.micro_batches - rest;
  const std::string legal = below == 0 ? "" : fmt::format("{} or ", below);
  return fmt::format(
      "interleaved takes micro batches in groups of as many as there are stages, {}, and {} "
      "are no whole number of groups: expected {}{}",
      shape.stages, shape.micro_batches, legal, below + shape.stages);
}

/// Narayanan et al., ICML 2021: as many forwards as there are stages behind, then one forward and one backward in turn.
StageOrder one_forward_one_backward(const PipelineShape& shape, int stage) {
  const int all = shape.micro_batches;
  const int warm_up = std::min(shape.stages - 1 - stage, all);
  StageOrder order;
  for (int i = 0; i < warm_up; ++i) order.push_back({Kind::Forward, i});
  for (int i = 0; i < all; ++i) {
    if (warm_up + i < all) order.push_back({Kind::Forward, warm_up + i});
    order.push_back({Kind::Backward, i});
  }
  return order;
}

/// Huang et al., figure 2c: the last micro batch goes back first. PyTorch's ScheduleGPipe begins with the first one;
/// the times are the same, since all micro batches take as long.
StageOrder gpipe(const PipelineShape& shape) {
  StageOrder order;
  for (int i = 0; i < shape.micro_batches; ++i) order.push_back({Kind::Forward, i});
  for (int i = shape.micro_batches - 1; i >= 0; --i) order.push_back({Kind::Backward, i});
  return order;
}

/// Pass `k` of a stage under interleaved: groups of as many micro batches as there are stages go through the chunks,
/// the first to the last forward, the last to the first backward.
StageTask interleaved_pass(const PipelineShape& shape, int k, Kind kind) {
  const int group = k / shape.model_chunks();
  const int in_group = k % shape.model_chunks();
  const int chunk = in_group / shape.stages;
  return {kind, group * shape.stages + in_group % shape.stages,
          kind == Kind::Forward ? chunk : shape.chunks - 1 - chunk};
}

/// Megatron-LM, megatron/core/pipeline_parallel/schedules.py, get_pp_rank_microbatches and get_schedule_table.
StageOrder interleaved(const PipelineShape& shape, int stage) {
  const int all = shape.passes();
  const int warm_up = std::min((shape.stages - 1 - stage) * 2 + (shape.chunks - 1) * shape.stages, all);
  StageOrder order;
  for (int k = 0; k < warm_up; ++k) order.push_back(interleaved_pass(shape, k, Kind::Forward));
  for (int k = 0; k < all; ++k) {
    if (warm_up + k < all) order.push_back(interleaved_pass(shape, warm_up + k, Kind::Forward));
    order.push_back(interleaved_pass(shape, k, Kind::Backward));
  }
  return order;
}

/// Qi et al., section 2.1: as 1F1B, and weight gradients stay as many micro batches behind as there are stages before,
/// so that every stage has as many micro batches in flight.
StageOrder zero_bubble(const PipelineShape& shape, int stage) {
  StageOrder order;
  for (const StageTask& task : one_forward_one_backward(shape, stage)) {
    if (task.kind == Kind::Forward) {
      order.push_back(task);
      continue;
    }
    order.push_back({Kind::BackwardInput, task.micro_batch});
    if (task.micro_batch >= stage) order.push_back({Kind::BackwardWeight, task.micro_batch - stage});
  }
  for (int i = std::max(0, shape.micro_batches - stage); i < shape.micro_batches; ++i)
    order.push_back({Kind::BackwardWeight, i});
  return order;
}

}  // namespace

const Words<PipelineSchedule>& pipeline_schedule_words() {
  static const Words<PipelineSchedule> kWords{{"gpipe", PipelineSchedule::GPipe},
                                              {"1f1b", PipelineSchedule::OneForwardOneBackward},
                                              {"interleaved", PipelineSchedule::Interleaved},
                                              {"zero-bubble", PipelineSchedule::ZeroBubble}};
  return kWords;
}

const char* name_of(PipelineSchedule schedule) {
  return word_for(pipeline_schedule_words(), schedule).c_str();
}

std::optional<std::string> obstacle_to(const PipelineShape& shape) {
  const std::initializer_list<std::pair<const char*, int>> counts{
      {"stages", shape.stages}, {"micro batches", shape.micro_batches}, {"model chunks per stage", shape.chunks}};
  for (const auto& [what, value] : counts)
    if (value < 1) return fmt::format("a pipeline with {} {}: expected 1 or more", value, what);
  if (auto obstacle = obstacle_to_chunks(shape)) return obstacle;
  const std::int64_t per_micro_batch = std::int64_t{shape.stages} * shape.chunks;
  if (per_micro_batch <= kMostPasses / shape.micro_batches) return std::nullopt;
  return fmt::format(
      "{} micro batches through {} stages of {} model chunks are too many: expected {} "
      "forward passes at most",
      shape.micro_batches, shape.stages, shape.chunks, kMostPasses);
}

void check(const PipelineShape& shape) {
  if (const auto obstacle = obstacle_to(shape)) throw PlanError(*obstacle);
}

StageOrder stage_order(const PipelineShape& shape, int stage) {
  check(shape);
  SIMSYNC_ASSERT(stage >= 0 && stage < shape.stages);
  switch (shape.schedule) {
    case PipelineSchedule::GPipe:
      return gpipe(shape);
    case PipelineSchedule::OneForwardOneBackward:
      return one_forward_one_backward(shape, stage);
    case PipelineSchedule::Interleaved:
      return interleaved(shape, stage);
    case PipelineSchedule::ZeroBubble:
      return zero_bubble(shape, stage);
  }
  assertion_failed("every schedule has an order", __FILE__, __LINE__);
}

std::vector<StageOrder> stage_orders(const PipelineShape& shape) {
  check(shape);
  std::vector<StageOrder> orders;
  for (int stage = 0; stage < shape.stages; ++stage) orders.push_back(stage_order(shape, stage));
  return orders;
}

double count_held(const StageOrder& order, double kept) {
  SIMSYNC_ASSERT(kept >= 0.0 && kept <= 1.0);
  std::int64_t whole = 0;         // between forward and backward
  std::int64_t weights_only = 0;  // between the input gradient and those of the weights
  double most = 0.0;
  for (const StageTask& task : order) {
    switch (task.kind) {
      case Kind::Forward:
        ++whole;
        break;
      case Kind::Backward:
        --whole;
        break;
      case Kind::BackwardInput:
        --whole;
        ++weights_only;
        break;
      case Kind::BackwardWeight:
        --weights_only;
        break;
    }
    SIMSYNC_ASSERT(whole >= 0 && weights_only >= 0);
    most = std::max(most, static_cast<double>(whole) + kept * static_cast<double>(weights_only));
  }
  return most;
}

std::string name_of(const StageTask& task) {
  const char letter = task.kind == StageTask::Kind::Forward          ? 'F'
                      : task.kind == StageTask::Kind::BackwardWeight ? 'W'
                                                                     : 'B';
  return task.chunk == 0 ? fmt::format("{}{}", letter, task.micro_batch)
                         : fmt::format("{}{} chunk {}", letter, task.micro_batch, task.chunk);
}

}  // namespace simsync
