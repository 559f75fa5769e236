// Expert parallelism: who holds which experts, what crosses the ranks, whose gradients are summed, what fits.
#include <numeric>

#include "base/error.hpp"
#include "sim/engine/engine.hpp"
#include "sim/problem/layout_question.hpp"
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

constexpr std::int64_t kWidth = 64;
constexpr std::int64_t kTokens = 32;
constexpr std::int64_t kFilter = 128;
constexpr int kBlocks = 2;
constexpr int kTop = 2;
constexpr int kExperts = 8;
/// w1, w2 and w3 of every expert in every block.
constexpr double kOfExperts = 3.0 * kWidth * kFilter * kExperts * kBlocks;

/// Mixtral with two blocks of eight experts, of which a token meets two.
PredictRequest mixtral(int workers, const Settings& settings, const std::string& strategy = "ddp") {
  PredictRequest request{
      .model = "mixtral-8x7b", .cluster = "dgx-a100", .strategy = strategy, .workers = workers, .batch = 1};
  request.settings = {{"model.width", "64"}, {"model.length", "32"},    {"model.filter", "128"},
                      {"model.depth", "2"},  {"model.heads", "4"},      {"model.key_heads", "2"},
                      {"memory", "ignore"},  {"model.vocabulary", "96"}};
  request.settings.insert(request.settings.end(), settings.begin(), settings.end());
  return request;
}

double parameters(const Model& model) {
  double sum = 0.0;
  for (const Variable& variable : model.variables()) sum += static_cast<double>(variable.elements());
  return sum;
}

}  // namespace

TEST_CASE("rows cross expert-parallel ranks twice in each pass", "[experts]") {
  // Of each block: to the experts and back, forward and backward. A rank sends its sample's rows, one for each of the
  // experts that a token meets, 64 numbers of four bytes each.
  const Problem problem = prepare(mixtral(8, {{"strategy.experts", "4"}}));
  const Sent crossing = sent(problem.plan, CollectivePrimitive::AllToAll, 4);
  CHECK(crossing.count == 4 * kBlocks);
  CHECK(crossing.bytes == crossing.count * 4.0 * kTokens * kTop * kWidth);
  CHECK(crossing.ranks == std::vector<int>{0, 1, 2, 3});
  CHECK(sent(prepare(mixtral(8, {})).plan, CollectivePrimitive::AllToAll, 8).count == 0);
  // In two micro-steps of half the samples as much.
  PredictRequest halves = mixtral(8, {{"strategy.experts", "4"}, {"strategy.micro_steps", "2"}});
  halves.batch = 2;
  CHECK(sent(prepare(halves).plan, CollectivePrimitive::AllToAll, 4).bytes == 2.0 * crossing.bytes);
}

TEST_CASE("tensor-parallel ranks send experts the tokens that they have", "[experts]") {
  // Two tensor-parallel ranks with sequence parallelism have half of the tokens each: half of the rows cross, between
  // ranks of the same place (0, 2, 4, 6). Behind that the routed rows are gathered among the two as in a dense block.
  const Settings split{{"strategy.experts", "4"}, {"strategy.tensor", "2"}, {"strategy.sequence", "true"}};
  const Problem problem = prepare(mixtral(8, split));
  const Sent crossing = sent(problem.plan, CollectivePrimitive::AllToAll, 4);
  CHECK(crossing.count == 4 * kBlocks);
  CHECK(crossing.bytes == crossing.count * 4.0 * kTokens * kTop * kWidth / 2.0);
  CHECK(crossing.ranks == std::vector<int>{0, 2, 4, 6});
  const std::vector<LayerSplit> splits = splits_of(problem.model, {.tensor = 2, .sequence = true});
  for (LayerId id = 0; id < problem.model.layer_count(); ++id) {
    const std::string& name = problem.model.layer(id).name;
    if (name.ends_with(".gate")) CHECK(splits[id] == LayerSplit::Tokens);  // the router
    if (name.ends_with(".w1") || name.ends_with(".w3")) CHECK(splits[id] == LayerSplit::Columns);
    if (name.ends_with(".w2")) CHECK(splits[id] == LayerSplit::Rows);
  }
  CHECK(splits_of(problem.model, {.tensor = 2})[0] == LayerSplit::Vocabulary);
}

TEST_CASE("gradients of experts are summed among the ranks that have them", "[experts]") {
  // Eight ranks, four to share out the experts: 0 and 4 have the same. A rank holds a quarter of their parameters.
  const Problem problem = prepare(mixtral(8, {{"strategy.experts", "4"}}));
  const Sent of_experts = sent(problem.plan, CollectivePrimitive::AllReduce, 2);
  const Sent of_others = sent(problem.plan, CollectivePrimitive::AllReduce, 8);
  CHECK(of_experts.ranks == std::vector<int>{0, 4});
  CHECK_THAT(of_experts.bytes, WithinRel(4.0 * kOfExperts / 4.0, 1e-12));
  CHECK_THAT(of_others.bytes, WithinRel(4.0 * (parameters(problem.model) - kOfExperts), 1e-12));
  const std::vector<StageModel> stages = stage_models(problem.model, {.experts = 4});
  REQUIRE(stages.size() == 1);
  CHECK_THAT(parameters(stages[0].model), WithinRel(parameters(problem.model) - kOfExperts + kOfExperts / 4.0, 1e-12));
  CHECK(std::count(stages[0].gradient_sum.begin(), stages[0].gradient_sum.end(), GradientSum::Experts) ==
        3 * kBlocks * kExperts / 4);
}

TEST_CASE("sharded experts are gathered among the ranks that have them", "[experts]") {
  // ZeRO 3 frees every block after its forward pass: its experts are gathered twice among 2 ranks, each of which gives
  // half of its quarter, and reduced once. The others likewise among 8.
  const Problem problem = prepare(mixtral(8, {{"strategy.experts", "4"}}, "fsdp"));
  const Sent gathered = sent(problem.plan, CollectivePrimitive::AllGather, 2);
  const Sent reduced = sent(problem.plan, CollectivePrimitive::ReduceScatter, 2);
  CHECK_THAT(gathered.bytes, WithinRel(2.0 * 4.0 * kOfExperts / 4.0 / 2.0, 1e-12));
  CHECK_THAT(reduced.bytes, WithinRel(4.0 * kOfExperts / 4.0, 1e-12));
  CHECK(sent(problem.plan, CollectivePrimitive::AllReduce, 2).count == 0);
  CHECK_THAT(sent(problem.plan, CollectivePrimitive::ReduceScatter, 8).bytes,
             WithinRel(4.0 * (parameters(problem.model) - kOfExperts), 1e-12));
  // With as many expert-parallel ranks as replicas nobody else has them.
  const Problem alone = prepare(mixtral(8, {{"strategy.experts", "8"}}, "fsdp"));
  for (const Op& op : alone.plan.ops)
    if (op.kind() == OpKind::Collective) CHECK(alone.plan.grouping(op.grouping).ranks(0).size() == 8);
}

TEST_CASE("a rank holds its experts whole below ZeRO 3, and its share of their optimizer's state", "[experts]") {
  // bf16: two bytes a weight. Adam has two numbers of four bytes for each weight that a rank updates: those of all
  // weights, experts or not, are on eight ranks in the end.
  const auto with = [](const char* experts) {
    return prepare(mixtral(
        8, {{"strategy.experts", experts}, {"strategy.stage", "1"}, {"precision", "bf16"}, {"optimizer", "adam"}},
        "fsdp"));
  };
  const Problem problem = with("4");
  const double all = parameters(problem.model);
  const MemoryNeed& need = problem.memory.need;
  CHECK_THAT(static_cast<double>(need.weights.count), WithinRel(2.0 * (all - kOfExperts * 3.0 / 4.0), 1e-6));
  const MemoryNeed whole = with("1").memory.need;
  CHECK_THAT(static_cast<double>(whole.weights.count), WithinRel(2.0 * all, 1e-6));
  CHECK_THAT(static_cast<double>(need.state.count), WithinRel(static_cast<double>(whole.state.count), 1e-6));
}

TEST_CASE("experts that cannot be shared out so are refused", "[experts]") {
  CHECK_THROWS_AS(prepare(mixtral(6, {{"strategy.experts", "3"}})), PlanError);   // 8 experts
  CHECK_THROWS_AS(prepare(mixtral(6, {{"strategy.experts", "4"}})), InputError);  // 6 replicas
  PredictRequest dense{.model = "gpt2", .cluster = "dgx-a100", .strategy = "ddp", .workers = 4};
  dense.settings = {{"strategy.experts", "2"}};
  CHECK_THROWS_AS(prepare(dense), PlanError);
  // Shard groups of 3 of 12 ranks and 2 or 4 expert-parallel ranks cut each other.
  CHECK_THROWS_AS(prepare(mixtral(12, {{"strategy.experts", "2"}, {"strategy.group", "3"}}, "fsdp")), PlanError);
  CHECK_THROWS_AS(
      prepare(mixtral(8, {{"strategy.experts", "2"}, {"strategy.stage", "1"}, {"strategy.whole_variables", "true"}},
                      "fsdp")),
      PlanError);
  const Model model = prepare(mixtral(8, {})).model;
  CHECK_THROWS_AS(splits_of(model, {.tensor = 2, .splits = parse_split_choices("*.w1:tokens")}), PlanError);
}

TEST_CASE("a layer as wide as there are experts is no router by that alone", "[experts]") {
  // Keys and values of this model have 64 / 4 x 2 = 32 features, as many as it has experts.
  const Problem problem = prepare(mixtral(2, {{"model.experts", "32"}}));
  const std::vector<LayerSplit> splits = splits_of(problem.model, {.tensor = 2});
  int keys = 0;
  for (LayerId id = 0; id < problem.model.layer_count(); ++id) {
    const std::string& name = problem.model.layer(id).name;
    if (name.ends_with(".gate")) CHECK(splits[id] == LayerSplit::Whole);
    if (!name.ends_with(".k_proj") && !name.ends_with(".v_proj")) continue;
    CHECK(splits[id] == LayerSplit::Columns);
    ++keys;
  }
  CHECK(keys == 2 * kBlocks);
}

TEST_CASE("every group of several ranks has a communicator", "[experts]") {
  // A gibibyte each (usable_of). Eight ranks: all, and the eight that share out experts, which no others have. Of 16
  // in shard groups of eight, two shard groups and eight pairs; expert groups of four, their shards of two, and pairs.
  const auto usable = [](int workers, const Settings& settings, const char* strategy) {
    return static_cast<double>(prepare(mixtral(workers, settings, strategy)).memory.usable.count) / (1 << 30);
  };
  const double alone = usable(8, {}, "ddp");
  CHECK_THAT(usable(8, {{"strategy.experts", "8"}}, "ddp"), WithinRel(alone - 1.0, 1e-9));
  CHECK_THAT(usable(8, {{"strategy.experts", "4"}}, "ddp"), WithinRel(alone - 2.0, 1e-9));
  CHECK_THAT(usable(16, {{"strategy.experts", "4"}, {"strategy.group", "8"}}, "fsdp"), WithinRel(alone - 4.0, 1e-9));
}

TEST_CASE("both solvers and the estimate agree about experts", "[experts]") {
  Inputs inputs;
  PredictRequest request = mixtral(0, {{"model.length", "512"}, {"precision", "bf16"}});
  for (const auto& [workers, layout] : {std::pair{8, Layout{.experts = 4}},
                                        {16, Layout{.tensor = 2, .experts = 4, .sequence = true, .zero = 1}},
                                        {16, Layout{.pipeline = 2, .experts = 8, .zero = 2}},
                                        {16, Layout{.experts = 2, .zero = 3}}}) {
    request.workers = workers;
    LayoutQuestion question(request, 4 * workers, inputs);
    INFO(text_of(layout, question.task()));
    const double step = step_of_both_solvers(prepare(question.request_for(layout), inputs));
    CHECK_THAT(question.cost(layout)->step.value(), WithinRel(step, 0.1));
  }
}

TEST_CASE("nodes stand for each other where experts are shared out", "[experts]") {
  // Inside nodes, over two of them and over all four.
  for (const char* experts : {"2", "8", "16", "32"})
    for (const char* stage : {"1", "3"}) {
      PredictRequest request =
          mixtral(32, {{"model.experts", "32"}, {"strategy.experts", experts}, {"strategy.stage", stage}}, "fsdp");
      INFO(experts << " expert-parallel ranks, ZeRO " << stage);
      expect_folded_as_fluid(prepare(request));
    }
}

TEST_CASE("a search of layouts shares experts out where that is faster", "[experts]") {
  // All of a wide model's gradients cross the network each step; the rows of few tokens are less.
  Inputs inputs;
  PredictRequest request = mixtral(16, {{"model.width", "1024"}, {"model.filter", "4096"}, {"precision", "bf16"}});
  LayoutQuestion question(request, 16, inputs);
  const LayoutSpace space = layout_space({{"zero", "0"}}, question.model(), question.cluster(), question.task());
  CHECK(space.experts == std::vector<int>{1, 2, 4, 8});
  const LayoutSearchResult found =
      search_layouts(space, question.task(), [&](const Layout& layout) { return question.cost(layout); }, {});
  CHECK(found.evaluated.front().layout.experts > 1);
  CHECK(question.strategy({.experts = 4}).graph.parallel.experts == 4);
}
