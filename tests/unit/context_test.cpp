// Context parallelism: what a rank computes, gathers and holds where replicas share out the tokens of a sample.
#include "base/error.hpp"
#include "sim/engine/engine.hpp"
#include "sim/engine/predict.hpp"
#include "sim/problem/layout_question.hpp"
#include "strategies/reader.hpp"
#include "strategies/stage_model.hpp"
#include "tests/support/agreement.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/collectives_of.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;
using namespace simsync::test;
using Catch::Matchers::WithinRel;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr double kWidth = 64.0;
constexpr double kTokens = 32.0;
constexpr int kBlocks = 2;
constexpr double kQueryHeads = 4.0;
constexpr double kKeyHeads = 2.0;

/// Llama with two blocks of four heads, of which two share a key and a value head.
PredictRequest llama(int workers, const Settings& settings, const std::string& strategy = "ddp") {
  PredictRequest request{
      .model = "llama3-8b", .cluster = "dgx-a100", .strategy = strategy, .workers = workers, .batch = 1};
  request.settings = {{"model.width", "64"}, {"model.length", "32"},    {"model.filter", "128"},
                      {"model.depth", "2"},  {"model.heads", "4"},      {"model.key_heads", "2"},
                      {"memory", "ignore"},  {"model.vocabulary", "96"}};
  request.settings.insert(request.settings.end(), settings.begin(), settings.end());
  return request;
}

/// Of one block, in 32 bits: keys and values of all tokens.
constexpr double kKeysAndValues = 4.0 * 2.0 * kTokens * kWidth * kKeyHeads / kQueryHeads;

double flops(const Model& model) {
  double sum = 0.0;
  for (LayerId id = 0; id < model.layer_count(); ++id)
    sum += (model.layer(id).forward_flops + model.layer(id).backward_flops).value();
  return sum;
}

}  // namespace

TEST_CASE("keys and values of all tokens are gathered before attention", "[context]") {
  // Of each block before the forward and before the backward pass; a rank gives its quarter of the tokens. Behind the
  // backward pass the gradients of all are summed, and each rank keeps those of its tokens.
  const Problem problem = prepare(llama(8, {{"strategy.context", "4"}}));
  const Sent gathered = sent(problem.plan, CollectivePrimitive::AllGather, 4);
  const Sent scattered = sent(problem.plan, CollectivePrimitive::ReduceScatter, 4);
  CHECK(gathered.count == 2 * kBlocks);
  CHECK(gathered.bytes == 2.0 * kBlocks * kKeysAndValues / 4.0);
  CHECK(gathered.ranks == std::vector<int>{0, 1, 2, 3});
  CHECK(scattered.count == kBlocks);
  CHECK(scattered.bytes == kBlocks * kKeysAndValues);
  // All eight have all parameters, and sum their gradients.
  const Sent summed = sent(problem.plan, CollectivePrimitive::AllReduce, 8);
  CHECK(summed.bytes == static_cast<double>(problem.model.parameter_bytes().count));
  // Blocks that are computed again gather once more.
  const Problem again = prepare(llama(8, {{"strategy.context", "4"}, {"strategy.recompute", "full"}}));
  CHECK(sent(again.plan, CollectivePrimitive::AllGather, 4).count == 3 * kBlocks);
  // Two tensor-parallel ranks have half of the heads each; those of the same place are context-parallel.
  const Problem split = prepare(llama(8, {{"strategy.context", "4"}, {"strategy.tensor", "2"}}));
  const Sent of_half = sent(split.plan, CollectivePrimitive::AllGather, 4);
  CHECK(of_half.bytes == gathered.bytes / 2.0);
  CHECK(of_half.ranks == std::vector<int>{0, 2, 4, 6});
}

TEST_CASE("a rank computes its share of the tokens with all parameters", "[context]") {
  const Model model = prepare(llama(1, {})).model;
  const std::vector<StageModel> stages = stage_models(model, {.context = 4});
  REQUIRE(stages.size() == 1);
  const Model& part = stages[0].model;
  CHECK(part.parameter_count() == model.parameter_count());
  CHECK_THAT(flops(part), WithinRel(flops(model) / 4.0, 1e-12));
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    const Layer& whole = model.layer(id);
    CHECK(part.layer(id).output_bytes == whole.output_bytes / 4.0);
    // Attention reads its queries, and the keys and values of all.
    const double shared = whole.operation.key_value_bytes;
    CHECK(part.layer(id).input_bytes == (whole.input_bytes - shared) / 4.0 + shared);
    CHECK((shared > 0.0) == (whole.kind == LayerKind::Attention));
    for (std::size_t i = 0; i < whole.operation.products.size(); ++i)
      CHECK(part.layer(id).operation.products[i].rows == whole.operation.products[i].rows / 4);
  }
}

TEST_CASE("without balance the rank with the last tokens has most of a causal attention", "[context]") {
  // 4,096 tokens over four ranks: the last one's queries see 3,072 to 4,096 keys, 7/8 of all on average. Balanced, and
  // of the whole, it is half.
  const Model model = prepare(llama(1, {{"model.length", "4096"}})).model;
  const Model even = stage_models(model, {.context = 4}).front().model;
  const Model last = stage_models(model, {.context = 4, .context_balanced = false}).front().model;
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    const bool attention = model.layer(id).kind == LayerKind::Attention;
    CHECK_THAT(last.layer(id).forward_flops.value(),
               WithinRel((attention ? 1.75 : 1.0) * even.layer(id).forward_flops.value(), 1e-12));
    if (!attention) continue;
    CHECK(even.layer(id).operation.products.front().columns == 2048);
    CHECK(last.layer(id).operation.products.front().columns == 3584);
    CHECK(last.layer(id).operation.products.back().inner == 3584);
    CHECK(last.layer(id).operation.products.front().rows == 1024);
  }
}

TEST_CASE("context-parallel replicas have one batch", "[context]") {
  // Eight ranks, four to a sample: two samples a step. 64 ranks with 2 x 2 of a replica: 16 replicas, eight batches.
  Inputs inputs;
  const PredictedRow row = predict(llama(8, {{"strategy.context", "4"}}), inputs);
  CHECK(row.batches == 2);
  CHECK_THAT(row.throughput() * row.step_time.value(), WithinRel(2.0, 1e-12));
  const PredictRequest hybrid =
      llama(64, {{"strategy.context", "2"}, {"strategy.tensor", "2"}, {"strategy.pipeline", "2"}});
  CHECK(prepare(hybrid).strategy.graph.batches() == 8);
  const LayoutTask task{.workers = 64, .samples = 8};
  CHECK(task.batch({.tensor = 2, .pipeline = 2, .context = 2}) == 1);
  CHECK_FALSE(task.divides({.tensor = 2, .pipeline = 2}));  // 16 replicas, 8 samples
  CHECK(task.divides({.tensor = 2, .pipeline = 2, .context = 2}));
}

TEST_CASE("activations shrink with the tokens, and state is shared out among all replicas", "[context]") {
  // So many tokens that activations are most of what is held.
  const Settings adam{{"model.length", "4096"}, {"precision", "bf16"}, {"optimizer", "adam"}, {"strategy.stage", "1"}};
  const auto with = [&](const char* context) {
    PredictRequest request = llama(8, adam, "fsdp");
    request.settings.emplace_back("strategy.context", context);
    return prepare(request).memory.need;
  };
  const MemoryNeed whole = with("1");
  const MemoryNeed part = with("4");
  CHECK_THAT(static_cast<double>(part.activations.count),
             WithinRel(static_cast<double>(whole.activations.count) / 4.0, 1e-3));
  CHECK(part.weights == whole.weights);
  CHECK(part.state == whole.state);
}

TEST_CASE("tokens that cannot be shared out are refused", "[context]") {
  CHECK_THROWS_AS(prepare(llama(8, {{"strategy.context", "3"}})), InputError);                            // 8 replicas
  CHECK_THROWS_AS(prepare(llama(6, {{"strategy.context", "3"}})), PlanError);                             // 32 tokens
  CHECK_THROWS_AS(prepare(llama(8, {{"strategy.context", "8"}, {"strategy.tensor", "2"}})), InputError);  // 4 replicas
  PredictRequest images{.model = "resnet50", .cluster = "dgx-a100", .strategy = "ddp", .workers = 4};
  images.settings = {{"strategy.context", "2"}};
  CHECK_THROWS_AS(prepare(images), PlanError);
}

TEST_CASE("a strategy file keeps how tokens are shared out", "[context]") {
  const Problem problem = prepare(llama(
      8, {{"strategy.context", "4"}, {"strategy.context_overlap", "true"}, {"strategy.context_balanced", "false"}}));
  const Strategy read =
      parse_strategy(to_yaml(problem.strategy, problem.model), "context.yaml",
                     {.model = problem.model, .cluster = problem.cluster, .workers = 8, .batch = 1, .options = {}});
  CHECK(read.graph.parallel == problem.strategy.graph.parallel);
  CHECK(read.graph.parallel.context == 4);
  CHECK(read.graph.parallel.context_overlap);
  CHECK_FALSE(read.graph.parallel.context_balanced);
}

TEST_CASE("an exchange beside attention takes what is longer", "[context]") {
  // One block on two nodes: a gather takes longer than a pass of attention. One after the other they take the sum,
  // beside each other the gather alone; behind it in the backward pass comes the reduce-scatter, on the same stream. So
  // the step is shorter by both passes of attention.
  const auto with = [&](const char* overlap) {
    return prepare(llama(16, {{"model.depth", "1"},
                              {"model.length", "4096"},
                              {"strategy.context", "16"},
                              {"strategy.context_overlap", overlap}}));
  };
  const Problem problem = with("false");
  double attention = 0.0;
  for (const Op& op : problem.plan.ops) {
    if (op.kind() != OpKind::Compute) continue;
    for (const ComputePart& part : op.compute().parts)
      if (part.layer >= 0 && problem.model.layer(static_cast<LayerId>(part.layer)).kind == LayerKind::Attention)
        attention += part.duration.value();
  }
  REQUIRE(attention > 0.0);
  const auto step = [](const Problem& of) { return replay(of.plan, of.cluster, of.options).step.value(); };
  CHECK_THAT(step(problem) - step(with("true")), WithinRel(attention, 1e-6));
}

TEST_CASE("both solvers and the estimate agree about context", "[context]") {
  Inputs inputs;
  for (const char* overlap : {"false", "true"})
    for (const auto& [workers, layout] : {std::pair{8, Layout{.context = 4}},
                                          {8, Layout{.context = 4, .recompute = Recompute::Full}},
                                          {16, Layout{.tensor = 2, .context = 4, .sequence = true, .zero = 1}},
                                          {16, Layout{.pipeline = 2, .context = 8, .zero = 2}},
                                          {16, Layout{.context = 2, .zero = 3}}}) {
      PredictRequest request =
          llama(workers, {{"model.length", "4096"}, {"precision", "bf16"}, {"strategy.context_overlap", overlap}});
      LayoutQuestion question(request, 4 * workers, inputs);
      const Problem problem = prepare(question.request_for(layout), inputs);
      REQUIRE(problem.strategy.graph.parallel.context_overlap == (overlap == std::string("true")));
      INFO(text_of(layout, question.task()) << ", beside attention: " << overlap);
      const double step = step_of_both_solvers(problem);
      CHECK_THAT(question.cost(layout)->step.value(), WithinRel(step, 0.1));
    }
}

TEST_CASE("nodes stand for each other where tokens are shared out", "[context]") {
  for (const char* context : {"2", "8", "16", "32"})
    for (const char* stage : {"1", "3"}) {
      INFO(context << " context-parallel ranks, ZeRO " << stage);
      expect_folded_as_fluid(prepare(
          llama(32, {{"model.length", "64"}, {"strategy.context", context}, {"strategy.stage", stage}}, "fsdp")));
    }
}

TEST_CASE("a search of layouts shares tokens out where samples are too few", "[context]") {
  // Two samples of 32,768 tokens on eight GPUs: without tensor parallelism or stages only context-parallel ranks help.
  Inputs inputs;
  PredictRequest request = llama(8, {{"model.length", "32768"}, {"precision", "bf16"}});
  LayoutQuestion question(request, 2, inputs);
  const LayoutSpace space =
      layout_space({{"tensor", "1"}, {"pipeline", "1"}}, question.model(), question.cluster(), question.task());
  CHECK(space.context == std::vector<int>{1, 2, 4});
  const LayoutSearchResult found =
      search_layouts(space, question.task(), [&](const Layout& layout) { return question.cost(layout); }, {});
  REQUIRE_FALSE(found.evaluated.empty());
  for (const EvaluatedLayout& one : found.evaluated) CHECK(one.layout.context == 4);
  CHECK(question.strategy({.context = 4}).graph.parallel.context == 4);
}
