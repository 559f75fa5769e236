// The device of a rank in a real run: a group of one, whose sums are its own values.
#include <chrono>
#include <map>
#include <numeric>

#include "base/error.hpp"
#include "hw/cuda/device.hpp"
#include "hw/run/rank_device.hpp"
#include "sim/plan/plan.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

class Table : public KeyValueStore {
public:
  void set(const std::string& key, const std::string& value) override { values_[key] = value; }
  std::string get(const std::string& key) override { return values_.at(key); }

private:
  std::map<std::string, std::string> values_;
};

DeviceOfRank alone(Table& table) {
  return make_gpu(
      {.group = {.rank = 0, .ranks = 1, .address = "127.0.0.1", .timeout_s = 10.0, .groups = {{0}, {0}, {0}}},
       .gpu = 0,
       .collectives = true},
      table);
}

Op collective(CollectivePrimitive primitive) {
  Op op;
  op.body = Collective{.primitive = primitive, .algorithm = CollectiveAlgorithm::Ring};
  op.queue = 0;
  return op;
}

}  // namespace

TEST_CASE("what changes goes to the device, what is looked at comes back, the whole comes at the end", "[runner]") {
  Table table;
  const DeviceOfRank own = alone(table);
  std::vector<float> in(1000);
  std::iota(in.begin(), in.end(), 1.0F);
  std::vector<float> out(in.size(), -1.0F);
  const CollectiveBuffers buffers{in, out, {0, 500, 999}, {0, 500}};
  const Op op = collective(CollectivePrimitive::AllReduce);
  own.collectives->prepare(op, 7, buffers);
  in[500] = 5000.0F;
  in[501] = 5000.0F;  // not one that changes: the device keeps what it had
  own.collectives->run(op, 7, buffers, false);
  CHECK(out[0] == 1.0F);
  CHECK(out[500] == 5000.0F);
  CHECK(out[999] == -1.0F);
  own.collectives->run(op, 7, buffers, true);
  CHECK(out[999] == 1000.0F);
  CHECK(out[501] == 502.0F);
}

TEST_CASE("every primitive over a group of one keeps the rank's own values", "[runner]") {
  Table table;
  const DeviceOfRank own = alone(table);
  std::vector<float> in(1000);
  std::iota(in.begin(), in.end(), 1.0F);
  std::uint32_t tag = 0;
  for (const auto primitive :
       {CollectivePrimitive::AllReduce, CollectivePrimitive::ReduceScatter, CollectivePrimitive::AllGather,
        CollectivePrimitive::Broadcast, CollectivePrimitive::Reduce, CollectivePrimitive::AllToAll}) {
    std::vector<float> out(in.size(), -1.0F);
    const CollectiveBuffers buffers{in, out, {0, 999}, {0, 999}};
    Op op = collective(primitive);
    op.grouping = kEachRank;  // a group of its own beside the whole job's
    own.collectives->prepare(op, ++tag, buffers);
    own.collectives->run(op, tag, buffers, true);
    INFO(name_of(primitive));
    CHECK(out == in);
  }
}

TEST_CASE("an algorithm that NCCL does not have is refused", "[runner]") {
  Table table;
  const DeviceOfRank own = alone(table);
  std::vector<float> values(8);
  Op op = collective(CollectivePrimitive::AllReduce);
  op.collective().algorithm = CollectiveAlgorithm::HalvingDoubling;
  CHECK_THROWS_AS(own.collectives->prepare(op, 1, {values, values, {}, {}}), CapabilityError);
}

TEST_CASE("compute and copies keep the caller until they have ended", "[runner]") {
  Table table;
  const DeviceOfRank own = alone(table);
  const auto seconds = [](const auto& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  CHECK(seconds([&] { own.device->compute(Seconds{0.02}); }) >= 0.0195);
  // 256 MiB over any PCIe or NVLink take more than 0.2 ms (1.3 TB/s).
  own.device->copy(Bytes{1 << 28}, RankDevice::Direction::ToHost);
  CHECK(seconds([&] { own.device->copy(Bytes{1 << 28}, RankDevice::Direction::ToDevice); }) >= 0.0002);
}
