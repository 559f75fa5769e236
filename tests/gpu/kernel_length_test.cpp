// Compute of a stated length lasts as long as stated.
#include <algorithm>

#include "hw/cuda/device_runtime.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

TEST_CASE("a compute kernel lasts as long as it was asked to", "[kernel_length]") {
  cuda::DeviceRuntime runtime;
  const double seconds = GENERATE(200e-6, 1e-3, 20e-3);
  std::vector<Seconds> lengths;
  for (int i = 0; i < 21; ++i) {
    const cuda::Completion work = runtime.run_compute(Seconds{seconds});
    work.wait();
    lengths.push_back(work.duration());
  }
  std::sort(lengths.begin(), lengths.end());
  // The global timer ticks in microseconds on some GPUs: 2 % of the shortest kernel is four ticks.
  CHECK_THAT(lengths[lengths.size() / 2].value(), WithinRel(seconds, 0.02));
}

TEST_CASE("the calibration measured a plausible kernel launch", "[kernel_length]") {
  const cuda::DeviceRuntime runtime;
  CHECK(runtime.calibration().overhead.value() > 0.0);
  CHECK(runtime.calibration().overhead.value() < 100e-6);
  CHECK(runtime.calibration().asked_for(Seconds{0.0}).value() == 0.0);
}
