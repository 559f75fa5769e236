// What needs the CUDA runtime and no GPU.
#include "base/error.hpp"
#include "hw/cuda/check.hpp"
#include "hw/cuda/device.hpp"
#include "hw/cuda/spin.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

TEST_CASE("a GPU has a name", "[cuda]") {
  CHECK(cuda::parse_device("cuda") == 0);
  CHECK(cuda::parse_device("cuda:0") == 0);
  CHECK(cuda::parse_device("cuda:12") == 12);
  for (const std::string wrong : {"", "cuda:", "cuda:-1", "cuda:1x", "cuda: 1", "gpu:0", "cuda:99999999999"}) {
    INFO(wrong);
    CHECK_THROWS_AS(cuda::parse_device(wrong), InputError);
  }
}

TEST_CASE("a GPU that is not there is a missing capability", "[cuda]") {
  CHECK_THROWS_AS(cuda::describe_device(cuda::device_count()), CapabilityError);
  CHECK_THROWS_AS(cuda::describe_device(-1), CapabilityError);
}

TEST_CASE("a failed call is told with its text", "[cuda]") {
  CHECK_THROWS_AS(cuda::check(cudaErrorNoDevice, "f()"), CapabilityError);
  CHECK_THROWS_AS(cuda::check(cudaErrorMemoryAllocation, "f()"), CapabilityError);
  CHECK_THROWS_WITH(cuda::check(cudaErrorInvalidValue, "cudaFree(nothing)"),
                    ContainsSubstring("cudaFree(nothing) failed: ") && ContainsSubstring("(cudaErrorInvalidValue)"));
  CHECK_THROWS_WITH(cuda::check(ncclInvalidArgument, "ncclSend(x)"), ContainsSubstring("ncclSend(x) failed: "));
  CHECK_NOTHROW(cuda::check(cudaSuccess, "f()"));
  CHECK_NOTHROW(cuda::check(ncclSuccess, "f()"));
}

TEST_CASE("a spinning kernel is asked for less than it is to last", "[cuda]") {
  const cuda::SpinCalibration calibration{.overhead = Seconds{4e-6}, .error = Seconds{1e-6}};
  CHECK_THAT(calibration.asked_for(Seconds{100e-6}).value(), WithinRel(96e-6, 1e-12));
  CHECK(calibration.asked_for(Seconds{1e-6}).value() == 0.0);
}
