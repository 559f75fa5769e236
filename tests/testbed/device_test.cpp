// A rank with a device of its own: compute, copies and collectives go to it and nothing is emulated. Here the device is
// a sleeping thread, and results come back as from a GPU: only where they are looked at until the last step.
#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "tests/support/catch.hpp"
#include "tests/testbed/small_run.hpp"

using namespace simsync;

namespace {

/// Gloo behind memory of its own.
class Detached : public CollectiveBackend {
public:
  explicit Detached(std::unique_ptr<CollectiveBackend> gloo) : gloo_(std::move(gloo)) {}
  void prepare(const Op& op, std::uint32_t tag, const CollectiveBuffers& buffers) override {
    Memory& own = memory_[tag];
    own.in.assign(buffers.in.begin(), buffers.in.end());
    own.out.resize(buffers.out.size());
    gloo_->prepare(op, tag, {own.in, own.out, {}, {}});
  }
  void run(const Op& op, std::uint32_t tag, const CollectiveBuffers& buffers, bool whole) override {
    Memory& own = memory_.at(tag);
    for (const std::size_t at : buffers.changing) own.in[at] = buffers.in[at];
    gloo_->run(op, tag, {own.in, own.out, {}, {}}, whole);
    std::fill(buffers.out.begin(), buffers.out.end(), std::numeric_limits<float>::quiet_NaN());
    for (const std::size_t at : buffers.looked_at) buffers.out[at] = own.out[at];
    if (whole) std::copy(own.out.begin(), own.out.end(), buffers.out.begin());
  }

private:
  struct Memory {
    std::vector<float> in;
    std::vector<float> out;
  };
  std::unique_ptr<CollectiveBackend> gloo_;
  std::map<std::uint32_t, Memory> memory_;
};

/// Twice as slow as it was asked to be.
class Sleeper : public RankDevice {
public:
  explicit Sleeper(double copy_s = 0.0) : copy_(copy_s) {}
  void compute(Seconds length) override {
    std::this_thread::sleep_for(std::chrono::duration<double>(2.0 * length.value()));
  }
  void copy(Bytes, Direction) override { std::this_thread::sleep_for(copy_); }

private:
  std::chrono::duration<double> copy_;
};

DeviceFactory sleepers(double copy_s = 0.0) {
  return [copy_s](const DeviceRequest& request, KeyValueStore& store) {
    DeviceOfRank out{std::make_unique<Sleeper>(copy_s), nullptr};
    if (request.collectives) out.collectives = std::make_unique<Detached>(make_gloo(request.group, store));
    return out;
  };
}

}  // namespace

TEST_CASE("a device computes as long as it does, and its collectives are checked where they are looked at") {
  int port = 29'670;
  for (const char* builder : {"ddp", "all-reduce", "parallax"}) {
    LaunchOptions options = test::loopback(port++);
    options.devices = sleepers();
    const Measurement measured = launch(test::small_plan(builder, 2), options);
    CHECK(measured.checked > 0);
    CHECK(measured.quantile(0.0) >= Seconds{0.011});  // six layer times of 1 ms, twice
  }
}

TEST_CASE("copies between a device and its host take what the device says") {
  const Plan plan = test::small_plan("ps", 2);
  const auto copies = std::count_if(plan.ops.begin(), plan.ops.end(), [](const Op& op) {
    const auto* moved = std::get_if<Transfer>(&op.body);
    return moved != nullptr && moved->from.kind == End::Kind::Device && moved->to.kind == End::Kind::Host;
  });
  REQUIRE(copies > 0);
  LaunchOptions options = test::loopback(29'690);
  options.devices = sleepers(0.05);
  CHECK(launch(plan, options).quantile(0.0) >= Seconds{0.05});
}
