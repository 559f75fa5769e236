#include "strategies/pipeline/closed_forms.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace simsync {

Seconds bubble_time(const PipelineShape& shape, const ChunkTimes& times) {
  check(shape);
  const int others = shape.stages - 1;
  if (shape.schedule != PipelineSchedule::ZeroBubble) return others * (times.forward + times.backward());
  const int filled = std::min(shape.stages, shape.micro_batches) - 1;
  return others * (times.forward + times.backward_input) -
         filled * std::min({times.forward, times.backward_input, times.backward_weight});
}

Seconds pipeline_time(const PipelineShape& shape, const ChunkTimes& times) {
  return bubble_time(shape, times) + shape.passes() * (times.forward + times.backward());
}

double bubble_share(const PipelineShape& shape, const ChunkTimes& times) {
  const Seconds whole = pipeline_time(shape, times);
  return whole > Seconds{0.0} ? bubble_time(shape, times) / whole : 0.0;
}

double most_held(const PipelineShape& shape, int stage, double kept) {
  check(shape);
  SIMSYNC_ASSERT(stage >= 0 && stage < shape.stages);
  SIMSYNC_ASSERT(kept >= 0.0 && kept <= 1.0);
  const int all = shape.micro_batches;
  const int in_flight = std::min(all, shape.stages - stage);
  switch (shape.schedule) {
    case PipelineSchedule::GPipe:
      return all;
    case PipelineSchedule::OneForwardOneBackward:
      return in_flight;
    case PipelineSchedule::Interleaved:
      return std::min(shape.passes(), 2 * (shape.stages - 1 - stage) + (shape.chunks - 1) * shape.stages + 1);
    case PipelineSchedule::ZeroBubble:
      return in_flight + kept * std::min(stage, all - in_flight);
  }
  assertion_failed("every schedule has a closed form", __FILE__, __LINE__);
}

}  // namespace simsync
