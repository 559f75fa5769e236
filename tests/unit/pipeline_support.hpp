// What tests of pipelines share.
#pragma once
#include <string>

#include "strategies/pipeline/pipeline_schedule.hpp"

namespace simsync::test {

inline std::string describe(const PipelineShape& shape) {
  return std::string(name_of(shape.schedule)) + ", " + std::to_string(shape.stages) + " stages, " +
         std::to_string(shape.micro_batches) + " micro batches, " + std::to_string(shape.chunks) + " chunks";
}

/// Every legal shape of 1 to 16 stages, 1 to 64 micro batches and 1 to 4 chunks.
template <class Function>
void for_each_shape(const Function& function) {
  for (const auto& [word, schedule] : pipeline_schedule_words()) {
    const bool interleaved = schedule == PipelineSchedule::Interleaved;
    for (int stages = 1; stages <= 16; ++stages)
      for (int micro_batches = 1; micro_batches <= 64; ++micro_batches) {
        if (interleaved && micro_batches % stages != 0) continue;
        for (int chunks = interleaved ? 2 : 1; chunks <= (interleaved ? 4 : 1); ++chunks)
          function(PipelineShape{schedule, stages, micro_batches, chunks});
      }
  }
}

}  // namespace simsync::test
