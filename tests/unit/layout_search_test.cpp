// Layouts: what divides, what a search finds, what estimates of them say against replays.
#include <cmath>

#include "base/error.hpp"
#include "sim/engine/engine.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/stages_estimate.hpp"
#include "sim/problem/layout_question.hpp"
#include "strategies/pipeline/closed_forms.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"
#include "tests/support/layouts.hpp"

using namespace simsync;
using namespace simsync::test;
using Catch::Matchers::WithinRel;

namespace {

Seconds replayed(const LayoutQuestion& question, const Layout& layout) {
  Inputs inputs;
  PredictRequest request = question.request_for(layout);
  request.settings.emplace_back("solver", "native");
  request.settings.emplace_back("memory", "ignore");
  const Problem problem = prepare(request, inputs);
  return replay(problem.plan, problem.cluster, problem.options).step;
}

/// Spearman's, without ties.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto ranks = [](const std::vector<double>& values) {
    std::vector<double> out;
    for (const double value : values)
      out.push_back(static_cast<double>(
          std::count_if(values.begin(), values.end(), [&](double other) { return other < value; })));
    return out;
  };
  const std::vector<double> x = ranks(a);
  const std::vector<double> y = ranks(b);
  double squares = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) squares += (x[i] - y[i]) * (x[i] - y[i]);
  const auto n = static_cast<double>(a.size());
  return 1.0 - 6.0 * squares / (n * (n * n - 1.0));
}

}  // namespace

TEST_CASE("a layout divides workers, samples and micro-steps evenly, or it is none", "[layout]") {
  const LayoutTask task{.workers = 16, .samples = 64};
  CHECK(task.divides({.tensor = 2, .pipeline = 2, .micro_batch = 4}));  // 4 replicas of 16 samples
  CHECK(task.replicas({.tensor = 2, .pipeline = 2}) == 4);
  CHECK(task.micro_steps({.tensor = 2, .pipeline = 2, .micro_batch = 4}) == 4);
  CHECK_FALSE(task.divides({.tensor = 3}));
  CHECK_FALSE(task.divides({.micro_batch = 8}));  // 16 replicas of 4 samples
  CHECK_FALSE(task.divides({.sequence = true}));  // nothing is split
  CHECK_FALSE(task.divides({.tensor = 16, .zero = 1}));
  CHECK(task.divides({.tensor = 2, .experts = 4}));
  CHECK_FALSE(task.divides({.tensor = 4, .experts = 8}));  // 4 replicas
  const LayoutTask many{.workers = 1, .samples = 200'000};
  CHECK_FALSE(many.divides({.micro_batch = 1}));  // more micro-steps than a strategy may have
  CHECK(many.divides({.micro_batch = 2}));
  CHECK_FALSE(task.divides({.schedule = PipelineSchedule::GPipe}));
  CHECK_FALSE(task.divides({.pipeline = 2, .schedule = PipelineSchedule::Interleaved}));
  CHECK_FALSE(task.divides({.pipeline = 2, .chunks = 2}));
  // 8 replicas of 8 samples: 8 micro-steps are a multiple of 2 stages, 1 is not.
  CHECK(task.divides({.pipeline = 2, .schedule = PipelineSchedule::Interleaved, .chunks = 2}));
  CHECK_FALSE(task.divides({.pipeline = 2, .schedule = PipelineSchedule::Interleaved, .chunks = 2, .micro_batch = 8}));
}

TEST_CASE("annealing stays in its space", "[layout]") {
  Inputs inputs;
  LayoutQuestion question = gpt2(inputs, 8, 32);
  const LayoutSpace space = space_of(question, {{"zero", "3"}, {"sequence", "true"}});
  for (const EvaluatedLayout& one : searched(question, space, LayoutMethod::Anneal).evaluated) {
    CHECK(one.layout.zero == (question.task().replicas(one.layout) == 1 ? 0 : 3));
    CHECK(one.layout.sequence == (one.layout.tensor > 1));
  }
}

TEST_CASE("a search is the same every time, ends when it is told to, and evaluates nothing twice", "[layout]") {
  Inputs inputs;
  LayoutQuestion question = gpt2(inputs, 8, 32);
  const LayoutSpace space = space_of(question);
  std::map<Layout, int> asked;
  const EvaluateLayout evaluate = [&](const Layout& layout) {
    ++asked[layout];
    return std::optional(LayoutCost{.step = Seconds{1.0 + 0.1 * layout.pipeline - 0.01 * layout.tensor}});
  };
  const LayoutSearchResult first = search_layouts(space, question.task(), evaluate, {.seed = 3});
  for (const auto& [layout, times] : asked) CHECK(times == 1);
  const LayoutSearchResult second = search_layouts(space, question.task(), evaluate, {.seed = 3});
  REQUIRE(first.evaluated.size() == second.evaluated.size());
  for (std::size_t i = 0; i < first.evaluated.size(); ++i)
    CHECK(first.evaluated[i].layout == second.evaluated[i].layout);
  CHECK(first.evaluated.front().layout.tensor == 8);
  int left = 10;
  const auto stopped = search_layouts(space, question.task(), evaluate, {}, [&] { return left-- <= 0; });
  CHECK(stopped.evaluated.size() <= 10);
}

TEST_CASE("what does not fit is worse than anything that does", "[layout]") {
  CHECK(is_better({.step = Seconds{9.0}}, {.step = Seconds{1.0}, .over = Bytes{1}}));
  CHECK(is_better({.step = Seconds{9.0}, .over = Bytes{1}}, {.step = Seconds{1.0}, .over = Bytes{2}}));
  CHECK(is_better({.step = Seconds{1.0}}, {.step = Seconds{2.0}}));
  // 70 billion parameters with Adam in bf16 take 16 bytes each (ZeRO, section 3): 1.1 TB over 64 GPUs of 80 GB.
  Inputs inputs;
  PredictRequest request{.model = "llama3-70b", .cluster = "dgx-h100", .strategy = "", .workers = 64};
  request.settings = {{"precision", "bf16"}, {"optimizer", "adam"}, {"master_weights", "true"}};
  LayoutQuestion question(request, 64, inputs);
  const LayoutSearchResult found =
      searched(question, space_of(question, {{"schedule", "1f1b"}}), LayoutMethod::Coordinate);
  REQUIRE(found.evaluated.front().cost.fits());
  CHECK(question.memory(found.evaluated.front().layout).fits());
  CHECK(found.misfits() > 0);
  CHECK_FALSE(question.cost({})->fits());
}

TEST_CASE("estimates of layouts are near replays and order them alike", "[layout]") {
  Inputs inputs;
  LayoutQuestion question = gpt2(inputs, 16, 64, {{"memory", "ignore"}});
  const LayoutSearchResult drawn = searched(question, space_of(question), LayoutMethod::Random);
  std::vector<double> estimates;
  std::vector<double> replays;
  for (std::size_t i = 0; i < drawn.evaluated.size(); i += 2) {
    const auto& [layout, cost] = drawn.evaluated[i];
    estimates.push_back(cost.step.value());
    replays.push_back(replayed(question, layout).value());
    INFO(text_of(layout, question.task()) << ": " << estimates.back() << " s, replayed " << replays.back() << " s");
    CHECK(estimates.back() / replays.back() > 0.75);
    CHECK(estimates.back() / replays.back() < 1.1);
  }
  REQUIRE(estimates.size() > 40);
  CHECK(rank_correlation(estimates, replays) > 0.95);
}

TEST_CASE("estimates of layouts know groups that lie across nodes and tables that stages share", "[layout]") {
  // Three tensor-parallel ranks on nodes of eight: some groups are on two nodes, and are slower by far. Stages of GPT-2
  // on a slow network sum the gradients of its tied table, 154 MB, which takes longer than all else.
  struct Case {
    std::string cluster;
    int workers;
    Layout layout;
  };
  Inputs inputs;
  for (const Case& one : {Case{"dgx-a100", 24, {.tensor = 3, .micro_batch = 2}},
                          Case{"dgx-a100", 24, {.tensor = 6, .micro_batch = 6, .zero = 1}},
                          Case{"dgx-a100", 24, {.tensor = 3, .pipeline = 2, .micro_batch = 1}},
                          Case{"p3.16xlarge", 24, {.pipeline = 3, .micro_batch = 1}},
                          Case{"p3.16xlarge", 32, {.pipeline = 4, .micro_batch = 1, .zero = 1}},
                          Case{"p3.16xlarge", 32, {.tensor = 4, .pipeline = 4, .micro_batch = 8}},
                          // A head that has the whole table, of which lookups have a quarter.
                          Case{"p3.16xlarge",
                               32,
                               {.tensor = 4,
                               .pipeline = 4,
                               .sequence = true,
                               .micro_batch = 8,
                               .splits = {{"lm_head", LayerSplit::Tokens}}}}}) {
    PredictRequest request{.model = "gpt2", .cluster = one.cluster, .strategy = "", .workers = one.workers};
    request.settings = {{"model.fused", "1"}, {"memory", "ignore"}};
    LayoutQuestion question(request, 2 * one.workers, inputs);
    INFO(one.cluster << ": " << text_of(one.layout, question.task()));
    const double ratio = question.cost(one.layout)->step / replayed(question, one.layout);
    CHECK(ratio > 0.85);
    CHECK(ratio < 1.1);
  }
}

TEST_CASE("the estimate of a pipeline of equal stages is its closed form", "[layout]") {
  for (const int stages : {1, 2, 4})
    for (const auto& [word, schedule] : pipeline_schedule_words()) {
      if (stages == 1 && schedule != PipelineSchedule::OneForwardOneBackward) continue;
      const int chunks = schedule == PipelineSchedule::Interleaved ? 2 : 1;
      LabModel lab{};
      for (int i = 0; i < 8; ++i) {
        Layer layer{.name = "blocks." + std::to_string(i), .kind = LayerKind::Dense};
        layer.dense_rows = 1.0;
        lab.model.add_layer(layer, i == 0 ? std::vector<LayerId>{} : std::vector<LayerId>{lab.model.layer_count() - 1});
        lab.profile.layers.push_back({Seconds{1.0}, Seconds{2.0}});
      }
      Strategy strategy{.name = "lab", .graph = {.workers = stages}, .variables = {}};
      strategy.graph.micro_steps = lab.profile.micro_steps = 8;
      strategy.graph.parallel = {.pipeline = stages, .schedule = schedule, .chunks = chunks};
      const Cluster cluster = lab_cluster(stages, 1);
      // A stage has 8 / stages blocks, a chunk of it as many divided by its chunks: 1 s forward, 2 s backward each, of
      // which half are gradients of weights.
      const double blocks = 8.0 / stages / chunks;
      const Seconds expected = pipeline_time(
          strategy.graph.parallel.shape(8),
          {.forward = Seconds{blocks}, .backward_input = Seconds{blocks}, .backward_weight = Seconds{blocks}});
      const Seconds step = StagesEstimator(lab.model, cluster, stages).estimate(strategy, lab.profile).step;
      INFO(word << ", " << stages << " stages");
      CHECK_THAT(step.value(), WithinRel(expected.value(), 1e-12));
    }
}

TEST_CASE("bytes of a layout are those of its plan", "[layout]") {
  // On a ring an all-reduce sends 2 b (p-1)/p, a reduce-scatter b (p-1)/p of b bytes, an all-gather b (p-1) of each
  // rank's b, an all-to-all (p-1)/p of each rank's. A transfer sends all of its bytes.
  Inputs inputs;
  LayoutQuestion question = gpt2(inputs, 16, 64, {{"memory", "ignore"}});
  for (const Layout& layout : {Layout{.tensor = 4, .micro_batch = 2}, Layout{.tensor = 2, .sequence = true, .zero = 1},
                               Layout{.pipeline = 1, .zero = 3}, Layout{.tensor = 2, .pipeline = 1, .zero = 2},
                               // The head reads shares of tokens in place of the whole, and is split by rows: an
                               // all-to-all.
                               Layout{.tensor = 4, .sequence = true, .splits = {{"lm_head", LayerSplit::Rows}}}}) {
    const Problem problem = prepare(question.request_for(layout), inputs);
    double bytes = 0.0;
    for (const Op& op : problem.plan.ops) {
      if (op.kind() != OpKind::Collective) continue;
      const Collective& all = op.collective();
      const auto ranks = static_cast<double>(problem.plan.grouping(op.grouping).ranks(0).size());
      const double half = all.bytes * (ranks - 1.0) / ranks;
      bytes += all.primitive == CollectivePrimitive::AllReduce   ? 2.0 * half
               : all.primitive == CollectivePrimitive::AllGather ? ranks * half
                                                                 : half;
    }
    INFO(text_of(layout, question.task()));
    // The loss over a split vocabulary exchanges three numbers a row, which is in both.
    CHECK_THAT(question.sent(layout).total(), WithinRel(bytes, 1e-6));
  }
}

TEST_CASE("ZeRO has a plan with every schedule, and its gathers follow the order of the passes", "[layout]") {
  Inputs inputs;
  LayoutQuestion question = gpt2(inputs, 8, 32, {{"memory", "ignore"}});
  for (const int zero : {0, 1, 2, 3})
    for (const auto& [word, schedule] : pipeline_schedule_words()) {
      const Layout layout{.tensor = 2,
                          .pipeline = 2,
                          .schedule = schedule,
                          .chunks = schedule == PipelineSchedule::Interleaved ? 2 : 1,
                          .micro_batch = 4,
                          .recompute = Recompute::Full,
                          .zero = zero};
      INFO("ZeRO " << zero << ", " << word);
      const double ratio = question.cost(layout)->step / replayed(question, layout);
      CHECK(ratio > 0.85);
      CHECK(ratio < 1.05);
    }
}

TEST_CASE("a space of layouts says which values it takes", "[layout]") {
  Inputs inputs;
  const LayoutQuestion question = gpt2(inputs, 16, 64);
  const LayoutSpace space = space_of(question);
  CHECK(space.tensor == std::vector<int>{1, 2, 4, 8, 16});
  CHECK(space.pipeline == std::vector<int>{1, 2, 4, 8});  // divisors of 16 up to 12 blocks
  CHECK(space.micro_batch == std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64});
  CHECK(space_of(question, {{"tensor", "8,2,2"}}).tensor == std::vector<int>{2, 8});
  CHECK_THROWS_AS(space_of(question, {{"tensor", "two"}}), InputError);
  CHECK_THROWS_AS(space_of(question, {{"tensor", "0"}}), InputError);
  CHECK_THROWS_AS(space_of(question, {{"zero", "4"}}), InputError);
  CHECK_THROWS_AS(space_of(question, {{"stages", "2"}}), InputError);
  CHECK_THROWS_AS(space_of(question, {{"experts", "0"}}), InputError);
  CHECK_THROWS_AS(space_of(question, {{"chunks", "1,2"}}), InputError);
  for (const char* name : {"tensor", "pipeline", "experts", "chunks", "micro_batch", "zero"})
    for (const char* text : {"", "4,", ",4", "4,,2"}) CHECK_THROWS_AS(space_of(question, {{name, text}}), InputError);
  CHECK(space.experts == std::vector<int>{1});
  // A replica's whole batch is a micro-batch, however large.
  const LayoutQuestion large = gpt2(inputs, 16, 2048);
  CHECK(space_of(large).micro_batch == std::vector<std::int64_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048});
  PredictRequest shallow{.model = "gpt2", .cluster = "dgx-a100", .strategy = "", .workers = 4};
  shallow.settings = {{"model.depth", "2"}};
  const LayoutQuestion few(shallow, 16, inputs);
  CHECK_THROWS_AS(space_of(few, {{"schedule", "interleaved"}}), InputError);
}

TEST_CASE("ends that count as blocks leave the first and the last chunk fewer", "[layout]") {
  // GPT-2 has 12 blocks, 14 with its ends: on 14 stages of one chunk the first has an embedding, the last a head.
  const Model model = find_model("gpt2");
  CHECK(blocks_by_chunk(model, {.pipeline = 4, .blocks = StageBlocks::WithEnds}) == BlockCounts{3, 4, 3, 2});
  CHECK(blocks_by_chunk(model, {.pipeline = 4}) == BlockCounts{3, 3, 3, 3});
  const std::vector<StageModel> stages = stage_models(model, {.pipeline = 14, .blocks = StageBlocks::WithEnds});
  REQUIRE(stages.size() == 14);
  const auto blocks_in = [](const StageModel& stage) {
    std::size_t count = 0;
    for (LayerId id = 0; id < stage.model.layer_count(); ++id)
      if (stage.layer_of[id] && !block_of(stage.model.layer(id).name).empty()) ++count;
    return count;
  };
  CHECK(blocks_in(stages.front()) == 0);
  CHECK(blocks_in(stages.back()) == 0);
  CHECK(blocks_in(stages[1]) > 0);
  CHECK(stages.back().model.layer(stages.back().model.layer_count() - 1).kind == LayerKind::Loss);
  CHECK_THROWS_AS(blocks_by_chunk(model, {.pipeline = 15, .blocks = StageBlocks::WithEnds}), PlanError);
  Inputs inputs;
  LayoutQuestion question = gpt2(inputs, 4, 16, {{"memory", "ignore"}});
  const Layout layout{.pipeline = 4, .blocks = StageBlocks::WithEnds, .micro_batch = 1};
  CHECK(question.strategy(layout).graph.parallel.blocks == StageBlocks::WithEnds);
  CHECK_THAT(question.cost(layout)->step.value(), WithinRel(replayed(question, layout).value(), 0.05));
}

TEST_CASE("a layout's options make the strategy that it says", "[layout]") {
  Inputs inputs;
  const LayoutQuestion question = gpt2(inputs, 16, 64);
  const Layout layout{.tensor = 2,
                      .pipeline = 2,
                      .schedule = PipelineSchedule::Interleaved,
                      .chunks = 3,
                      .blocks = StageBlocks::WithEnds,
                      .sequence = true,
                      .micro_batch = 2,
                      .recompute = Recompute::Full,
                      .splits = {{"lm_head", LayerSplit::Columns}},
                      .zero = 2};
  const GraphStrategy graph = question.strategy(layout).graph;
  CHECK(graph.parallel == ModelParallel{.tensor = 2,
                                        .pipeline = 2,
                                        .schedule = PipelineSchedule::Interleaved,
                                        .chunks = 3,
                                        .sequence = true,
                                        .splits = {{"lm_head", LayerSplit::Columns}},
                                        .blocks = StageBlocks::WithEnds});
  CHECK(graph.micro_steps == 8);  // 64 samples over 4 replicas, 2 at a time
  CHECK(graph.recompute == Recompute::Full);
  CHECK(graph.sharding.stage == 2);
}

TEST_CASE("an option that some meshes do not take leaves these out, and only them", "[layout]") {
  Inputs inputs;
  LayoutQuestion question = gpt2(inputs, 16, 32, {{"strategy.group", "8"}});
  CHECK(question.cost({.tensor = 1, .zero = 1}).has_value());
  CHECK(question.first_refusal().empty());
  CHECK_FALSE(question.cost({.tensor = 8, .micro_batch = 2, .zero = 1}).has_value());  // two replicas
  CHECK_THAT(question.first_refusal(), ContainsSubstring("'group'"));
}

TEST_CASE("what a layout says itself cannot be set, and it says nothing else", "[layout]") {
  Inputs inputs;
  for (const std::string& option : layout_options())
    CHECK_THROWS_AS(gpt2(inputs, 4, 16, {{"strategy." + option, "1"}}), InputError);
  CHECK_THROWS_AS(gpt2(inputs, 4, 16, {{"strategy.servers", "all"}}), InputError);  // of no builder that is used
  CHECK_NOTHROW(gpt2(inputs, 4, 16, {{"strategy.prefetch", "2"}}));
  CHECK_THROWS_AS(gpt2(inputs, 4, 16, {{"strategy.prefetch", "abc"}}), InputError);  // of fsdp
  CHECK_THROWS_AS(gpt2(inputs, 4, 16, {{"strategy.bucket", "abc"}}), InputError);    // of ddp
  const Layout layout{.tensor = 2, .splits = {{"lm_head", LayerSplit::Columns}}, .zero = 1};
  for (const auto& [option, value] : options_of(layout, {.workers = 4, .samples = 16}))
    CHECK(std::count(layout_options().begin(), layout_options().end(), option) == 1);
}
