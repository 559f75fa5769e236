#include "hw/cuda/spin.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "hw/cuda/kernels.hpp"

namespace simsync::cuda {
namespace {

constexpr std::array<double, 5> kAsked{20e-6, 100e-6, 500e-6, 1e-3, 5e-3};
constexpr int kRepeats = 10;

Seconds elapsed(Seconds asked, const Stream& stream) {
  Event start;
  Event end;
  start.record(stream);
  launch_spin(std::llround(1e9 * asked.value()), stream.get());
  end.record(stream);
  end.wait();
  return end.since(start);
}

}  // namespace

Seconds SpinCalibration::asked_for(Seconds wanted) const {
  return std::max(wanted - overhead, Seconds{0.0});
}

SpinCalibration calibrate_spin(const Stream& stream) {
  // The first launch loads the kernel.
  (void)elapsed(Seconds{0.0}, stream);
  std::vector<Seconds> excess;
  for (const double seconds : kAsked) {
    for (int i = 0; i < kRepeats; ++i) excess.push_back(elapsed(Seconds{seconds}, stream) - Seconds{seconds});
  }
  std::sort(excess.begin(), excess.end());
  const Seconds overhead = excess[excess.size() / 2];
  return {.overhead = overhead, .error = std::max(excess.back() - overhead, overhead - excess.front())};
}

void spin(Seconds wanted, const SpinCalibration& calibration, const Stream& stream) {
  launch_spin(std::llround(1e9 * calibration.asked_for(wanted).value()), stream.get());
}

}  // namespace simsync::cuda
