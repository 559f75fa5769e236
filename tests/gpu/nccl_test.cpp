// NCCL on a single GPU: every collective of a group of one is the identity, and a wrong call is refused.
#include <numeric>

#include "base/error.hpp"
#include "hw/cuda/device_runtime.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

constexpr std::size_t kFloats = 10'000;
constexpr Bytes kSize{static_cast<std::int64_t>(kFloats * sizeof(float))};

/// A runtime in a group of one, with known numbers on the device.
struct Alone {
  cuda::DeviceRuntime runtime;
  cuda::PinnedBuffer host{kSize};
  cuda::DeviceBuffer in{kSize};
  cuda::DeviceBuffer out{kSize};

  Alone() {
    runtime.join(cuda::make_nccl_id(), 0, 1);
    std::iota(host.floats(), host.floats() + kFloats, 1.0F);
    runtime.copy_to_device(host, in, kSize).wait();
  }

  /// What lies in `out`, compared with 1, 2, 3, ...
  [[nodiscard]] std::size_t wrong() {
    runtime.copy_to_host(out, host, kSize).wait();
    std::size_t count = 0;
    for (std::size_t i = 0; i < kFloats; ++i) {
      if (host.floats()[i] != static_cast<float>(i + 1)) ++count;
    }
    return count;
  }
};

}  // namespace

TEST_CASE("the sum over one rank is its own tensor", "[nccl]") {
  Alone alone;
  alone.runtime.all_reduce(alone.in, alone.out, kFloats).wait();
  CHECK(alone.wrong() == 0);
  CHECK_NOTHROW(alone.runtime.group().check_health());
}

TEST_CASE("reduce-scatter and all-gather of one rank keep everything", "[nccl]") {
  Alone alone;
  SECTION("reduce-scatter") {
    alone.runtime.reduce_scatter(alone.in, alone.out, kFloats).wait();
  }
  SECTION("all-gather") {
    alone.runtime.all_gather(alone.in, alone.out, kFloats).wait();
  }
  CHECK(alone.wrong() == 0);
}

TEST_CASE("a collective without a group or beyond its buffers is refused", "[nccl]") {
  cuda::DeviceRuntime runtime;
  const cuda::DeviceBuffer in(kSize);
  cuda::DeviceBuffer out(kSize);
  CHECK_THROWS_AS(runtime.all_reduce(in, out, kFloats), PlanError);
  CHECK_THROWS_AS(runtime.join(cuda::make_nccl_id(), 1, 1), PlanError);
  runtime.join(cuda::make_nccl_id(), 0, 1);
  CHECK_THROWS_AS(runtime.all_reduce(in, out, kFloats + 1), PlanError);
}
