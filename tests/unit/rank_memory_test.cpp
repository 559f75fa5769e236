// What strategies keep on a worker, and whether it fits.
#include "sim/problem/rank_memory.hpp"

#include <fmt/format.h>

#include <sstream>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "platforms/reader.hpp"
#include "sim/problem/problem.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;
using Catch::Matchers::WithinRel;

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
  CHECK(ddp.need.weights.count == kVgg16);
  CHECK(ddp.need.state.count == kVgg16);
  CHECK(ddp.need.buffers.count == kVgg16);  // buckets hold copies of all gradients
  CHECK(ddp.need.gradients.count > kVgg16 * 9 / 10);
  CHECK(ddp.device == "V100-SXM2-16GB");
  CHECK(ddp.device_bytes.count == std::int64_t{16} << 30);
  CHECK(ddp.fits());
  CHECK(memory_of("ddp", {{"strategy.gradient_as_bucket_view", "true"}}).need.buffers.count == 0);
  CHECK(memory_of("ddp", {{"precision", "fp16"}}).need.buffers.count == kVgg16 / 2);
  CHECK(memory_of("horovod").need.buffers.count == 64 << 20);
  const RankMemory ps = memory_of("ps");
  CHECK(ps.need.weights.count == kVgg16);
  CHECK(ps.need.state.count == 0);
  CHECK(ps.need.gradients.count == 0);
  CHECK(ps.need.buffers.count == 0);
}

TEST_CASE("every communicator takes memory of its own", "[memory]") {
  // Hybrid shard has one more, for the replicas of a shard: 1 GiB.
  const RankMemory all = memory_of("fsdp");
  const RankMemory hybrid = memory_of("fsdp", {{"strategy.group", "node"}});
  CHECK(all.usable.count - hybrid.usable.count == std::int64_t{1} << 30);
}

TEST_CASE("a sparse table on servers is not on the worker", "[memory]") {
  const RankMemory served = memory_of("ps", {}, "ncf");
  const RankMemory reduced = memory_of("ddp", {}, "ncf");
  CHECK(10 * served.need.weights.count < reduced.need.weights.count);
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
  // 1.1 % for the driver, 0.5 GiB of context and 1 GiB for the communication library.
  CHECK_THAT(static_cast<double>(on(9).usable.count), WithinRel(2.0 * 0.989 * (1 << 30) - 1.5 * (1 << 30), 1e-8));
  CHECK(memory_text(on(9)) == "needs about " + format_bytes(static_cast<double>(on(9).need.total().count)) +
                                  ", small leaves 489.5 MiB of 2.00 GiB");
  cluster.devices["small"].memory = {};
  CHECK(on(9).fits());
}

TEST_CASE("what does not fit comes with the changes that make it fit", "[memory]") {
  // GPT-2 XL has 6.2 GB of weights: with gradients, momenta and buckets more than 16 GB without any sample.
  const RankMemory plain = memory_of("ddp", {}, "gpt2-xl");
  CHECK(!plain.fits());
  CHECK(plain.largest_batch == 0);
  CHECK(remedy_text(plain) ==
        "not even one sample fits: --strategy fsdp shares the state out over the workers; 'simsync search --method "
        "coordinate' looks for a layout that fits");
  const auto sharded = [](std::int64_t batch, std::vector<std::pair<std::string, std::string>> settings = {}) {
    settings.emplace_back("precision", "amp");
    return prepare({.model = "gpt2-xl",
                    .cluster = "p3.16xlarge",
                    .strategy = "fsdp",
                    .workers = 16,
                    .batch = batch,
                    .settings = std::move(settings),
                    .calibration = {}})
        .memory;
  };
  CHECK(sharded(1).fits());
  const RankMemory many = sharded(64);
  REQUIRE(!many.fits());
  REQUIRE(many.largest_batch > 0);
  CHECK(sharded(many.largest_batch).fits());
  CHECK(!sharded(many.largest_batch + 1).fits());
  REQUIRE(many.changes.size() == 3);
  CHECK(remedy_text(many) ==
        fmt::format("it fits with {}, or with --batch {}", fmt::join(many.changes, ", or with "), many.largest_batch));
  for (const std::string& change : many.changes) {
    CAPTURE(change);
    std::vector<std::pair<std::string, std::string>> settings;
    std::istringstream words(change);
    for (std::string word; words >> word;)
      if (word != "--set") settings.push_back(*parse_setting(word));
    CHECK(sharded(64, settings).fits());
  }
  // Of micro-steps as few as fit, and more settings only for fewer.
  CHECK(many.changes.front().starts_with("--set strategy.micro_steps="));
  const auto steps_of = [](const std::string& change) {
    return change.find("micro_steps=") == std::string::npos ? 0 : std::stoi(change.substr(change.find('=') + 1));
  };
  for (std::size_t i = 1; i < many.changes.size(); ++i)
    CHECK(steps_of(many.changes[i]) < steps_of(many.changes[i - 1]));
  RankMemory one = many;
  one.largest_batch = 0;
  one.changes.clear();
  CHECK(remedy_text(one) ==
        "not even one sample fits: it needs more workers that share the parameters; 'simsync search --method "
        "coordinate' looks for a layout that fits");
}

TEST_CASE("a remedy speaks of the batch that was asked for", "[memory]") {
  const auto asked = [](std::int64_t samples) {
    return prepare({.model = "gpt2-xl",
                    .cluster = "p3.16xlarge",
                    .strategy = "fsdp",
                    .workers = 16,
                    .settings = {{"precision", "amp"}},
                    .global_batch = samples})
        .memory;
  };
  const RankMemory many = asked(16 * 64);
  REQUIRE(many.largest_batch > 0);
  CHECK(remedy_text(many).ends_with(fmt::format(", or with --global-batch {}", 16 * many.largest_batch)));
  CHECK(asked(16 * many.largest_batch).fits());
}

TEST_CASE("where no smaller batch helps, more of the state is shared out", "[memory]") {
  const auto asked = [](const char* model, std::vector<std::pair<std::string, std::string>> settings) {
    settings.emplace_back("precision", "bf16");
    settings.emplace_back("optimizer", "adam");
    return prepare({.model = model,
                    .cluster = "dgx-h100",
                    .strategy = "fsdp",
                    .workers = 1024,
                    .batch = 1,
                    .settings = std::move(settings),
                    .calibration = {}})
        .memory;
  };
  // 175 billion parameters on the eight devices of a node are 44 GB of weights alone; on 1,024 they are 0.3 GB.
  const RankMemory grouped = asked("gpt3-175b", {{"strategy.group", "node"}});
  REQUIRE(!grouped.fits());
  REQUIRE(grouped.changes.size() == 1);
  CHECK(grouped.changes.front().starts_with("--set strategy.group=all"));
  std::vector<std::pair<std::string, std::string>> settings;
  std::istringstream words(grouped.changes.front());
  for (std::string word; words >> word;)
    if (word != "--set") settings.push_back(*parse_setting(word));
  CHECK(asked("gpt3-175b", settings).fits());
  // The activations of one long sample are more than a device has, however many there are.
  const RankMemory longer = asked("llama3-8b", {{"model.length", "131072"}});
  REQUIRE(!longer.fits());
  CHECK(longer.least_activations > longer.usable);
  CHECK(remedy_text(longer).find("it needs ranks that share them out") != std::string::npos);
}

TEST_CASE("what a step computes again and how often it begins are settings of every strategy", "[memory]") {
  const auto asked = [](const std::string& strategy, std::vector<std::pair<std::string, std::string>> settings) {
    return PredictRequest{.model = "gpt2",
                          .cluster = "p3.16xlarge",
                          .strategy = strategy,
                          .workers = 8,
                          .batch = 8,
                          .settings = std::move(settings),
                          .calibration = {}};
  };
  for (const std::string strategy : {"ddp", "horovod", "ps", "byteps", "fsdp"}) {
    CAPTURE(strategy);
    const Problem plain = prepare(asked(strategy, {}));
    const Problem again = prepare(asked(strategy, {{"strategy.recompute", "full"}}));
    CHECK_THAT(again.profile.step().value() - plain.profile.step().value(),
               WithinRel(again.profile.recompute().value(), 1e-9));
    CHECK(again.memory.need.activations < plain.memory.need.activations);
    const Problem parts = prepare(asked(strategy, {{"strategy.micro_steps", "4"}}));
    CHECK(parts.profile.batch == 2);
    CHECK(parts.samples() == 8);
    CHECK(parts.memory.need.activations < plain.memory.need.activations);
  }
  CHECK_THROWS_AS(prepare(asked("ddp", {{"strategy.micro_steps", "3"}})), PlanError);
  PredictRequest no_blocks = asked("ddp", {{"strategy.recompute", "full"}});
  no_blocks.model = "bert-base";
  CHECK_NOTHROW(prepare(no_blocks));
  no_blocks.model = "alexnet";
  CHECK_THROWS_AS(prepare(no_blocks), PlanError);
}

TEST_CASE("a parameter of the model is a setting", "[memory]") {
  const auto asked = [](std::vector<std::pair<std::string, std::string>> settings) {
    return PredictRequest{.model = "bert-base",
                          .cluster = "p3.16xlarge",
                          .strategy = "ddp",
                          .workers = 8,
                          .batch = 8,
                          .settings = std::move(settings),
                          .calibration = {}};
  };
  const double plain = prepare(asked({})).profile.step().value();
  CHECK(prepare(asked({{"model.length", "512"}})).profile.step().value() > 2.0 * plain);
  CHECK_THAT(prepare(asked({{"model.length", "128"}})).profile.step().value(), WithinRel(plain, 1e-9));
  CHECK_THROWS_AS(prepare(asked({{"model.lenght", "512"}})), InputError);
  CHECK_THROWS_AS(prepare(asked({{"model.length", "many"}})), InputError);
}
