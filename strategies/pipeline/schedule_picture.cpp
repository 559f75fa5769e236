#include "strategies/pipeline/schedule_picture.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "strategies/pipeline/pipeline_timing.hpp"

namespace simsync {
namespace {

/// The second chunk has small letters.
std::string short_name(StageTask task) {
  const bool small = std::exchange(task.chunk, 0) == 1;
  std::string name = name_of(task);
  if (small) name.front() = static_cast<char>(std::tolower(name.front()));
  return name;
}

std::size_t column(Seconds time) {
  return static_cast<std::size_t>(std::lround(time.value()));
}

}  // namespace

std::string schedule_picture(const PipelineShape& shape) {
  check(shape);
  if (shape.chunks > 2)
    throw PlanError(fmt::format("a picture of {} model chunks per stage: expected 2 at most", shape.chunks));
  const Seconds one{1.0};
  const PipelineTiming timing = time_pipeline(shape, equal_times(shape, {one, one, one}));
  const std::size_t width = 1 + fmt::formatted_size("{}", shape.micro_batches - 1);
  const std::size_t label = fmt::formatted_size("{}", shape.stages - 1);
  std::string picture;
  for (std::size_t stage = 0; stage < timing.stages.size(); ++stage) {
    std::string line = fmt::format("{:>{}} ", stage, label);
    std::size_t at = 0;
    const auto idle_until = [&](std::size_t until) {
      for (; at < until; ++at) line += fmt::format("{:<{}}", '.', width);
    };
    for (const TimedTask& timed : timing.stages[stage]) {
      idle_until(column(timed.begin));
      const std::size_t columns = column(timed.end) - at;
      line += fmt::format("{:-<{}}", short_name(timed.task), columns * width);
      at += columns;
    }
    idle_until(column(timing.makespan));
    picture += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return picture;
}

}  // namespace simsync
