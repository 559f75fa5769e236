// Gradients of weights in half precision: their width on the wire and in memory.
#include "sim/problem/problem.hpp"
#include "strategies/wire_bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/collectives_of.hpp"

using namespace simsync;
using namespace simsync::test;
using Catch::Matchers::WithinRel;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

Problem on_two_gpus(const std::string& strategy, const Settings& settings) {
  PredictRequest request{.model = "gpt2", .cluster = "dgx-a100", .strategy = strategy, .workers = 2};
  request.batch = 1;
  request.settings = settings;
  request.settings.emplace_back("memory", "ignore");
  return prepare(request);
}

/// Bytes of gradients of all parameters, over those of 32 bits.
double share_of_full(const std::string& strategy, const Settings& settings) {
  const Problem problem = on_two_gpus(strategy, settings);
  const bool shards = strategy == "fsdp";
  const auto primitive = shards ? CollectivePrimitive::ReduceScatter : CollectivePrimitive::AllReduce;
  return sent(problem.plan, primitive, 2).bytes / (4.0 * static_cast<double>(problem.model.parameter_count()));
}

}  // namespace

TEST_CASE("gradients travel as wide as they are summed", "[half]") {
  for (const char* strategy : {"ddp", "fsdp"}) {
    CAPTURE(strategy);
    CHECK_THAT(share_of_full(strategy, {}), WithinRel(1.0, 1e-12));
    CHECK_THAT(share_of_full(strategy, {{"precision", "bf16"}}), WithinRel(0.5, 1e-12));
    CHECK_THAT(share_of_full(strategy, {{"precision", "fp16"}}), WithinRel(0.5, 1e-12));
    CHECK_THAT(share_of_full(strategy, {{"precision", "bf16"}, {"fp32_gradients", "true"}}), WithinRel(1.0, 1e-12));
  }
  // Weights and gradients of amp are in 32 bits; FSDP casts what it sends (its MixedPrecision).
  CHECK_THAT(share_of_full("ddp", {{"precision", "amp"}}), WithinRel(1.0, 1e-12));
  CHECK_THAT(share_of_full("fsdp", {{"precision", "amp"}}), WithinRel(0.5, 1e-12));
  CHECK_THAT(share_of_full("fsdp", {{"precision", "bf16"}, {"strategy.reduce_dtype", "float32"}}),
             WithinRel(1.0, 1e-12));
}

TEST_CASE("what has two bytes is not cast to two", "[half]") {
  const Settings half{{"precision", "bf16"}};
  const Settings cast{{"precision", "bf16"}, {"strategy.compressor", "fp16"}};
  const Plan plain = on_two_gpus("ddp", half).plan;
  const Plan same = on_two_gpus("ddp", cast).plan;
  REQUIRE(plain.ops.size() == same.ops.size());
  for (std::size_t i = 0; i < plain.ops.size(); ++i) {
    if (plain.ops[i].kind() != OpKind::Collective) continue;
    CHECK(plain.ops[i].collective().bytes == same.ops[i].collective().bytes);
    CHECK(plain.ops[i].collective().setup == same.ops[i].collective().setup);
  }
  // Sums of 32 bits are.
  const Settings sums{{"precision", "bf16"}, {"fp32_gradients", "true"}, {"strategy.compressor", "fp16"}};
  CHECK_THAT(share_of_full("ddp", sums), WithinRel(0.5, 1e-12));
}

TEST_CASE("buckets are as wide as the gradients in them", "[half][memory]") {
  const auto buffers = [](const Settings& settings) { return on_two_gpus("ddp", settings).memory.need.buffers.count; };
  const std::int64_t full = buffers({});
  CHECK(full == 4 * on_two_gpus("ddp", {}).model.parameter_count());
  CHECK(2 * buffers({{"precision", "bf16"}}) == full);
  CHECK(buffers({{"precision", "bf16"}, {"fp32_gradients", "true"}}) == full);
}

TEST_CASE("rows of a table travel in half precision, their numbers do not", "[half]") {
  const Model& model = find_model("lm1b");
  VariableId table = 0;
  while (table < model.variables().size() && !model.variable(table).sparse) ++table;
  REQUIRE(table < model.variables().size());
  const Variable& variable = model.variable(table);
  const VariableStrategy how{.variable = table, .shards = {{.elements = variable.elements()}}};
  const double indices = index_bytes(variable, how, variable.elements(), 8);
  REQUIRE(indices > 0.0);
  const double full = wire_bytes(variable, how, variable.elements(), {.samples = 8});
  const double half = wire_bytes(variable, how, variable.elements(), {.samples = 8, .half = true});
  CHECK_THAT(half - indices, WithinRel((full - indices) / 2.0, 1e-12));
}
