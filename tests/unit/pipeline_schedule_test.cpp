// The orders of pipeline schedules, what stages hold, and the pictures of the README.
#include "strategies/pipeline/pipeline_schedule.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/file.hpp"
#include "strategies/pipeline/closed_forms.hpp"
#include "strategies/pipeline/schedule_picture.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/pipeline_support.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

/// "F0a B0a": passes, micro batches, chunks.
std::string text(const StageOrder& order) {
  std::string out;
  for (const StageTask& task : order) {
    if (!out.empty()) out += ' ';
    out += "FBIW"[static_cast<int>(task.kind)];
    out += std::to_string(task.micro_batch);
    out += static_cast<char>('a' + task.chunk);
  }
  return out;
}

std::string error_of(const PipelineShape& shape) {
  try {
    check(shape);
  } catch (const PlanError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("GPipe goes back from the last micro batch on every stage", "[pipeline]") {
  for (int stage = 0; stage < 3; ++stage)
    CHECK(text(stage_order({PipelineSchedule::GPipe, 3, 4}, stage)) == "F0a F1a F2a F3a B3a B2a B1a B0a");
}

TEST_CASE("1F1B runs one forward for each stage behind before it alternates", "[pipeline]") {
  // Stage 0 of 3 has two stages behind it: F0 F1, then F2 B0, F3 B1, and B2 B3 are left.
  const PipelineShape shape{PipelineSchedule::OneForwardOneBackward, 3, 4};
  CHECK(text(stage_order(shape, 0)) == "F0a F1a F2a B0a F3a B1a B2a B3a");
  CHECK(text(stage_order(shape, 1)) == "F0a F1a B0a F2a B1a F3a B2a B3a");
  CHECK(text(stage_order(shape, 2)) == "F0a B0a F1a B1a F2a B2a F3a B3a");
  // Fewer micro batches than stages behind: all forwards first.
  CHECK(text(stage_order({PipelineSchedule::OneForwardOneBackward, 4, 2}, 0)) == "F0a F1a B0a B1a");
}

TEST_CASE("interleaved takes groups of micro batches through the chunks as Megatron-LM does", "[pipeline]") {
  // 2 stages, 2 chunks, 4 micro batches. Forwards go 0a 1a 0b 1b 2a 3a 2b 3b, backwards 0b 1b 0a 1a 2b 3b 2a 3a.
  // Warm-up: stage 0 (2-0-1) 2 + (2-1) 2 = 4, stage 1 0 + 2 = 2.
  const PipelineShape shape{PipelineSchedule::Interleaved, 2, 4, 2};
  CHECK(text(stage_order(shape, 0)) == "F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a B2b B3b B2a B3a");
  CHECK(text(stage_order(shape, 1)) == "F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a");
  // As many micro batches as stages (4), stage 0: 3 x 2 + 1 x 4 = 10 would be more than all 8 forwards.
  CHECK(text(stage_order({PipelineSchedule::Interleaved, 4, 4, 2}, 0)) ==
        "F0a F1a F2a F3a F0b F1b F2b F3b B0b B1b B2b B3b B0a B1a B2a B3a");
}

TEST_CASE("ZB-H1 delays weight gradients by as many micro batches as there are stages before", "[pipeline]") {
  const PipelineShape shape{PipelineSchedule::ZeroBubble, 3, 4};
  CHECK(text(stage_order(shape, 0)) == "F0a F1a F2a I0a W0a F3a I1a W1a I2a W2a I3a W3a");
  CHECK(text(stage_order(shape, 1)) == "F0a F1a I0a F2a I1a W0a F3a I2a W1a I3a W2a W3a");
  CHECK(text(stage_order(shape, 2)) == "F0a I0a F1a I1a F2a I2a W0a F3a I3a W1a W2a W3a");
}

TEST_CASE("every order has every pass once", "[pipeline]") {
  for_each_shape([](const PipelineShape& shape) {
    const bool split = shape.schedule == PipelineSchedule::ZeroBubble;
    for (int stage = 0; stage < shape.stages; ++stage) {
      const StageOrder order = stage_order(shape, stage);
      std::vector<int> seen(static_cast<std::size_t>(4 * shape.passes()), 0);
      for (const StageTask& task : order)
        ++seen.at(static_cast<std::size_t>(
            (static_cast<int>(task.kind) * shape.chunks + task.chunk) * shape.micro_batches + task.micro_batch));
      for (int kind = 0; kind < 4; ++kind) {
        const bool expected = kind == 0 || (kind == 1) != split;
        const auto first = seen.begin() + kind * shape.passes();
        if (!std::all_of(first, first + shape.passes(), [&](int count) { return count == (expected ? 1 : 0); }))
          FAIL(describe(shape) << ", stage " << stage << ", kind " << kind);
      }
    }
  });
}

TEST_CASE("what a stage holds is as the closed form says", "[pipeline]") {
  int shapes = 0;
  for_each_shape([&](const PipelineShape& shape) {
    ++shapes;
    for (int stage = 0; stage < shape.stages; ++stage) {
      const StageOrder order = stage_order(shape, stage);
      for (const double kept : {0.0, 0.25, 1.0}) {
        if (count_held(order, kept) != most_held(shape, stage, kept))
          FAIL(describe(shape) << ", stage " << stage << ": counted " << count_held(order, kept) << ", closed "
                               << most_held(shape, stage, kept));
      }
    }
  });
  // 3 schedules x 16 x 64, and of interleaved 3 numbers of chunks x the sum of floor(64 / p) over p of 1 to 16
  // (64 + 32 + 21 + 16 + 12 + 10 + 9 + 8 + 7 + 6 + 5 + 5 + 4 + 4 + 4 + 4 = 211): 3072 + 633.
  CHECK(shapes == 3705);
}

TEST_CASE("memory of 4 stages and 8 micro batches by hand", "[pipeline]") {
  // 1F1B: 4, 3, 2, 1. Interleaved with 2 chunks: 2 (3 - s) + 4 + 1 = 11, 9, 7, 5 halves of a stage. ZB-H1: 4 on every
  // stage if all is kept until the weight gradients; the last stage has 1 whole and 3 kept ones.
  const PipelineShape one{PipelineSchedule::OneForwardOneBackward, 4, 8};
  const PipelineShape two{PipelineSchedule::Interleaved, 4, 8, 2};
  const PipelineShape zero{PipelineSchedule::ZeroBubble, 4, 8};
  for (int stage = 0; stage < 4; ++stage) {
    CHECK(count_held(stage_order({PipelineSchedule::GPipe, 4, 8}, stage)) == 8.0);
    CHECK(count_held(stage_order(one, stage)) == 4.0 - stage);
    CHECK(count_held(stage_order(two, stage)) == 11.0 - 2.0 * stage);
    CHECK(count_held(stage_order(zero, stage)) == 4.0);
    CHECK(count_held(stage_order(zero, stage), 0.5) == 4.0 - 0.5 * stage);
  }
}

TEST_CASE("schedules have words", "[pipeline]") {
  CHECK(name_of(PipelineSchedule::GPipe) == std::string("gpipe"));
  CHECK(name_of(PipelineSchedule::OneForwardOneBackward) == std::string("1f1b"));
  CHECK(name_of(PipelineSchedule::Interleaved) == std::string("interleaved"));
  CHECK(name_of(PipelineSchedule::ZeroBubble) == std::string("zero-bubble"));
}

TEST_CASE("shapes that no schedule has say which would do", "[pipeline]") {
  using S = PipelineSchedule;
  CHECK(error_of({S::GPipe, 0, 1}) == "a pipeline with 0 stages: expected 1 or more");
  CHECK(error_of({S::GPipe, 1, -1}) == "a pipeline with -1 micro batches: expected 1 or more");
  CHECK(error_of({S::GPipe, 1, 1, 0}) == "a pipeline with 0 model chunks per stage: expected 1 or more");
  CHECK(error_of({S::OneForwardOneBackward, 4, 8, 2}) ==
        "1f1b has one model chunk per stage and not 2: expected 1, or the schedule interleaved");
  CHECK(error_of({S::Interleaved, 4, 8, 1}) ==
        "interleaved has several model chunks per stage: expected 2 or more, or the schedule 1f1b");
  CHECK(error_of({S::Interleaved, 4, 10, 2}) ==
        "interleaved takes micro batches in groups of as many as there are stages, 4, and 10 are no whole number of "
        "groups: expected 8 or 12");
  CHECK(error_of({S::Interleaved, 4, 3, 2}) ==
        "interleaved takes micro batches in groups of as many as there are stages, 4, and 3 are no whole number of "
        "groups: expected 4");
  CHECK(error_of({S::GPipe, 2048, 2048}) == "");
  CHECK(error_of({S::GPipe, 2048, 2049}) ==
        "2049 micro batches through 2048 stages of 1 model chunks are too many: expected 4194304 forward passes at "
        "most");
  CHECK_THROWS_AS(stage_order({S::GPipe, 0, 1}, 0), PlanError);
}

TEST_CASE("the pictures of the README are drawn by the program", "[pipeline]") {
  const std::string page = read_file(std::string(SIMSYNC_TESTS_FOLDER) + "/../strategies/pipeline/README.md");
  for (const auto& [word, schedule] : pipeline_schedule_words()) {
    const int chunks = schedule == PipelineSchedule::Interleaved ? 2 : 1;
    CHECK_THAT(page, ContainsSubstring(schedule_picture({schedule, 4, 8, chunks})));
  }
}

TEST_CASE("a picture has a column for each unit of time", "[pipeline]") {
  // Stage 1 gets the input at 1, computes F0 to 2 and B0 to 4; stage 0 then has B0 to 6. ZB-H1 sends the gradient at 3.
  CHECK(schedule_picture({PipelineSchedule::GPipe, 2, 1}) ==
        "0 F0. . . B0--\n"
        "1 . F0B0--. .\n");
  CHECK(schedule_picture({PipelineSchedule::ZeroBubble, 2, 1}) ==
        "0 F0. . B0W0\n"
        "1 . F0B0W0.\n");
  CHECK_THROWS_WITH(schedule_picture({PipelineSchedule::Interleaved, 2, 2, 3}),
                    "a picture of 3 model chunks per stage: expected 2 at most");
}
