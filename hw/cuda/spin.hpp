// Compute of a known length: a kernel that keeps a stream busy and leaves the memory and the other multiprocessors
// free.
#pragma once
#include "hw/cuda/handles.hpp"

namespace simsync::cuda {

/// How a spinning kernel's time on the device differs from the time that it was asked for.
struct SpinCalibration {
  Seconds overhead;  ///< median of elapsed - asked, launch and end of the kernel included
  Seconds error;     ///< largest deviation that is left once the overhead is subtracted, over all calibration runs

  /// What to ask for so that a kernel lasts `wanted`; not below 0.
  [[nodiscard]] Seconds asked_for(Seconds wanted) const;
};

/// Runs kernels of 20 us to 5 ms on `stream` (some 70 ms in all) and compares them with the events around them.
SpinCalibration calibrate_spin(const Stream& stream);

/// Starts a kernel on `stream` that lasts `wanted`, a kernel launch (some microseconds) at least.
void spin(Seconds wanted, const SpinCalibration& calibration, const Stream& stream);

}  // namespace simsync::cuda
