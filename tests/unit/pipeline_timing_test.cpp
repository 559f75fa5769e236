// When the passes of a pipeline run: by hand, by equation, and tick by tick.
#include "strategies/pipeline/pipeline_timing.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "base/random.hpp"
#include "strategies/pipeline/closed_forms.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/pipeline_support.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

using Kind = StageTask::Kind;

constexpr double kExact = 1e-12;

ChunkTimes chunk(double forward, double input, double weight) {
  return {Seconds{forward}, Seconds{input}, Seconds{weight}};
}

/// Begin and end of every pass of a stage.
std::vector<std::pair<double, double>> spans(const PipelineTiming& timing, std::size_t stage) {
  std::vector<std::pair<double, double>> out;
  for (const TimedTask& timed : timing.stages.at(stage)) out.emplace_back(timed.begin.value(), timed.end.value());
  return out;
}

using Spans = std::vector<std::pair<double, double>>;

/// The same by brute force, for whole times: a clock ticks, and in every tick each stage goes on if it can.
class Ticks {
public:
  Ticks(const std::vector<StageOrder>& orders, const PipelineTimes& times) : orders_(orders), times_(times) {
    stages_.resize(orders.size());
  }

  /// Ends of all passes, by stage.
  std::vector<std::vector<int>> run() {
    for (now_ = 0; now_ < 100'000; ++now_) {
      bool moved = true;
      while (moved) {
        moved = false;
        for (std::size_t s = 0; s < stages_.size(); ++s) moved = step(static_cast<int>(s)) || moved;
      }
      if (std::all_of(stages_.begin(), stages_.end(), [&](const Stage& s) { return s.done; })) break;
    }
    std::vector<std::vector<int>> ends;
    for (const Stage& stage : stages_) ends.push_back(stage.ends);
    return ends;
  }

private:
  enum class Phase { Ready, Receiving, Computing, Sending };
  struct Stage {
    Phase phase = Phase::Ready;
    int until = 0;
    std::size_t at = 0;
    bool done = false;
    std::vector<int> ends;
  };
  /// What is sent: an activation (0) or gradient (1) for a model chunk, of a micro batch; a transfer there takes so
  /// long.
  using Message = std::tuple<int, int, int>;

  [[nodiscard]] int stages() const { return static_cast<int>(stages_.size()); }
  [[nodiscard]] int last() const { return stages() * static_cast<int>(times_.chunks.front().size()) - 1; }
  [[nodiscard]] int link(int from, int to) const {
    if (stages() == 1) return 0;
    return static_cast<int>(times_.transfers[static_cast<std::size_t>(std::min(from, to) % stages())].value());
  }
  [[nodiscard]] int duration(int s, const StageTask& task) const {
    const ChunkTimes& t = times_.chunks[static_cast<std::size_t>(s)][static_cast<std::size_t>(task.chunk)];
    double time = 0;
    if (task.kind == Kind::Forward) time += t.forward.value();
    if (task.kind == Kind::Backward || task.kind == Kind::BackwardInput) time += t.backward_input.value();
    if (task.kind == Kind::Backward || task.kind == Kind::BackwardWeight) time += t.backward_weight.value();
    return static_cast<int>(time);
  }

  bool step(int s) {
    Stage& stage = stages_[static_cast<std::size_t>(s)];
    const StageOrder& order = orders_[static_cast<std::size_t>(s)];
    if (stage.until > now_ || stage.done) return false;
    if (stage.at == order.size()) return stage.done = true;
    const StageTask& task = order[stage.at];
    const int k = task.chunk * stages() + s;
    const bool forward = task.kind == Kind::Forward;
    const bool local = task.kind == Kind::BackwardWeight || (forward ? k == 0 : k == last());
    const int from = forward ? k - 1 : k + 1;
    switch (stage.phase) {
      case Phase::Ready: {
        if (local) return go(stage, Phase::Computing, duration(s, task));
        const auto sent = sent_.find({forward ? 0 : 1, k, task.micro_batch});
        if (sent == sent_.end()) return false;
        if (times_.transfers_occupy_stages) return go(stage, Phase::Receiving, link(from, k));
        if (sent->second + link(from, k) > now_) return false;
        return go(stage, Phase::Computing, duration(s, task));
      }
      case Phase::Receiving:
        return go(stage, Phase::Computing, duration(s, task));
      case Phase::Computing: {
        stage.ends.push_back(now_);
        const int to = forward ? k + 1 : k - 1;
        const bool sends = task.kind != Kind::BackwardWeight && to >= 0 && to <= last();
        if (sends) sent_[{forward ? 0 : 1, to, task.micro_batch}] = now_;
        return go(stage, Phase::Sending, sends && times_.transfers_occupy_stages ? link(k, to) : 0);
      }
      case Phase::Sending:
        ++stage.at;
        return go(stage, Phase::Ready, 0);
    }
    return false;
  }

  bool go(Stage& stage, Phase phase, int time) {
    stage.phase = phase;
    stage.until = now_ + time;
    return true;
  }

  const std::vector<StageOrder>& orders_;
  const PipelineTimes& times_;
  std::vector<Stage> stages_;
  std::map<Message, int> sent_;
  int now_ = 0;
};

/// Whole times from 0 to `most`, different for every chunk and link.
PipelineTimes drawn_times(const PipelineShape& shape, Random& random, double most) {
  const auto draw = [&] { return Seconds{static_cast<double>(random.below(static_cast<std::uint64_t>(most) + 1))}; };
  PipelineTimes times = equal_times(shape, {});
  for (auto& stage : times.chunks)
    for (ChunkTimes& t : stage) t = {draw(), draw(), draw()};
  for (Seconds& t : times.transfers) t = draw();
  return times;
}

}  // namespace

TEST_CASE("two stages with transfers by hand", "[pipeline]") {
  // 1F1B, forward 1, backward 1 + 1, transfer 2. Stage 1 gets F0 at 3, computes to 4, B0 to 6; F1 came at 4: to 7, B1
  // to
  // 9. Stage 0 has forwards to 2; gradients come at 8 and 11: backwards to 10 and 13. Each computes for 6 of 13.
  const PipelineShape shape{PipelineSchedule::OneForwardOneBackward, 2, 2};
  PipelineTimes times = equal_times(shape, chunk(1, 1, 1), Seconds{2.0});
  const PipelineTiming beside = time_pipeline(shape, times);
  CHECK(spans(beside, 0) == Spans{{0, 1}, {1, 2}, {8, 10}, {11, 13}});
  CHECK(spans(beside, 1) == Spans{{3, 4}, {4, 6}, {6, 7}, {7, 9}});
  CHECK(beside.makespan == Seconds{13.0});
  for (const double idle : beside.idle) CHECK_THAT(idle, WithinRel(7.0 / 13.0, kExact));

  // Transfers that occupy both: stage 0 sends F0 until 3, F1 from 4 to 6. Stage 1 receives F0 from 1 to 3, computes F0
  // to 4 and B0 to 6, sends to 8, receives F1 to 10, computes F1 to 11 and B1 to 13, sends to 15. Stage 0 receives from
  // 6 to 8, B0 to 10; receives from 13 to 15, B1 to 17.
  times.transfers_occupy_stages = true;
  const PipelineTiming apart = time_pipeline(shape, times);
  CHECK(spans(apart, 0) == Spans{{0, 1}, {3, 4}, {8, 10}, {15, 17}});
  CHECK(spans(apart, 1) == Spans{{3, 4}, {4, 6}, {10, 11}, {11, 13}});
  CHECK(apart.makespan == Seconds{17.0});
}

TEST_CASE("the transfer after the last stage leads to the next chunk of the first", "[pipeline]") {
  // 2 stages, 2 chunks, 2 micro batches, forward 1 and backward 1 in all; links take 0 and 10. Forwards of chunk a:
  // stage 0 to 2, stage 1 to 2 and 3; chunk b comes to stage 0 at 12 and 13: stage 0 to 13 and 14, stage 1 to 14, B0b
  // to 15, F1b to 16, B1b to 17. Stage 0 has B0b to 16 and B1b to 18, which reach stage 1 at 26 and 28: B0a to 27, B1a
  // to 29; stage 0 to 28 and 30.
  const PipelineShape shape{PipelineSchedule::Interleaved, 2, 2, 2};
  PipelineTimes times = equal_times(shape, chunk(1, 1, 0));
  times.transfers = {Seconds{0.0}, Seconds{10.0}};
  CHECK(time_pipeline(shape, times).makespan == Seconds{30.0});
}

TEST_CASE("equal stages take what the closed form says", "[pipeline]") {
  for_each_shape([](const PipelineShape& shape) {
    for (const auto& times :
         {chunk(1, 1, 1), chunk(1, 2, 0.5), chunk(2, 1, 1.5), chunk(0.3, 0.4, 1.7), chunk(1, 1, 0)}) {
      const PipelineTiming timing = time_pipeline(shape, equal_times(shape, times));
      const Seconds closed = pipeline_time(shape, times);
      if (!WithinRel(closed.value(), kExact).match(timing.makespan.value()))
        FAIL(describe(shape) << ": " << timing.makespan.value() << ", closed " << closed.value());
      for (const double idle : timing.idle)
        if (!WithinAbs(bubble_share(shape, times), kExact).match(idle))
          FAIL(describe(shape) << ": idle " << idle << ", closed " << bubble_share(shape, times));
    }
  });
}

TEST_CASE("bubbles of 4 stages and 8 micro batches by hand", "[pipeline]") {
  const auto bubble = [](PipelineSchedule schedule, int chunks, const ChunkTimes& times) {
    return bubble_time({schedule, 4, 8, chunks}, times).value();
  };
  using S = PipelineSchedule;
  CHECK(bubble(S::GPipe, 1, chunk(1, 1, 1)) == 9.0);
  CHECK(bubble(S::OneForwardOneBackward, 1, chunk(1, 1, 1)) == 9.0);
  CHECK(bubble(S::Interleaved, 2, chunk(0.5, 0.5, 0.5)) == 4.5);
  // (p - 1) (F + B - W): 3 and 4.5. With W = 3 above F and B: 3 (2 - 1), not 3 (2 - 3).
  CHECK(bubble(S::ZeroBubble, 1, chunk(1, 1, 1)) == 3.0);
  CHECK(bubble(S::ZeroBubble, 1, chunk(1, 1, 0.5)) == 4.5);
  CHECK(bubble(S::ZeroBubble, 1, chunk(1, 1, 3)) == 3.0);
  // 2 micro batches on 4 stages: 3 (1 + 1) - (2 - 1) 1.
  CHECK(bubble_time({S::ZeroBubble, 4, 2}, chunk(1, 1, 1)).value() == 5.0);
  // 9 of 8 x 3 + 9.
  CHECK_THAT(bubble_share({S::GPipe, 4, 8}, chunk(1, 1, 1)), WithinRel(9.0 / 33.0, kExact));
  CHECK(bubble_share({S::GPipe, 4, 8}, chunk(0, 0, 0)) == 0.0);
}

TEST_CASE("the example of the README", "[pipeline]") {
  // 8 micro batches x 2 chunks x 30 ms = 480 ms of work, 3 x 30 ms of bubble, 90 of 570 ms idle.
  const PipelineShape shape{PipelineSchedule::Interleaved, 4, 8, 2};
  const PipelineTiming timing = time_pipeline(shape, equal_times(shape, chunk(0.010, 0.010, 0.010)));
  CHECK_THAT(timing.makespan.value(), WithinRel(0.570, kExact));
  CHECK_THAT(timing.idle[0], WithinRel(90.0 / 570.0, kExact));
}

TEST_CASE("unequal stages run as a clock that ticks says", "[pipeline]") {
  const std::uint64_t seed = 20240117;
  INFO("seed " << seed);
  Random random(seed);
  int passes = 0;
  for (int trial = 0; trial < 1200; ++trial) {
    const int stages = 1 + static_cast<int>(random.below(6));
    PipelineShape shape{pipeline_schedule_words()[random.below(4)].second, stages,
                        1 + static_cast<int>(random.below(12)), 1};
    if (shape.schedule == PipelineSchedule::Interleaved) {
      shape.micro_batches = stages * (1 + static_cast<int>(random.below(3)));
      shape.chunks = 2 + static_cast<int>(random.below(3));
    }
    PipelineTimes times = drawn_times(shape, random, 5);
    times.transfers_occupy_stages = random.below(2) == 1;
    INFO(describe(shape) << (times.transfers_occupy_stages ? ", occupied" : ", overlapped") << ", trial " << trial);
    const std::vector<StageOrder> orders = stage_orders(shape);
    const auto expected = Ticks(orders, times).run();
    const PipelineTiming timing = time_pipeline(shape, times);
    for (std::size_t stage = 0; stage < orders.size(); ++stage) {
      REQUIRE(expected[stage].size() == orders[stage].size());
      for (std::size_t i = 0; i < orders[stage].size(); ++i) {
        REQUIRE(timing.stages[stage][i].task == orders[stage][i]);
        REQUIRE(timing.stages[stage][i].end.value() == expected[stage][i]);
        ++passes;
      }
    }
  }
  CHECK(passes > 50'000);
}

TEST_CASE("orders that wait for each other are refused", "[pipeline]") {
  // Stage 0 wants to go back before it went forward.
  const PipelineTimes times = equal_times({PipelineSchedule::GPipe, 2, 1}, chunk(1, 1, 1));
  const StageOrder right{{Kind::Forward, 0}, {Kind::Backward, 0}};
  CHECK_THROWS_WITH(time_orders({{{Kind::Backward, 0}, {Kind::Forward, 0}}, right}, times),
                    "the orders of the stages wait for each other: stage 0 never gets what the backward pass of micro "
                    "batch 0 in chunk 0 needs");
  // A weight gradient before its input gradient, on the last stage.
  CHECK_THROWS_WITH(
      time_orders({right, {{Kind::Forward, 0}, {Kind::BackwardWeight, 0}, {Kind::BackwardInput, 0}}}, times),
      "the orders of the stages wait for each other: stage 0 never gets what the backward pass of micro batch 0 in "
      "chunk 0 needs");
  // Stage 0 takes micro batch 1 back first, stage 1 takes 0 back before it lets 1 in.
  CHECK_THROWS_AS(time_orders({{{Kind::Forward, 0}, {Kind::Backward, 0}, {Kind::Forward, 1}, {Kind::Backward, 1}},
                               {{Kind::Forward, 0}, {Kind::Forward, 1}, {Kind::Backward, 0}, {Kind::Backward, 1}}},
                              times),
                  PlanError);
  // All forwards first and backwards from the first micro batch on, which is no schedule here: that works.
  const StageOrder forwards_first{{Kind::Forward, 0}, {Kind::Forward, 1}, {Kind::Backward, 0}, {Kind::Backward, 1}};
  const PipelineTiming timing = time_orders({forwards_first, forwards_first}, times);
  // Stage 1: F0 to 2, F1 to 3, B0 to 5, B1 to 7; stage 0: B0 to 7, B1 to 9.
  CHECK(timing.makespan == Seconds{9.0});
}

TEST_CASE("orders without all passes, or with one twice, are bugs", "[pipeline]") {
  const PipelineTimes times = equal_times({PipelineSchedule::GPipe, 1, 1}, chunk(1, 1, 1));
  CHECK_THROWS_AS(time_orders({{{Kind::Forward, 0}}}, times), std::logic_error);
  CHECK_THROWS_AS(time_orders({{{Kind::Forward, 0}, {Kind::BackwardInput, 0}}}, times), std::logic_error);
  CHECK_THROWS_AS(time_orders({{{Kind::Forward, 0}, {Kind::Forward, 0}, {Kind::Backward, 0}}}, times),
                  std::logic_error);
}
