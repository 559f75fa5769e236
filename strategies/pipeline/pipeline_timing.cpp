#include "strategies/pipeline/pipeline_timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.hpp"

namespace simsync {
namespace {

using Kind = StageTask::Kind;

constexpr Seconds kNever{std::numeric_limits<double>::infinity()};

bool gives_input_gradient(Kind kind) {
  return kind == Kind::Backward || kind == Kind::BackwardInput;
}

bool gives_weight_gradients(Kind kind) {
  return kind == Kind::Backward || kind == Kind::BackwardWeight;
}

const char* word_for(Kind kind) {
  switch (kind) {
    case Kind::Forward:
      return "forward pass";
    case Kind::Backward:
      return "backward pass";
    case Kind::BackwardInput:
      return "input gradient";
    case Kind::BackwardWeight:
      return "weight gradients";
  }
  assertion_failed("every pass has a word", __FILE__, __LINE__);
}

int micro_batches_of(const std::vector<StageOrder>& orders) {
  int most = 0;
  for (const StageOrder& order : orders)
    for (const StageTask& task : order) most = std::max(most, task.micro_batch + 1);
  return most;
}

/// What a pass waits for: when it is sent or computed, and how long it then travels.
struct Need {
  Seconds at;
  Seconds transfer;
};

class PipelineRun {
public:
  PipelineRun(const std::vector<StageOrder>& orders, const PipelineTimes& times)
      : orders_(orders),
        times_(times),
        stages_(static_cast<int>(orders.size())),
        chunks_(static_cast<int>(times.chunks.front().size())),
        micro_batches_(micro_batches_of(orders)),
        free_(orders.size()) {
    const std::size_t passes = static_cast<std::size_t>(stages_ * chunks_) * static_cast<std::size_t>(micro_batches_);
    for (auto* ends : {&forward_, &input_, &weight_}) ends->assign(passes, kNever);
    timing_.stages.resize(orders.size());
  }

  PipelineTiming run() {
    std::vector<int> may_go_on;
    for (int stage = stages_ - 1; stage >= 0; --stage) may_go_on.push_back(stage);
    while (!may_go_on.empty()) {
      const int stage = may_go_on.back();
      may_go_on.pop_back();
      advance(stage, may_go_on);
    }
    expect_no_deadlock();
    expect_complete();
    sum_up();
    return std::move(timing_);
  }

private:
  [[nodiscard]] std::size_t index(int model_chunk, int micro_batch) const {
    return static_cast<std::size_t>(model_chunk) * static_cast<std::size_t>(micro_batches_) +
           static_cast<std::size_t>(micro_batch);
  }
  [[nodiscard]] const StageOrder& order(int stage) const { return orders_[static_cast<std::size_t>(stage)]; }
  [[nodiscard]] std::vector<TimedTask>& done(int stage) { return timing_.stages[static_cast<std::size_t>(stage)]; }
  [[nodiscard]] const ChunkTimes& chunk(int stage, int chunk) const {
    return times_.chunks[static_cast<std::size_t>(stage)][static_cast<std::size_t>(chunk)];
  }
  /// Between model chunk `earlier` and the next one; none within a stage.
  [[nodiscard]] Seconds transfer_after(int earlier) const {
    return stages_ == 1 ? Seconds{} : times_.transfers[static_cast<std::size_t>(earlier % stages_)];
  }
  [[nodiscard]] Seconds time_of(int stage, const StageTask& task) const {
    const ChunkTimes& times = chunk(stage, task.chunk);
    switch (task.kind) {
      case Kind::Forward:
        return times.forward;
      case Kind::Backward:
        return times.backward();
      case Kind::BackwardInput:
        return times.backward_input;
      case Kind::BackwardWeight:
        return times.backward_weight;
    }
    assertion_failed("every pass takes its time", __FILE__, __LINE__);
  }

  [[nodiscard]] Need need_of(const StageTask& task, int model_chunk) const {
    const int last = stages_ * chunks_ - 1;
    switch (task.kind) {
      case Kind::Forward:
        if (model_chunk == 0) return {};
        return {forward_[index(model_chunk - 1, task.micro_batch)], transfer_after(model_chunk - 1)};
      case Kind::Backward:
      case Kind::BackwardInput:
        if (model_chunk == last) return {forward_[index(model_chunk, task.micro_batch)], {}};
        return {input_[index(model_chunk + 1, task.micro_batch)], transfer_after(model_chunk)};
      case Kind::BackwardWeight:
        return {input_[index(model_chunk, task.micro_batch)], {}};
    }
    assertion_failed("every pass is known", __FILE__, __LINE__);
  }

  /// The neighbor that gets what the pass computes, as a model chunk.
  [[nodiscard]] std::optional<int> receiver_of(const StageTask& task, int model_chunk) const {
    if (task.kind == Kind::Forward && model_chunk < stages_ * chunks_ - 1) return model_chunk + 1;
    if (gives_input_gradient(task.kind) && model_chunk > 0) return model_chunk - 1;
    return std::nullopt;
  }

  void advance(int stage, std::vector<int>& may_go_on) {
    while (done(stage).size() < order(stage).size()) {
      const StageTask& task = order(stage)[done(stage).size()];
      SIMSYNC_ASSERT(task.micro_batch >= 0 && task.chunk >= 0 && task.chunk < chunks_);
      const int model_chunk = task.chunk * stages_ + stage;
      const Need need = need_of(task, model_chunk);
      if (need.at == kNever) return;
      const Seconds end = compute(stage, task, need);
      note_end(task, index(model_chunk, task.micro_batch), end);
      const std::optional<int> receiver = receiver_of(task, model_chunk);
      if (!receiver) continue;
      if (times_.transfers_occupy_stages)
        free_[static_cast<std::size_t>(stage)] += transfer_after(std::min(*receiver, model_chunk));
      if (*receiver % stages_ != stage) may_go_on.push_back(*receiver % stages_);
    }
  }

  /// The end of the pass, which begins as early as it can.
  Seconds compute(int stage, const StageTask& task, const Need& need) {
    Seconds& free = free_[static_cast<std::size_t>(stage)];
    const Seconds begin = times_.transfers_occupy_stages ? std::max(free, need.at) + need.transfer
                                                         : std::max(free, need.at + need.transfer);
    free = begin + time_of(stage, task);
    done(stage).push_back({task, begin, free});
    return free;
  }

  void note_end(const StageTask& task, std::size_t pass, Seconds end) {
    const auto note = [&](std::vector<Seconds>& ends) {
      SIMSYNC_ASSERT(ends[pass] == kNever);
      ends[pass] = end;
    };
    if (task.kind == Kind::Forward) note(forward_);
    if (gives_input_gradient(task.kind)) note(input_);
    if (gives_weight_gradients(task.kind)) note(weight_);
  }

  void expect_no_deadlock() {
    for (int stage = 0; stage < stages_; ++stage) {
      if (done(stage).size() == order(stage).size()) continue;
      const StageTask& task = order(stage)[done(stage).size()];
      throw PlanError(
          fmt::format("the orders of the stages wait for each other: stage {} never gets what the {} of "
                      "micro batch {} in chunk {} needs",
                      stage, word_for(task.kind), task.micro_batch, task.chunk));
    }
  }

  void expect_complete() const {
    for (const auto* ends : {&forward_, &input_, &weight_})
      SIMSYNC_ASSERT(std::find(ends->begin(), ends->end(), kNever) == ends->end());
  }

  void sum_up() {
    for (const auto& tasks : timing_.stages)
      if (!tasks.empty()) timing_.makespan = std::max(timing_.makespan, tasks.back().end);
    for (int stage = 0; stage < stages_; ++stage) {
      Seconds busy;
      for (const TimedTask& timed : done(stage)) busy += time_of(stage, timed.task);
      timing_.idle.push_back(timing_.makespan > Seconds{} ? 1.0 - busy / timing_.makespan : 0.0);
    }
  }

  const std::vector<StageOrder>& orders_;
  const PipelineTimes& times_;
  int stages_;
  int chunks_;
  int micro_batches_;
  std::vector<Seconds> free_;  // by stage
  // Ends of passes, by model chunk and micro batch.
  std::vector<Seconds> forward_;
  std::vector<Seconds> input_;
  std::vector<Seconds> weight_;
  PipelineTiming timing_;
};

void expect_times(std::size_t stages, const PipelineTimes& times) {
  const auto is_time = [](Seconds t) { return t >= Seconds{} && t < kNever; };
  SIMSYNC_ASSERT(stages >= 1 && times.chunks.size() == stages && times.transfers.size() == stages);
  for (const auto& chunks : times.chunks) {
    SIMSYNC_ASSERT(!chunks.empty() && chunks.size() == times.chunks.front().size());
    for (const ChunkTimes& chunk : chunks)
      SIMSYNC_ASSERT(is_time(chunk.forward) && is_time(chunk.backward_input) && is_time(chunk.backward_weight));
  }
  SIMSYNC_ASSERT(std::all_of(times.transfers.begin(), times.transfers.end(), is_time));
}

}  // namespace

PipelineTimes equal_times(const PipelineShape& shape, const ChunkTimes& times, Seconds transfer) {
  check(shape);
  const auto stages = static_cast<std::size_t>(shape.stages);
  PipelineTimes out;
  out.chunks.assign(stages, std::vector<ChunkTimes>(static_cast<std::size_t>(shape.chunks), times));
  out.transfers.assign(stages, transfer);
  return out;
}

PipelineTiming time_pipeline(const PipelineShape& shape, const PipelineTimes& times) {
  const std::vector<StageOrder> orders = stage_orders(shape);
  SIMSYNC_ASSERT(!times.chunks.empty() && times.chunks.front().size() == static_cast<std::size_t>(shape.chunks));
  return time_orders(orders, times);
}

PipelineTiming time_orders(const std::vector<StageOrder>& orders, const PipelineTimes& times) {
  expect_times(orders.size(), times);
  return PipelineRun(orders, times).run();
}

}  // namespace simsync
