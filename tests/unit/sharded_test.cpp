// Sharded data parallelism (ZeRO, FSDP): units, volumes, timelines derived on paper, memory by stage.
#include <array>
#include <numeric>

#include "base/error.hpp"
#include "models/memory.hpp"
#include "sim/engine/engine.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/units.hpp"
#include "sim/problem/rank_memory.hpp"
#include "strategies/builders.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;
using namespace simsync::test;
using Catch::Matchers::WithinRel;

namespace {

/// Three blocks of 1 GB: to gather or to reduce one over two ranks takes 0.5 s on a link of 1 GB/s.
LabModel three_blocks() {
  const LabLayer block{.bytes = 1e9, .forward = 1, .backward = 2};
  LabModel lab{block, block, block};
  LabModel out{};
  for (LayerId id = 0; id < lab.model.layer_count(); ++id) {
    Layer layer = lab.model.layer(id);
    layer.name = "blocks." + std::to_string(id);
    layer.variables.clear();
    out.model.add_layer(layer, id == 0 ? std::vector<LayerId>{} : std::vector<LayerId>{id - 1});
    Variable variable = lab.model.variable(id);
    variable.name = layer.name + "/weight";
    out.model.add_variable(variable);
  }
  out.profile = lab.profile;
  return out;
}

Strategy sharded(const Model& model, int workers, const Sharding& sharding) {
  Strategy strategy = lab_strategy(model, workers, ShardedSynchronizer{});
  strategy.graph.sharding = sharding;
  return strategy;
}

double step_of(const LabModel& lab, const Cluster& cluster, const Strategy& strategy) {
  return replay(compile(lab.model, lab.profile, cluster, strategy), cluster, {}).step.value();
}

/// Bytes that a rank sends in a step, by the primitive's closed form on a ring.
double sent_by_rank(const Plan& plan) {
  double bytes = 0.0;
  for (const Op& op : plan.ops) {
    if (op.kind() != OpKind::Collective) continue;
    const auto ranks = static_cast<double>(plan.grouping(op.grouping).ranks(0).size());
    const double payload = op.collective().bytes;
    switch (op.collective().primitive) {
      case CollectivePrimitive::AllReduce:
        bytes += 2.0 * payload * (ranks - 1.0) / ranks;
        break;
      case CollectivePrimitive::ReduceScatter:
        bytes += payload * (ranks - 1.0) / ranks;
        break;
      case CollectivePrimitive::AllGather:
        bytes += payload * (ranks - 1.0);
        break;
      default:
        FAIL("a sharded plan has no " << name_of(op.collective().primitive));
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("a block is what comes up to the first number of a layer's name", "[sharded]") {
  CHECK(block_of("transformer.h.0.attn.c_attn") == "transformer.h.0");
  CHECK(block_of("layer1/2/conv3") == "layer1/2");
  CHECK(block_of("layer1.conv") == "");
  CHECK(block_of("lm_head") == "");
  CHECK(block_of("12") == "12");
}

TEST_CASE("blocks are merged until they are large enough, what is outside of them is the root", "[sharded]") {
  const LabModel lab = three_blocks();
  Strategy strategy = sharded(lab.model, 2, {});
  CHECK(units_of(lab.model, strategy).size() == 3);
  strategy.graph.sharding.min_unit = {1'500'000'000};
  const auto merged = units_of(lab.model, strategy);
  REQUIRE(merged.size() == 2);
  CHECK(merged[0].label == "blocks.0 ... blocks.1");
  CHECK(merged[0].last == 1);
  CHECK(merged[1].label == "blocks.2");
  const LabModel flat{{.bytes = 8}, {.bytes = 8}};
  const auto root = units_of(flat.model, sharded(flat.model, 2, {}));
  REQUIRE(root.size() == 1);
  CHECK(root[0].root);
  CHECK(root[0].variables.size() == 2);
}

// G, R: 0.5 s each, one after another on the stream of the group; F: 1 s, B: 2 s.
TEST_CASE("full shard on two ranks, step by step on paper", "[sharded]") {
  const LabModel lab = three_blocks();
  const Cluster cluster = lab_cluster(2, 1);
  const auto step = [&](const Sharding& sharding) { return step_of(lab, cluster, sharded(lab.model, 2, sharding)); };
  // G0 0-0.5, G1 0.5-1, F0 0.5-1.5, G2 1.5-2 (when F0 is freed), F1 1.5-2.5, F2 2.5-3.5, G2 again 3.5-4, G1 4-4.5,
  // B2 4-6, R2 6-6.5, G0 6.5-7, B1 6-8, R1 8-8.5, B0 8-10, R0 10-10.5.
  CHECK_THAT(step({}), WithinRel(10.5, 1e-9));
  // Nothing ahead: every gather before its pass, and between two passes of the backward a reduction and a gather.
  // 3 (0.5 + 1), then 0.5 + 2, twice 0.5 + 0.5 + 2, 0.5.
  CHECK_THAT(step({.prefetch = 0}), WithinRel(4.5 + 2.5 + 2 * 3.0 + 0.5, 1e-9));
  // Kept after the forward pass: 0.5 to begin with and 0.5 at the end.
  CHECK_THAT(step({.reshard_after_forward = false}), WithinRel(0.5 + 9.0 + 0.5, 1e-9));
  CHECK_THAT(step({.stage = 2}), WithinRel(0.5 + 9.0 + 0.5, 1e-9));
  CHECK_THAT(step({.stage = 1}), WithinRel(0.5 + 9.0 + 0.5, 1e-9));
  CHECK_THAT(step({.stage = 2, .overlap_gather = false}), WithinRel(1.5 + 9.0 + 0.5, 1e-9));
  // Half of the bytes of each kind.
  CHECK_THAT(step({.param_dtype = DType::BFloat16, .reduce_dtype = DType::BFloat16}), WithinRel(9.0 + 0.75, 1e-9));
}

TEST_CASE("a rank that owns whole variables broadcasts them, step by step on paper", "[sharded]") {
  const LabModel lab = three_blocks();
  const Cluster cluster = lab_cluster(2, 1);
  const auto step = [&](const Sharding& sharding) { return step_of(lab, cluster, sharded(lab.model, 2, sharding)); };
  // Three blocks of 1 GB: the first and the last are rank 0's, the other rank 1's. They are sent in 2 and 1 s; then
  // three seconds forward, six backward, and 0.5 s for the last reduction.
  const Strategy strategy = sharded(lab.model, 2, {.stage = 1, .whole_variables = true});
  CHECK(owned_variables(lab.model, strategy) == std::vector<std::vector<VariableId>>{{0, 2}, {1}});
  CHECK_THAT(largest_share(lab.model, strategy), WithinRel(2.0 / 3.0, 1e-12));
  CHECK_THAT(step({.stage = 1, .overlap_gather = false, .whole_variables = true}), WithinRel(3.0 + 9.0 + 0.5, 1e-6));
  // F0 waits for the first 2 s only, and F1 begins when the others are there.
  CHECK_THAT(step({.stage = 1, .whole_variables = true}), WithinRel(2.0 + 9.0 + 0.5, 1e-6));
  CHECK_THROWS_AS(step({.stage = 2, .whole_variables = true}), PlanError);
}

TEST_CASE("micro-steps gather and reduce again, step by step on paper", "[sharded]") {
  LabModel lab = three_blocks();
  lab.profile.micro_steps = 2;
  const Cluster cluster = lab_cluster(2, 1);
  const auto step = [&](const Sharding& sharding) {
    Strategy strategy = sharded(lab.model, 2, sharding);
    strategy.graph.micro_steps = 2;
    return step_of(lab, cluster, strategy);
  };
  // The second begins when R0 of the first has ended, at 10.5; without reductions when B0 has, at 10.
  CHECK_THAT(step({}), WithinRel(21.0, 1e-9));
  CHECK_THAT(step({.reduce_every_micro_step = false}), WithinRel(20.5, 1e-9));
  // Gathered once; R0 of the first beside F0 of the second.
  CHECK_THAT(step({.stage = 2}), WithinRel(0.5 + 18.0 + 0.5, 1e-9));
  CHECK_THAT(step({.stage = 1}), WithinRel(0.5 + 18.0 + 0.5, 1e-9));
  const auto sent = [&](const Sharding& sharding) {
    Strategy strategy = sharded(lab.model, 2, sharding);
    strategy.graph.micro_steps = 2;
    return sent_by_rank(compile(lab.model, lab.profile, cluster, strategy));
  };
  // 3 GB of parameters, half of them with every gather and every reduction.
  CHECK_THAT(sent({}), WithinRel(6 * 1.5e9, 1e-9));
  CHECK_THAT(sent({.reduce_every_micro_step = false}), WithinRel(5 * 1.5e9, 1e-9));
  CHECK_THAT(sent({.reshard_after_forward = false}), WithinRel(4 * 1.5e9, 1e-9));
  CHECK_THAT(sent({.stage = 2}), WithinRel(3 * 1.5e9, 1e-9));
  CHECK_THAT(sent({.stage = 1}), WithinRel(2 * 1.5e9, 1e-9));
}

TEST_CASE("what is not sharded is exchanged in the last micro-step", "[sharded]") {
  LabModel lab = three_blocks();
  const Cluster cluster = lab_cluster(2, 1);
  Strategy strategy = all_reduced(lab.model, 2);
  const double once = step_of(lab, cluster, strategy);
  lab.profile.micro_steps = strategy.graph.micro_steps = 4;
  CHECK_THAT(step_of(lab, cluster, strategy), WithinRel(once + 3 * 9.0, 1e-9));
  std::vector<std::string> titles;
  const Plan plan = compile(lab.model, lab.profile, cluster, strategy);
  for (const ComputePart& part : plan.ops.front().compute().parts) titles.push_back(title_of(plan, part));
  CHECK(std::count(titles.begin(), titles.end(), "micro-steps") == 1);
  CHECK(std::count(titles.begin(), titles.end(), "forward blocks.0") == 2);
}

TEST_CASE("a block is computed again when its parameters are there and before its backward pass", "[sharded]") {
  LabModel lab = three_blocks();
  lab.profile.recomputed = recomputed_layers(lab.model, Recompute::Full);
  const Cluster cluster = lab_cluster(2, 1);
  // As above, with backward passes of 3 s: G2 again 3.5-4, B2 4-7, G0 7.5-8, B1 7-10, B0 10-13, R0 13-13.5.
  CHECK_THAT(step_of(lab, cluster, sharded(lab.model, 2, {})), WithinRel(13.5, 1e-9));
  CHECK_THAT(step_of(lab, lab_cluster(1, 1), all_reduced(lab.model, 1)), WithinRel(12.0, 1e-9));
  CHECK_THAT(lab.profile.step().value(), WithinRel(12.0, 1e-9));
}

TEST_CASE("each rank updates its share", "[sharded]") {
  LabModel lab = three_blocks();
  const Cluster cluster = lab_cluster(2, 1);
  const double without = step_of(lab, cluster, sharded(lab.model, 2, {}));
  lab.profile.update = Seconds{4.0};
  CHECK_THAT(step_of(lab, cluster, sharded(lab.model, 2, {})) - without, WithinRel(2.0, 1e-9));
}

TEST_CASE("hybrid shard: groups of one place share their nodes' links", "[sharded]") {
  LabModel lab{{.bytes = 1e9, .forward = 1, .backward = 2}};
  const Cluster cluster = lab_cluster(2, 2, {.nic = 1e9, .port = 1e10});
  // In a node 0.05 s to gather (the root stays) and 0.05 s to reduce; each of two replica groups sends its half of the
  // gradient once over the node's NIC.
  CHECK_THAT(step_of(lab, cluster, sharded(lab.model, 4, {.group = 2})), WithinRel(0.05 + 3.0 + 0.05 + 1.0, 1e-9));
  // Groups of one rank are plain data parallelism.
  CHECK_THAT(step_of(lab, cluster, sharded(lab.model, 4, {.group = 1})),
             WithinRel(step_of(lab, cluster, all_reduced(lab.model, 4, CollectiveAlgorithm::Auto)), 1e-9));
}

TEST_CASE("what a rank sends is the closed form on every mesh of 2 to 64 ranks", "[sharded]") {
  const LabModel lab = three_blocks();
  const double all = 3e9;
  for (const auto& [nodes, gpus] : std::vector<std::pair<int, int>>{{2, 1}, {3, 2}, {2, 8}, {4, 4}, {6, 4}, {8, 8}}) {
    const Cluster cluster = lab_cluster(nodes, gpus);
    const int ranks = nodes * gpus;
    for (int group = 1; group <= ranks; ++group) {
      if (ranks % group != 0) continue;
      const double p = group;
      const double r = static_cast<double>(ranks) / p;
      const double over_replicas = 2.0 * all / p * (r - 1.0) / r;
      const auto sent = [&](Sharding sharding) {
        sharding.group = group;
        return sent_by_rank(compile(lab.model, lab.profile, cluster, sharded(lab.model, ranks, sharding)));
      };
      CAPTURE(nodes, gpus, group);
      CHECK_THAT(sent({}), WithinRel(3.0 * all * (p - 1.0) / p + over_replicas, 1e-12));
      CHECK_THAT(sent({.reshard_after_forward = false}), WithinRel(2.0 * all * (p - 1.0) / p + over_replicas, 1e-12));
      CHECK_THAT(sent({.stage = 1}), WithinRel(2.0 * all * (p - 1.0) / p + over_replicas, 1e-12));
    }
  }
}

TEST_CASE("full shard folds as it is simulated in full", "[sharded]") {
  const LabModel lab = three_blocks();
  const Cluster cluster = lab_cluster(6, 2, {.nic = 1e9, .nic_latency = 1e-5, .port = 1e10, .port_latency = 1e-6});
  const Plan plan = compile(lab.model, lab.profile, cluster, sharded(lab.model, 12, {}));
  const auto step = [&](Fidelity fidelity) { return replay(plan, cluster, {.fidelity = fidelity}).step.value(); };
  CHECK_THAT(step(Fidelity::Folded), WithinRel(step(Fidelity::Fluid), 1e-9));
}

TEST_CASE("hybrid shard folds as it is simulated in full, whatever the size of its groups", "[sharded]") {
  const LabModel lab = three_blocks();
  const LabLinks wires{.nic = 1e9, .nic_latency = 1e-5, .port = 1e10, .port_latency = 1e-6};
  Cluster cluster = lab_cluster(6, 4, wires);
  const auto step = [&](int group, Fidelity fidelity) {
    const Plan plan = compile(lab.model, lab.profile, cluster, sharded(lab.model, 24, {.group = group}));
    return replay(plan, cluster, {.fidelity = fidelity}).step.value();
  };
  // Inside nodes, whole nodes, two and three nodes.
  for (const int group : {1, 2, 4, 8, 12}) {
    CAPTURE(group);
    CHECK_THAT(step(group, Fidelity::Folded), WithinRel(step(group, Fidelity::Fluid), 1e-9));
  }
  // Groups of three ranks, and of six, lie differently on the nodes.
  for (const int group : {3, 6}) CHECK_THROWS_AS(step(group, Fidelity::Folded), PlanError);
  // One slow node: its groups differ from others. Where each has one rank of every node, what goes on inside the slow
  // node comes later and shares the GPUs' links with the collectives between nodes.
  NodeGroup slow = cluster.groups.front();
  slow.count = 1;
  slow.compute_slowdown = 1.5;
  cluster.groups.front().count = 5;
  cluster.groups.push_back(slow);
  CHECK_THAT(step(1, Fidelity::Folded), WithinRel(step(1, Fidelity::Fluid), 1e-9));
  CHECK_THROWS_AS(step(4, Fidelity::Folded), PlanError);
  CHECK_THROWS_AS(step(8, Fidelity::Folded), PlanError);
}

TEST_CASE("Adam in bf16 with an fp32 copy: 16 bytes a parameter, by stage", "[sharded][memory]") {
  LabModel lab = three_blocks();
  lab.profile.precision = "bf16";
  const double parameters = 0.75e9;
  const Cluster cluster = lab_cluster(4, 2);
  const OptimizerState adam{.optimizer = Optimizer::Adam, .master_weights = true};
  const auto per_parameter = [&](const Strategy& strategy) {
    const MemoryNeed need = rank_memory(lab.model, cluster, strategy, lab.profile, adam).need;
    return static_cast<double>((need.weights + need.state + need.gradients).count) / parameters;
  };
  // Rajbhandari et al., figure 1: 16, 4 + 12/N, 2 + 14/N, 16/N.
  CHECK_THAT(per_parameter(all_reduced(lab.model, 8)), WithinRel(16.0, 1e-6));
  CHECK_THAT(per_parameter(sharded(lab.model, 8, {.stage = 1})), WithinRel(4.0 + 12.0 / 8, 1e-6));
  // One of the three blocks is the largest share of whole variables.
  CHECK_THAT(per_parameter(sharded(lab.model, 8, {.stage = 1, .whole_variables = true})),
             WithinRel(4.0 + 12.0 / 3, 1e-6));
  CHECK_THAT(per_parameter(sharded(lab.model, 8, {.stage = 2})), WithinRel(2.0 + 14.0 / 8, 1e-6));
  CHECK_THAT(per_parameter(sharded(lab.model, 8, {.stage = 3})), WithinRel(16.0 / 8, 1e-6));
  CHECK_THAT(per_parameter(sharded(lab.model, 8, {.stage = 3, .group = 4})), WithinRel(16.0 / 4, 1e-6));
}

TEST_CASE("blocks that are gathered at a time count, and the gradients of one", "[sharded][memory]") {
  const LabModel lab = three_blocks();
  const Cluster cluster = lab_cluster(4, 1);
  const auto gathered = [&](const Sharding& sharding) {
    return static_cast<double>(
        rank_memory(lab.model, cluster, sharded(lab.model, 4, sharding), lab.profile).need.gathered.count);
  };
  CHECK_THAT(gathered({}), WithinRel(2e9 + 1e9, 1e-9));
  CHECK_THAT(gathered({.prefetch = 0}), WithinRel(1e9 + 1e9, 1e-9));
  CHECK_THAT(gathered({.reshard_after_forward = false}), WithinRel(3e9 + 1e9, 1e-9));
  CHECK_THAT(gathered({.param_dtype = DType::Float16}), WithinRel(1e9 + 1e9, 1e-9));
  CHECK_THAT(gathered({.stage = 2}), WithinRel(1e9, 1e-9));
  CHECK(gathered({.stage = 1}) == 0.0);
  CHECK(gathered({.group = 1}) == 0.0);
}

TEST_CASE("an optimizer's state and traffic", "[memory]") {
  CHECK(OptimizerState{.optimizer = Optimizer::Sgd}.bytes(4.0) == 0.0);
  CHECK(OptimizerState{}.bytes(4.0) == 4.0);
  CHECK(OptimizerState{.optimizer = Optimizer::Adam}.bytes(4.0) == 8.0);
  const OptimizerState mixed{.optimizer = Optimizer::Adam, .master_weights = true};
  CHECK(mixed.bytes(4.0) == 8.0);
  CHECK(mixed.bytes(2.0) == 12.0);
  // Read the gradient, read and write weights and moments: 7 passes; with a copy also 2 bytes of gradient and weights.
  CHECK(OptimizerState{.optimizer = Optimizer::Adam}.update_bytes(4.0) == 28.0);
  CHECK(mixed.update_bytes(2.0) == 28.0);
  CHECK(OptimizerState{}.update_bytes(4.0) == 20.0);
}

TEST_CASE("what cannot be sharded is refused", "[sharded]") {
  const LabModel lab = three_blocks();
  const Cluster cluster = lab_cluster(4, 1);
  const auto compiled = [&](const Strategy& strategy) { return compile(lab.model, lab.profile, cluster, strategy); };
  CHECK_THROWS_AS(compiled(sharded(lab.model, 4, {.group = 3})), PlanError);
  CHECK_THROWS_AS(compiled(sharded(lab.model, 4, {.stage = 4})), PlanError);
  Strategy compressed = sharded(lab.model, 4, {});
  compressed.variables[0].compressor = Compressor::Fp16;
  CHECK_THROWS_AS(compiled(compressed), PlanError);
  const BuildRequest request{.model = lab.model, .cluster = cluster, .workers = 4, .options = {{"group", "3"}}};
  CHECK_THROWS_AS(build_strategy("fsdp", request), InputError);
}

TEST_CASE("the width of gathered parameters is a word, or auto", "[sharded]") {
  const LabModel lab = three_blocks();
  const Cluster cluster = lab_cluster(4, 1);
  const auto width = [&](const std::string& word) {
    const BuildRequest request{
        .model = lab.model, .cluster = cluster, .workers = 4, .options = {{"param_dtype", word}}};
    return build_strategy("fsdp", request).graph.sharding.param_dtype;
  };
  CHECK(width("auto") == std::nullopt);
  CHECK(width("bfloat16") == DType::BFloat16);
  CHECK_THROWS_WITH(width("bfloat"), ContainsSubstring("'bfloat' is not one of auto, float32, float16, bfloat16"));
}
