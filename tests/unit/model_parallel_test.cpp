// Tensor and pipeline parallelism: what is split how, what ranks exchange, timelines on paper, memory by stage.
#include <map>
#include <set>

#include "base/error.hpp"
#include "sim/engine/engine.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/stage_profile.hpp"
#include "sim/problem/problem.hpp"
#include "strategies/pipeline/closed_forms.hpp"
#include "strategies/stage_model.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/collectives_of.hpp"
#include "tests/support/gpt2.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;
using namespace simsync::test;
using Catch::Matchers::WithinRel;

namespace {

/// Of collectives for this reason: bytes that a rank sends on a ring, by the primitive's closed form.
double sent_by_rank(const Plan& plan, Phase phase) {
  double bytes = 0.0;
  for (const Op& op : plan.ops) {
    if (op.kind() != OpKind::Collective || op.reason.phase != phase) continue;
    const auto ranks = static_cast<double>(plan.grouping(op.grouping).ranks(0).size());
    const Collective& all = op.collective();
    switch (all.primitive) {
      case CollectivePrimitive::AllReduce:
        bytes += 2.0 * all.bytes * (ranks - 1.0) / ranks;
        break;
      case CollectivePrimitive::ReduceScatter:
        bytes += all.bytes * (ranks - 1.0) / ranks;
        break;
      case CollectivePrimitive::AllGather:
        bytes += all.bytes * (ranks - 1.0);
        break;
      default:
        FAIL("no split layer has a " << name_of(all.primitive));
    }
  }
  return bytes;
}

/// So many blocks of one layer each, forward 1 s and backward 2 s per micro-step, without variables.
LabModel blocks(int count) {
  LabModel out{};
  for (int i = 0; i < count; ++i) {
    Layer layer;
    layer.name = "blocks." + std::to_string(i);
    layer.kind = LayerKind::Dense;
    layer.dense_rows = 1.0;
    const LayerId id = out.model.layer_count();
    out.model.add_layer(layer, i == 0 ? std::vector<LayerId>{} : std::vector<LayerId>{id - 1});
    out.profile.layers.push_back({Seconds{1.0}, Seconds{2.0}});
  }
  return out;
}

double lab_step(LabModel& lab, const PipelineShape& shape, const HostCosts& host = {}) {
  Strategy strategy;
  strategy.name = "lab";
  strategy.graph.workers = shape.stages;
  strategy.graph.micro_steps = lab.profile.micro_steps = shape.micro_batches;
  strategy.graph.parallel = {
      .pipeline = shape.stages, .schedule = shape.schedule, .chunks = shape.chunks, .host = host};
  const Cluster cluster = lab_cluster(shape.stages, 1);
  return replay(compile(lab.model, lab.profile, cluster, strategy), cluster, {}).step.value();
}

}  // namespace

TEST_CASE("a transformer block is split by columns, heads and rows", "[parallel]") {
  const Problem problem = gpt2(1, {});
  const std::vector<LayerSplit> splits = splits_of(problem.model, {.tensor = 2});
  std::map<std::string, LayerSplit> by_name;
  for (LayerId id = 0; id < problem.model.layer_count(); ++id) by_name[problem.model.layer(id).name] = splits[id];
  CHECK(by_name.at("transformer.wte") == LayerSplit::Vocabulary);
  CHECK(by_name.at("transformer.h.0.ln_1") == LayerSplit::Whole);
  CHECK(by_name.at("transformer.h.0.attn.c_attn") == LayerSplit::Columns);
  CHECK(by_name.at("transformer.h.0.attn") == LayerSplit::Features);
  CHECK(by_name.at("transformer.h.0.attn.c_proj") == LayerSplit::Rows);
  CHECK(by_name.at("transformer.h.0.attn.add") == LayerSplit::Whole);
  CHECK(by_name.at("transformer.h.0.mlp.c_fc") == LayerSplit::Columns);
  CHECK(by_name.at("transformer.h.0.mlp.act") == LayerSplit::Features);
  CHECK(by_name.at("transformer.h.0.mlp.c_proj") == LayerSplit::Rows);
  CHECK(by_name.at("lm_head") == LayerSplit::Columns);
  CHECK(by_name.at("loss") == LayerSplit::Features);
  CHECK(splits_of(problem.model, {.tensor = 2, .sequence = true})[1] == LayerSplit::Tokens);
}

TEST_CASE("what split layers exchange is four all-reduces a block and micro-step", "[parallel]") {
  // Megatron-LM: of a block's two pairs of dense layers each has one all-reduce of the activations forward and one of
  // their gradients backward. Besides them the embedding has one forward, the last norm one backward, and the loss one
  // of three numbers a row. A rank of a ring of T sends 2 (T-1)/T of each.
  constexpr double kTokens = 1024;
  constexpr double kActivations = kTokens * 768 * 4;
  constexpr double kLoss = 3 * 4 * kTokens;
  for (const int ranks : {2, 4}) {
    const std::string tensor = std::to_string(ranks);
    const double all = 2.0 * (ranks - 1.0) / ranks * 4 * ((12 * 4 + 2) * kActivations + kLoss);
    CHECK_THAT(sent_by_rank(gpt2(ranks, {{"strategy.tensor", tensor}}).plan, Phase::SplitLayer), WithinRel(all, 1e-12));
    // In two micro-steps of half the samples as much.
    const Problem halves = gpt2(ranks, {{"strategy.tensor", tensor}, {"strategy.micro_steps", "2"}});
    CHECK_THAT(sent_by_rank(halves.plan, Phase::SplitLayer), WithinRel(all, 1e-12));
    // Sequence parallelism: an all-gather before and a reduce-scatter behind each pair, which are half an all-reduce
    // each, and in the backward pass one all-gather more of what each pair reads: half as much again there. The
    // embedding gives its tokens by one reduce-scatter forward and takes their gradients by one all-gather back. The
    // head reads gathered tokens: an all-gather forward, another one and a reduce-scatter backward.
    const Problem tokens = gpt2(ranks, {{"strategy.tensor", tensor}, {"strategy.sequence", "true"}});
    const double halves_of_block = 4 + 6;
    const double of_tokens =
        2.0 * (ranks - 1.0) / ranks * 4 * (0.5 * (12 * halves_of_block + 2 + 3) * kActivations + kLoss);
    CHECK_THAT(sent_by_rank(tokens.plan, Phase::SplitLayer), WithinRel(of_tokens, 1e-12));
  }
}

TEST_CASE("ranks and stages hold the model's variables between them", "[parallel]") {
  const Problem problem = gpt2(1, {});
  const Model& model = problem.model;
  std::int64_t split = 0;  // elements of matrices, biases of columns and the table
  std::int64_t whole = 0;
  for (const Variable& variable : model.variables()) {
    const bool of_columns =
        variable.name.find("c_attn") != std::string::npos || variable.name.find("c_fc") != std::string::npos;
    const bool is_matrix = variable.shape.size() > 1 && variable.name.find("wpe") == std::string::npos;
    (is_matrix || of_columns ? split : whole) += variable.elements();
  }
  // 50,257 rows of the table do not divide by two: the larger part has half a row more.
  const std::vector<StageModel> halves = stage_models(model, {.tensor = 2});
  REQUIRE(halves.size() == 1);
  CHECK(halves[0].model.parameter_count() == split / 2 + 768 / 2 + whole);
  // Three stages: each variable once, but for the copy of the table with which the last stage multiplies.
  std::multiset<VariableId> held;
  int copies = 0;
  for (const StageModel& stage : stage_models(model, {.pipeline = 3})) {
    held.insert(stage.variable_of.begin(), stage.variable_of.end());
    copies += stage.shared_copy ? 1 : 0;
    CHECK(stage.model.layer_count() == stage.layer_of.size());
  }
  CHECK(copies == 2);
  CHECK(held.size() == model.variables().size() + 1);
  for (VariableId id = 0; id < model.variables().size(); ++id) CHECK(held.count(id) == (id == 0 ? 2 : 1));
}

TEST_CASE("a pipeline takes what its closed form says, by every schedule", "[parallel]") {
  // Stages of S blocks take F = S, B + W = 2 S s for a micro-step; nothing else costs anything.
  for (const int stages : {1, 2, 4})
    for (const int micro_batches : {4, 8})
      for (const auto& [word, schedule] : pipeline_schedule_words()) {
        const int chunks = schedule == PipelineSchedule::Interleaved ? 2 : 1;
        const PipelineShape shape{schedule, stages, micro_batches, chunks};
        LabModel lab = blocks(8);
        const double share = 8.0 / (stages * chunks);
        const ChunkTimes times{Seconds{share}, Seconds{share}, Seconds{share}};
        INFO(word << ", " << stages << " stages, " << micro_batches << " micro-batches");
        CHECK_THAT(lab_step(lab, shape), WithinRel(pipeline_time(shape, times).value(), 1e-9));
      }
}

TEST_CASE("activations between stages take their time", "[parallel]") {
  // Two stages of one block, one micro-step: 1 s, its activations, 1 s, 2 s, their gradients, 2 s. A block leaves
  // 5e8 bytes, on a NIC of 1e9 bytes/s half a second each way.
  LabModel lab = blocks(0);
  for (int i = 0; i < 2; ++i) {
    Layer layer;
    layer.name = "blocks." + std::to_string(i);
    layer.kind = LayerKind::Dense;
    layer.dense_rows = 1.0;
    layer.output_bytes = 5e8;
    lab.model.add_layer(layer, i == 0 ? std::vector<LayerId>{} : std::vector<LayerId>{0});
    lab.profile.layers.push_back({Seconds{1.0}, Seconds{2.0}});
  }
  CHECK_THAT(lab_step(lab, {.stages = 2}), WithinRel(1.0 + 0.5 + 1.0 + 2.0 + 0.5 + 2.0, 1e-6));
}

TEST_CASE("exchanges of tensor-parallel ranks run beside products", "[parallel]") {
  // A block's forward pass has two all-gathers, each read by a product, and two reduce-scatters of what products give.
  // On NVLink each of them is shorter than its product, so that none of the block's remains visible: the step is what
  // computes, and what is exchanged before the first product and for the loss. Without overlap all of it is visible.
  const std::vector<std::pair<std::string, std::string>> split{{"strategy.tensor", "4"}, {"strategy.sequence", "true"}};
  auto beside = split;
  beside.emplace_back("strategy.tensor_overlap", "true");
  const Problem serial = gpt2(4, split);
  const Problem overlapped = gpt2(4, beside);
  CHECK_THAT(sent_by_rank(overlapped.plan, Phase::SplitLayer),
             WithinRel(sent_by_rank(serial.plan, Phase::SplitLayer), 1e-12));
  const auto step = [](const Problem& problem) { return replay(problem.plan, problem.cluster, {}).step.value(); };
  double computes = 0.0;
  for (const Op& op : serial.plan.ops)
    if (op.kind() == OpKind::Compute) computes += op.compute().duration.value();
  const double visible = step(serial) - computes;
  CHECK(visible > 0.0);
  CHECK(step(overlapped) >= computes);
  CHECK(step(overlapped) - computes < 0.5 * visible);
}

TEST_CASE("a device cannot be ahead of its host", "[parallel]") {
  // Two blocks, forward 1 s and backward 2 s each: 6 s of the device. Four passes to launch: at 1 s each the host is
  // ahead, at 5 s each it takes 20 s.
  LabModel lab = blocks(2);
  CHECK_THAT(lab_step(lab, {.stages = 1}, {.launch = Seconds{1.0}}), WithinRel(6.0, 1e-9));
  CHECK_THAT(lab_step(lab, {.stages = 1}, {.launch = Seconds{5.0}}), WithinRel(20.0, 1e-9));
  // Two micro-steps are twice as many passes.
  CHECK_THAT(lab_step(lab, {.stages = 1, .micro_batches = 2}, {.launch = Seconds{5.0}}), WithinRel(40.0, 1e-9));
}

TEST_CASE("a host that waits for its device begins a step with nothing launched", "[parallel]") {
  // Two blocks, forward 1 s and backward 2 s each, launches of 1 s. The device begins at 1 s, and what it needs later
  // is launched while it computes: 1 + 6. A host that does not wait launches the next step ahead: 6.
  LabModel lab = blocks(2);
  CHECK_THAT(lab_step(lab, {.stages = 1}, {.launch = Seconds{1.0}, .waits = true}), WithinRel(7.0, 1e-9));
  // Launches of 5 s are what a step takes, and the last pass, launched at 20 s: 4 x 5 + 2.
  CHECK_THAT(lab_step(lab, {.stages = 1}, {.launch = Seconds{5.0}, .waits = true}), WithinRel(22.0, 1e-9));
}

TEST_CASE("hosts wait for transfers that they announce", "[parallel]") {
  // As above without bytes: 1 s, 0.25 s until its activations are announced, 1 s, 2 s, 0.25 s for their gradients, 2 s.
  LabModel lab = blocks(2);
  CHECK_THAT(lab_step(lab, {.stages = 2}, {.transfer = Seconds{0.25}}),
             WithinRel(1.0 + 0.25 + 1.0 + 2.0 + 0.25 + 2.0, 1e-6));
  // With launches of 0.5 s the receiving host begins with them when the transfer is over: 1 (launched while the device
  // ends the step before), 0.25, 0.5 + 1, 2 (launched meanwhile), 0.25, 0.5 + 2.
  CHECK_THAT(lab_step(lab, {.stages = 2}, {.launch = Seconds{0.5}, .transfer = Seconds{0.25}}),
             WithinRel(1.0 + 0.25 + 1.5 + 2.0 + 0.25 + 2.5, 1e-6));
}

TEST_CASE("hosts check collectives rank by rank", "[parallel]") {
  // Each exchange of the four ranks that split layers costs their hosts 4 x 3 ms.
  const std::vector<std::pair<std::string, std::string>> split{{"strategy.tensor", "4"}, {"strategy.micro_steps", "2"}};
  auto checked = split;
  checked.emplace_back("strategy.check_cost", "3ms");
  const auto launched = [](const Plan& plan) {
    Seconds sum;
    for (const Op& op : plan.ops)
      if (op.kind() == OpKind::HostWork) sum += op.host().duration;
    return sum.value();
  };
  const Plan plan = gpt2(4, checked).plan;
  double exchanges = 0.0;
  for (const Op& op : plan.ops) exchanges += op.reason.phase == Phase::SplitLayer ? 1.0 : 0.0;
  REQUIRE(exchanges > 0.0);
  CHECK_THAT(launched(plan), WithinRel(exchanges * 4 * 3e-3, 1e-9));
  CHECK(launched(gpt2(4, split).plan) == 0.0);
}

TEST_CASE("stages have blocks by number or by their products", "[parallel]") {
  // Eight blocks of 1 and a head of 4: 12 in all. Even: 4 and 4. By the threshold of 6 the first stage ends with the
  // block that brings it above, the seventh. Balanced: 6, and 2 with the head.
  LabModel lab = blocks(8);
  Layer head;
  head.name = "head";
  head.kind = LayerKind::Dense;
  head.dense_rows = 1.0;
  head.forward_flops = Flops{4.0};
  Model model("lab", 1, "samples");
  for (LayerId id = 0; id < 8; ++id) {
    Layer layer = lab.model.layer(id);
    layer.forward_flops = Flops{1.0};
    model.add_layer(layer, id == 0 ? std::vector<LayerId>{} : std::vector<LayerId>{id - 1});
  }
  model.add_layer(head, {7});
  const auto first_stage = [&](StageBlocks blocks) {
    return stage_models(model, {.pipeline = 2, .blocks = blocks}).front().model.layer_count();
  };
  CHECK(first_stage(StageBlocks::Even) == 4);
  CHECK(first_stage(StageBlocks::Threshold) == 7);
  CHECK(first_stage(StageBlocks::Balanced) == 6);
  // Eight blocks of 1 and a head of 4 on five stages: 2, 2, 2, 2, and the head by itself.
  const std::vector<StageModel> five = stage_models(model, {.pipeline = 5, .blocks = StageBlocks::Balanced});
  CHECK(five[3].model.layer_count() == 2 + 1);  // and what it receives
  CHECK(five[4].model.layer_count() == 1 + 1);
}

TEST_CASE("hybrid plans take the same step by both solvers, and twice", "[parallel]") {
  for (const char* schedule : {"gpipe", "1f1b", "zero-bubble"}) {
    Problem problem = gpt2(16,
                           {{"strategy.tensor", "2"},
                            {"strategy.pipeline", "4"},
                            {"strategy.micro_steps", "4"},
                            {"strategy.schedule", schedule},
                            {"strategy.stage", "1"}},
                           "fsdp");
    problem.options.solver = Solver::SimGrid;
    const Seconds reference = replay(problem.plan, problem.cluster, problem.options).step;
    problem.options.solver = Solver::Native;
    const Seconds native = replay(problem.plan, problem.cluster, problem.options).step;
    CHECK_THAT(native.value(), WithinRel(reference.value(), 1e-6));
    CHECK(replay(problem.plan, problem.cluster, problem.options).step == native);
  }
}

TEST_CASE("units that ranks gather have layers of one chunk", "[parallel]") {
  // Two stages of two chunks of three blocks, two replicas.
  const auto gathered = [](const char* least) {
    const Problem problem = gpt2(4,
                                 {{"strategy.pipeline", "2"},
                                  {"strategy.schedule", "interleaved"},
                                  {"strategy.chunks", "2"},
                                  {"strategy.micro_steps", "4"},
                                  {"strategy.min_unit", least}},
                                 "fsdp");
    CHECK(replay(problem.plan, problem.cluster, problem.options).step.value() > 0.0);
    return sent(problem.plan, CollectivePrimitive::AllGather, 2);
  };
  const Sent blocks = gathered("0B");
  const Sent chunks = gathered("1GiB");
  CHECK(chunks.count < blocks.count);
  CHECK_THAT(chunks.bytes, WithinRel(blocks.bytes, 1e-12));
}

TEST_CASE("variables that stay whole are broadcast once a step, whatever the schedule", "[parallel]") {
  const auto broadcast = [](std::vector<std::pair<std::string, std::string>> schedule) {
    schedule.insert(schedule.end(), {{"strategy.pipeline", "2"},
                                     {"strategy.micro_steps", "4"},
                                     {"strategy.stage", "1"},
                                     {"strategy.whole_variables", "true"}});
    return sent(gpt2(4, schedule, "fsdp").plan, CollectivePrimitive::Broadcast, 2);
  };
  const Sent once = broadcast({});
  CHECK(once.count == 4);  // each of two ranks, on two stages
  const Sent interleaved = broadcast({{"strategy.schedule", "interleaved"}, {"strategy.chunks", "2"}});
  CHECK(interleaved.count == once.count);
}

TEST_CASE("what cannot be split is refused", "[parallel]") {
  const auto error_of = [](const std::string& model, int workers,
                           const std::vector<std::pair<std::string, std::string>>& settings) -> std::string {
    PredictRequest request{.model = model, .cluster = "dgx-a100", .strategy = "ddp", .workers = workers};
    request.batch = 8;
    request.settings = settings;
    try {
      (void)prepare(request);
    } catch (const std::exception& e) {
      return e.what();
    }
    return "none";
  };
  // Convolutions are shared out by samples.
  CHECK(error_of("resnet50", 2, {{"strategy.tensor", "2"}}) == "none");
  CHECK(
      error_of("resnet50", 16, {{"strategy.tensor", "16"}}) ==
      "micro-batches of 8 do not divide among 16 tensor-parallel ranks, which share out layers of model 'resnet50' by "
      "samples");
  CHECK(error_of("vgg16", 2, {{"strategy.tensor", "2"}, {"strategy.splits", "fc9:rows"}}) ==
        "no layer of model 'vgg16' is split by fc9:rows: none of that name, or one before it matches");
  CHECK(error_of("vgg16", 2, {{"strategy.tensor", "2"}, {"strategy.splits", "relu6:rows"}}) ==
        "tensor parallelism cannot split layer 'relu6' of model 'vgg16': layers of kind activation are not split by "
        "rows");
  CHECK(error_of("gpt2", 2, {{"strategy.tensor", "2"}, {"strategy.splits", "rows"}})
            .starts_with("error: 'rows' is no split of a layer"));
  CHECK(error_of("gpt2", 5, {{"strategy.tensor", "5"}}) ==
        "layer 'transformer.h.0.attn.scores' has 12 heads, which 5 tensor-parallel ranks do not divide evenly");
  CHECK(error_of("gpt2-medium", 16, {{"strategy.tensor", "16"}, {"memory", "ignore"}}) == "none");
  CHECK(error_of("llama3-8b", 16, {{"strategy.tensor", "16"}})
            .ends_with(" has 8 heads of keys and values, which 16 tensor-parallel ranks do not divide evenly"));
  CHECK(error_of("gpt2", 16, {{"strategy.pipeline", "16"}}) ==
        "model 'gpt2' has 12 blocks (layers whose names agree up to a number), which 16 stages of 1 chunk cannot "
        "share");
  CHECK(error_of("gpt2", 6, {{"strategy.tensor", "4"}}) ==
        "error: option 'tensor' of strategy 'ddp': replicas of 4 tensor-parallel ranks x 1 stages do not divide 6 "
        "workers");
  // The tensor-parallel ranks do divide the workers.
  CHECK(error_of("gpt2", 8, {{"strategy.tensor", "2"}, {"strategy.pipeline", "3"}}) ==
        "error: option 'pipeline' of strategy 'ddp': replicas of 2 tensor-parallel ranks x 3 stages do not divide 8 "
        "workers");
}
