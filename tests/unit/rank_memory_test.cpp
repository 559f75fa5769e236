// What strategies keep on a worker, and whether it fits.
#include "sim/problem/rank_memory.hpp"

#include "platforms/reader.hpp"
#include "sim/problem/problem.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

RankMemory memory_of(const std::string& strategy, std::vector<std::pair<std::string, std::string>> settings = {},
                     const std::string& model = "vgg16") {
  return prepare({.model = model,
                  .cluster = "p3.16xlarge",
                  .strategy = strategy,
                  .workers = 16,
                  .batch = 1,
                  .settings = std::move(settings),
                  .calibration = {}})
      .memory;
}

constexpr std::int64_t kVgg16 = 4 * 138'357'544;  // torchvision's vgg16

}  // namespace

TEST_CASE("a strategy decides what a worker keeps", "[memory]") {
  const RankMemory ddp = memory_of("ddp");
  CHECK(ddp.bound.weights.count == kVgg16);
  CHECK(ddp.bound.state.count == kVgg16);
  CHECK(ddp.bound.buffers.count == kVgg16);  // buckets hold copies of all gradients
  CHECK(ddp.bound.gradients.count > kVgg16 * 9 / 10);
  CHECK(ddp.device == "V100-SXM2-16GB");
  CHECK(ddp.device_bytes.count == std::int64_t{16} << 30);
  CHECK(ddp.fits());
  CHECK(memory_of("ddp", {{"strategy.gradient_as_bucket_view", "true"}}).bound.buffers.count == 0);
  CHECK(memory_of("ddp", {{"precision", "fp16"}}).bound.buffers.count == kVgg16 / 2);
  CHECK(memory_of("horovod").bound.buffers.count == 64 << 20);
  const RankMemory ps = memory_of("ps");
  CHECK(ps.bound.weights.count == kVgg16);
  CHECK(ps.bound.state.count == 0);
  CHECK(ps.bound.gradients.count == 0);
  CHECK(ps.bound.buffers.count == 0);
}

TEST_CASE("a sparse table on servers is not on the worker", "[memory]") {
  const RankMemory served = memory_of("ps", {}, "ncf");
  const RankMemory reduced = memory_of("ddp", {}, "ncf");
  CHECK(10 * served.bound.weights.count < reduced.bound.weights.count);
}

TEST_CASE("the smallest device that takes part decides", "[memory]") {
  Cluster cluster = find_cluster("p3.16xlarge");
  NodeGroup small = cluster.groups.front();
  small.device = "small";
  cluster.devices["small"] = cluster.devices.at("V100-SXM2-16GB");
  cluster.devices["small"].name = "small";
  cluster.devices["small"].memory = {std::int64_t{2} << 30};
  cluster.groups.front().count = 1;
  small.count = 1;
  cluster.groups.push_back(small);
  const Problem problem = prepare({.model = "vgg16",
                                   .cluster = "p3.16xlarge",
                                   .strategy = "ddp",
                                   .workers = 16,
                                   .batch = 1,
                                   .settings = {},
                                   .calibration = {}});
  const auto on = [&](int workers) {
    Strategy strategy = problem.strategy;
    strategy.graph.workers = workers;
    return rank_memory(problem.model, cluster, strategy, problem.profile);
  };
  CHECK(on(8).device == "V100-SXM2-16GB");
  CHECK(on(9).device == "small");
  CHECK(!on(9).fits());
  // Three times 553,430,176 B, and 546,488,224 B of gradients with 53,788,672 B of activations when the first
  // convolution of the third stage has run backward.
  CHECK(memory_text(on(9)) == "needs at least 2.11 GiB, small has 2.00 GiB");
  cluster.devices["small"].memory = {};
  CHECK(on(9).fits());
}

TEST_CASE("what does not fit comes with the smallest change that may help", "[memory]") {
  // GPT-2 XL has 6.2 GB of weights: with gradients, momenta and buckets more than 16 GB without any sample.
  const RankMemory plain = memory_of("ddp", {}, "gpt2-xl");
  CHECK(!plain.fits());
  CHECK(plain.largest_batch == 0);
  CHECK(remedy_text(plain) == "not even one sample fits: --strategy fsdp shares the state out over the workers");
  const auto sharded = [](std::int64_t batch) {
    return prepare({.model = "gpt2-xl",
                    .cluster = "p3.16xlarge",
                    .strategy = "fsdp",
                    .workers = 16,
                    .batch = batch,
                    .settings = {},
                    .calibration = {}})
        .memory;
  };
  CHECK(sharded(1).fits());
  const RankMemory many = sharded(64);
  REQUIRE(!many.fits());
  REQUIRE(many.largest_batch > 0);
  CHECK(sharded(many.largest_batch).fits());
  CHECK(!sharded(many.largest_batch + 1).fits());
  RankMemory one = many;
  one.largest_batch = 0;
  CHECK(remedy_text(one) == "not even one sample fits: it needs more workers that share the parameters");
}
