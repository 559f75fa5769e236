// Compute and communication run beside each other unless they are ordered.
#include "hw/cuda/device_runtime.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

TEST_CASE("work can be polled, waited for and ordered across streams", "[streams]") {
  cuda::DeviceRuntime runtime;
  const Bytes size{1 << 20};
  const cuda::DeviceBuffer device(size);
  cuda::PinnedBuffer host(size);
  constexpr Seconds kLength{20e-3};

  const cuda::Completion first = runtime.run_compute(kLength);
  CHECK_FALSE(first.done());
  CHECK_FALSE(first.wait_for(Seconds{1e-3}));
  const cuda::Completion beside = runtime.copy_to_host(device, host, size);
  CHECK(beside.wait_for(Seconds{1.0}));
  CHECK_FALSE(first.done());

  runtime.communicate_after(first);
  const cuda::Completion after = runtime.copy_to_host(device, host, size);
  runtime.wait();
  CHECK(first.done());
  // The copy starts when the kernel has ended.
  CHECK(after.started_after(first) + after.duration() >= first.duration());

  runtime.compute_after(after);
  const cuda::Completion last = runtime.run_compute(Seconds{1e-3});
  CHECK(last.wait_for(Seconds{1.0}));
  CHECK(last.started_after(first) >= first.duration());
}
