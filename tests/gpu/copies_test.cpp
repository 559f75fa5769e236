// Copies between host and device bring back what was sent.
#include <cstring>

#include "base/error.hpp"
#include "hw/cuda/device_runtime.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

TEST_CASE("a copy to the device and back keeps every byte", "[copies]") {
  cuda::DeviceRuntime runtime;
  const Bytes size{3'000'001};
  const auto count = static_cast<std::size_t>(size.count);
  cuda::PinnedBuffer sent(size);
  cuda::PinnedBuffer received(size);
  cuda::DeviceBuffer device(size);
  auto* bytes = static_cast<unsigned char*>(sent.data());
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(i * 7 % 251);
  std::memset(received.data(), 0, count);

  const cuda::Completion up = runtime.copy_to_device(sent, device, size);
  const cuda::Completion down = runtime.copy_to_host(device, received, size);
  down.wait();
  CHECK(std::memcmp(sent.data(), received.data(), count) == 0);
  CHECK(up.duration().value() > 0.0);
  CHECK(down.started_after(up) >= up.duration());
}

TEST_CASE("a copy beyond a buffer is refused", "[copies]") {
  cuda::DeviceRuntime runtime;
  const cuda::PinnedBuffer host(Bytes{100});
  cuda::DeviceBuffer device(Bytes{50});
  CHECK_THROWS_AS(runtime.copy_to_device(host, device, Bytes{51}), PlanError);
}

TEST_CASE("a GPU that is not there is refused", "[copies]") {
  CHECK_THROWS_AS(cuda::DeviceRuntime(cuda::device_count()), CapabilityError);
}
