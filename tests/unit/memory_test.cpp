// The memory of a training step, by hand and beside what was measured.
#include "models/memory.hpp"

#include "models/reader.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

constexpr double kGibi = 1073741824.0;

/// 20 x 10 + 20 and 5 x 20 + 5 numbers: 880 and 420 B. Per sample, `b` keeps the 20 numbers of `r`, the loss the 5 that
/// it reads and as many logarithms; what `a` computes is overwritten by `r`.
Model two_products() {
  return parse_model(
      "schema: simsync/model/v1\nname: two\nbatch: 1\nsample: row\ninput: [10]\nlayers:\n"
      "  - {dense: a, out: 20}\n  - {relu: r}\n  - {dense: b, out: 5}\n  - {loss: loss}\n",
      "two.yaml");
}

double gibi(const std::string& model, std::int64_t batch, const std::string& precision = "fp32") {
  return static_cast<double>(memory_need(find_model(model), {.batch = batch, .precision = precision}).total().count) /
         kGibi;
}

/// Two blocks in a row, each of an activation and a product, and a loss; every output has 4 numbers, 16 B.
Model two_blocks() {
  return parse_model(
      "schema: simsync/model/v1\nname: blocks\nbatch: 1\nsample: row\ninput: [4]\nblocks:\n  unit:\n    layers:\n"
      "      - {gelu: g}\n      - {dense: d, out: 4, bias: false}\n"
      "layers:\n  - {use: unit, name: h, repeat: 2}\n  - {loss: loss}\n",
      "blocks.yaml");
}

}  // namespace

TEST_CASE("gradients grow while activations are freed", "[models][memory]") {
  const Model model = two_products();
  // Per sample 80 + 20 + 20 B are kept. At the loss the gradient of its 5 numbers, 140 B; at `b` 80 kept and gradients
  // of 5 and 20 numbers, 180 B, beside 420 B; at `r` gradients of 20 and 20; at `a` of 20, beside 1,300 B.
  MemoryNeed need = memory_need(model, {.batch = 20});
  CHECK(need.weights.count == 1300);
  CHECK(need.state.count == 1300);
  CHECK(need.activations.count == 3600);
  CHECK(need.gradients.count == 420);
  CHECK(need.total().count == 2600 + 4020);
  need = memory_need(model, {.batch = 1, .buffers = {77}});
  CHECK(need.activations.count == 80);
  CHECK(need.gradients.count == 1300);
  CHECK(need.total().count == 3 * 1300 + 80 + 77);
  // Of the micro-steps before, all gradients are there.
  need = memory_need(model, {.batch = 20, .accumulates = true});
  CHECK(need.activations.count == 3600);
  CHECK(need.gradients.count == 1300);
}

TEST_CASE("half precision has two bytes an activation, and a weight where weights are half too", "[models][memory]") {
  // Per sample 40 + 10 B, and for the loss 5 logits and logarithms in fp32, 40 B, with a gradient of 20 B: 110 at the
  // loss; at `b` 40 and gradients of 10 + 40.
  const MemoryNeed amp = memory_need(two_products(), {.batch = 20, .precision = "amp"});
  CHECK(amp.activations.count == 1800);
  CHECK(amp.gradients.count == 420);
  const MemoryNeed half = memory_need(two_products(), {.batch = 20, .precision = "fp16"});
  CHECK(half.weights.count == 650);
  CHECK(half.gradients.count == 0);
  CHECK(half.activations.count == 2200);
  // Sums in fp32 have a buffer for the whole step.
  const MemoryNeed sums =
      memory_need(two_products(), {.batch = 20, .precision = "fp16", .optimizer = {.fp32_gradients = true}});
  CHECK(sums.gradients.count == 1300);
  CHECK(sums.activations.count == 2200);
}

TEST_CASE("what servers keep is not on the rank", "[models][memory]") {
  const HeldVariable served{.weights = 1.0, .gradient = 0.0, .state = 0.0};
  const MemoryNeed need = memory_need(two_products(), {.batch = 20, .variables = {4, served}});
  CHECK(need.weights.count == 1300);
  CHECK(need.state.count == 0);
  CHECK(need.gradients.count == 0);
  CHECK(need.activations.count == 3600);
}

TEST_CASE("two readers of one output keep it once, until the first of them has run backward", "[models][memory]") {
  // The input of `a` is the sample. `a` gives 20 numbers to both `b` and `c`, which add up.
  const Model model = parse_model(
      "schema: simsync/model/v1\nname: m\nbatch: 1\nsample: row\ninput: [10]\nlayers:\n"
      "  - {dense: a, out: 20, bias: false}\n  - {dense: b, out: 5, bias: false}\n"
      "  - {dense: c, out: 5, bias: false, from: a}\n  - {add: sum, from: [b, c]}\n  - {loss: loss}\n",
      "m.yaml");
  // Per sample 80 of `a` with the gradients of `b`, 20 + 80, after 400 B of each of the two; at `a` 80 after 1,600 B.
  CHECK(memory_need(model, {.batch = 100}).activations.count == 18000);
  CHECK(memory_need(model, {.batch = 100}).gradients.count == 800);
  CHECK(memory_need(model, {.batch = 5}).activations.count == 400);
  CHECK(memory_need(model, {.batch = 5}).gradients.count == 1600);
}

TEST_CASE("a block that is computed again keeps what other blocks read", "[models][memory]") {
  const HeldVariable frozen{.weights = 1.0, .gradient = 0.0, .state = 0.0};
  const auto activations = [&](Recompute recompute) {
    return memory_need(two_blocks(), {.recompute = recompute, .variables = {2, frozen}}).activations.count;
  };
  // Four outputs, the logarithms, the gradient at the loss.
  CHECK(activations(Recompute::None) == 16 * 6);
  // Both products' outputs, the logarithms, the gradient: 64. At the second product 16 are kept, the activation's 16
  // are there again, with gradients of 32.
  CHECK(activations(Recompute::Selective) == 16 * 4);
  CHECK(activations(Recompute::Full) == 16 * 4);
  CHECK(recomputed_layers(two_blocks(), Recompute::Selective) == std::vector<bool>{true, false, true, false, false});
  CHECK(recomputed_layers(two_blocks(), Recompute::Full) == std::vector<bool>{true, true, true, true, false});
}

TEST_CASE("chunks are kept as often as their schedule says", "[models][memory]") {
  using Pass = ChunkPass::Kind;
  const Model model = two_blocks();
  REQUIRE(model.layer_count() == 5);
  const std::vector<LayerId> ends{2, 5};
  const auto need = [&](std::vector<ChunkPass> order) {
    return memory_need(model, {.accumulates = true, .passes = {.ends = ends, .order = std::move(order)}})
        .activations.count;
  };
  const std::vector<ChunkPass> plain{{Pass::Forward, 0}, {Pass::Forward, 1},  {Pass::Backward, 1},
                                     {Pass::Release, 1}, {Pass::Backward, 0}, {Pass::Release, 0}};
  const std::int64_t once = need(plain);
  // One micro-batch after the other is the same as without chunks, at the moment where the loss begins.
  CHECK(once == memory_need(model, {.accumulates = true}).activations.count);
  std::vector<ChunkPass> twice = plain;
  twice.insert(twice.end(), plain.begin(), plain.end());
  CHECK(need(twice) == once);
  // The first chunk keeps 16 B of `h.0.d`'s input for each micro-batch, and what `h.1` reads; the loss is there once.
  std::vector<ChunkPass> ahead = plain;
  ahead.insert(ahead.begin(), {Pass::Forward, 0});
  const std::int64_t of_first = need({{Pass::Forward, 0}, {Pass::Forward, 0}, {Pass::Backward, 0}}) -
                                need({{Pass::Forward, 0}, {Pass::Backward, 0}});
  CHECK(of_first > 0);
  CHECK(need(ahead) == once + of_first);
}

TEST_CASE("of an attention that is no single kernel the scores are computed again", "[models][memory]") {
  const auto again = [](const std::string& name) {
    const Model model = find_model(name);
    const auto layers = recomputed_layers(model, Recompute::Selective);
    std::vector<std::string> names;
    for (LayerId id = 0; id < model.layer_count(); ++id)
      if (layers[id] && block_of(model.layer(id).name) == "transformer.h.0")
        names.push_back(model.layer(id).name.substr(std::string("transformer.h.0.").size()));
    return names;
  };
  const std::vector<std::string> others{"attn.resid_dropout", "attn.add", "ln_2", "mlp.act", "mlp.dropout", "mlp.add"};
  std::vector<std::string> unfused{"ln_1", "attn.scores", "attn.softmax", "attn.dropout"};
  unfused.insert(unfused.end(), others.begin(), others.end());
  CHECK(again("gpt2") == unfused);
  std::vector<std::string> fused{"ln_1"};
  fused.insert(fused.end(), others.begin(), others.end());
  CHECK(again("gpt3-xl") == fused);
}

TEST_CASE("torchtitan's per-op option computes every second product of a block again", "[models][memory]") {
  const Model model = find_model("llama3-8b");
  const auto layers = recomputed_layers(model, Recompute::SelectiveOp);
  const auto others = recomputed_layers(model, Recompute::Selective);
  std::vector<std::string> products;
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    if (block_of(model.layer(id).name) != "layers.3") continue;
    if (model.layer(id).kind == LayerKind::Dense && layers[id]) products.push_back(model.layer(id).name);
    if (model.layer(id).kind != LayerKind::Dense) CHECK(layers[id] == others[id]);
  }
  // In their order wq, wk, wv, wo, w1, w3, w2.
  CHECK(products ==
        std::vector<std::string>{"layers.3.attention.wk", "layers.3.attention.wo", "layers.3.feed_forward.w3"});
}

TEST_CASE("networks fit where they are known to fit, and not where they are known not to", "[models][memory]") {
  // torchvision's resnet50 trains with 64 images on 16 GiB, the batch of many published runs.
  CHECK(gibi("resnet50", 64) < 15.0);
  CHECK(gibi("resnet50", 32) > 2.0);
  // 1.56 billion parameters with gradients and one momentum alone: 17.4 GiB.
  CHECK(gibi("gpt2-xl", 1) > 16.0);
  // google-research/bert, README: on a Titan X of 12 GB with sequences of 512, BERT-Large does not fit with any batch
  // and BERT-Base fits with 6; with sequences of 64 they fit with 12 and 64. Adam; its 512 tokens are computed by
  // TensorFlow, whose functions are no single kernels.
  const auto bert = [](const std::string& name, std::int64_t length, std::int64_t batch) {
    const Model model = find_model(name, {{"length", length}, {"pretraining", 0}});
    const OptimizerState adam{.optimizer = Optimizer::Adam};
    return static_cast<double>(memory_need(model, {.batch = batch, .optimizer = adam}).total().count) / kGibi;
  };
  CHECK(bert("bert-base", 512, 6) < 12.0);
  CHECK(bert("bert-base", 64, 64) < 12.0);
  CHECK(bert("bert-large", 64, 12) < 12.0);
  CHECK(bert("bert-large", 512, 6) > 10.0);
}

TEST_CASE("a language model needs what was measured", "[models][memory]") {
  // nanotron on 8 H100 of 80 GB, data parallel without ZeRO, bf16 with gradients summed in fp32: 36.7 with one sequence
  // at a time and 50.2 with two (The Ultra-Scale Playbook, benchmarks, llama-1B). Its DDP has buckets of two bytes a
  // gradient.
  const Model model = find_model("llama3-8b", {{"width", 2048},
                                               {"depth", 16},
                                               {"key_heads", 32},
                                               {"filter", 8192},
                                               {"length", 4096},
                                               {"vocabulary", 131072},
                                               {"tied", 1}});
  CHECK_THAT(static_cast<double>(model.parameter_count()), WithinRel(1.34e9, 0.01));
  const auto bytes = [&](std::int64_t batch) {
    const OptimizerState state{.optimizer = Optimizer::Adam, .master_weights = true, .fp32_gradients = true};
    const Bytes buckets{2 * model.parameter_count()};
    const MemoryDemand demand{.batch = batch, .precision = "bf16", .buffers = buckets, .optimizer = state};
    return static_cast<double>(memory_need(model, demand).total().count) / kGibi;
  };
  CHECK_THAT(bytes(1), WithinRel(36.7, 0.05));
  CHECK_THAT(bytes(2), WithinRel(50.2, 0.05));
}
