// What ranks of hybrid plans keep and sum: what a schedule keeps, by hand, and advice where it is too much.
#include <sstream>

#include "sim/problem/problem.hpp"
#include "strategies/stage_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/collectives_of.hpp"
#include "tests/support/gpt2.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

RankMemory piped(std::int64_t batch, int micro_steps, const Settings& settings, const std::string& model = "gpt2-xl") {
  PredictRequest request{.model = model, .cluster = "p3.16xlarge", .strategy = "ddp", .workers = 8};
  request.batch = batch;
  request.settings = settings;
  request.settings.emplace_back("strategy.micro_steps", std::to_string(micro_steps));
  return prepare(request).memory;
}

}  // namespace

TEST_CASE("a rank that sums with no other launches nothing", "[parallel][memory]") {
  for (const char* ranks : {"tensor", "pipeline"}) {
    CAPTURE(ranks);
    const Problem problem = gpt2(2, {{std::string("strategy.") + ranks, "2"}, {"strategy.micro_steps", "2"}});
    for (const CollectivePrimitive primitive : {CollectivePrimitive::AllReduce, CollectivePrimitive::ReduceScatter})
      CHECK(sent(problem.plan, primitive, 1).count == 0);
    CHECK(problem.memory.need.buffers.count == 0);
  }
  CHECK(gpt2(4, {{"strategy.tensor", "2"}}).memory.need.buffers.count > 0);
}

TEST_CASE("two stages sum the gradient of a tied table, or what ZeRO leaves them of it", "[parallel]") {
  const auto table = [](const char* strategy, Settings settings) {
    settings.insert(settings.end(), {{"strategy.pipeline", "2"}, {"strategy.micro_steps", "2"}, {"precision", "bf16"}});
    for (const Op& op : gpt2(8, settings, strategy).plan.ops)
      if (op.reason.label == "tied table") return op.collective().bytes;
    return 0.0;
  };
  constexpr double kElements = 50257.0 * 768.0;
  CHECK(table("ddp", {}) == 2.0 * kElements);
  CHECK(table("ddp", {{"fp32_gradients", "true"}}) == 4.0 * kElements);
  CHECK(table("fsdp", {{"strategy.stage", "1"}}) == 2.0 * kElements);
  CHECK(table("fsdp", {{"strategy.stage", "1"}, {"strategy.reduce_dtype", "float32"}}) == 4.0 * kElements);
  // Four replicas share the sums out.
  CHECK(table("fsdp", {{"strategy.stage", "2"}}) == 2.0 * kElements / 4.0);
}

TEST_CASE("a rank's memory shrinks with its part of the model", "[parallel][memory]") {
  const auto need = [](int workers, const Settings& settings) { return gpt2(workers, settings).memory.need; };
  const MemoryNeed alone = need(1, {{"strategy.micro_steps", "4"}});
  const MemoryNeed halves = need(2, {{"strategy.tensor", "2"}, {"strategy.micro_steps", "4"}});
  // Four bytes for each weight of its part.
  const Model half = stage_models(gpt2(1, {}).model, {.tensor = 2}).front().model;
  CHECK(halves.weights.count == 4 * half.parameter_count());
  CHECK(halves.activations < alone.activations);
  CHECK(need(2, {{"strategy.tensor", "2"}, {"strategy.micro_steps", "4"}, {"strategy.sequence", "true"}}).activations <
        halves.activations);
  // GPipe keeps the activations of all micro-steps, 1F1B of as many as there are stages.
  const auto piped = [&](const char* schedule) {
    return need(2, {{"strategy.pipeline", "2"}, {"strategy.micro_steps", "4"}, {"strategy.schedule", schedule}});
  };
  CHECK(piped("gpipe").activations.count > 3 * piped("1f1b").activations.count / 2);
}

TEST_CASE("the loss of an interleaved stage is there once", "[memory]") {
  // GPT-2 on two stages: the second has the head, whose logits of 1024 x 50257 numbers a sample are most of what it
  // needs. Its two chunks of three blocks keep the first of them for two micro-batches and the second for one: as much
  // as nine blocks of one chunk.
  const auto activations = [](const char* depth, const Settings& more) {
    PredictRequest request{.model = "gpt2", .cluster = "dgx-a100", .strategy = "ddp", .workers = 2};
    request.batch = 8;
    request.settings = {{"model.depth", depth},
                        {"model.fused", "1"},
                        {"strategy.pipeline", "2"},
                        {"strategy.micro_steps", "8"},
                        {"memory", "ignore"}};
    request.settings.insert(request.settings.end(), more.begin(), more.end());
    return prepare(request).memory.need.activations.count;
  };
  CHECK(activations("12", {{"strategy.schedule", "interleaved"}, {"strategy.chunks", "2"}}) == activations("18", {}));
}

TEST_CASE("advice of more micro-steps counts those that a pipeline then keeps", "[memory]") {
  const std::vector<Settings> pipelines{
      {{"strategy.pipeline", "4"}},
      {{"strategy.pipeline", "4"}, {"strategy.schedule", "gpipe"}},
      {{"strategy.pipeline", "4"}, {"strategy.schedule", "interleaved"}, {"strategy.chunks", "2"}},
      {{"strategy.pipeline", "4"}, {"strategy.schedule", "zero-bubble"}}};
  int advised = 0;
  for (const Settings& settings : pipelines) {
    CAPTURE(settings.back().second);
    const RankMemory memory = piped(64, 4, settings);
    REQUIRE(!memory.fits());
    for (const std::string& change : memory.changes) {
      CAPTURE(change);
      Settings with = settings;
      int steps = 4;
      std::istringstream words(change);
      for (std::string word; words >> word;) {
        if (word == "--set") continue;
        const auto setting = *parse_setting(word);
        if (setting.first == "strategy.micro_steps") {
          steps = std::stoi(setting.second);
          ++advised;
        } else {
          with.push_back(setting);
        }
      }
      CHECK(piped(64, steps, with).fits());
    }
  }
  CHECK(advised > 0);
}
