#include "base/error.hpp"
#include "models/expression.hpp"
#include "models/reader.hpp"
#include "models/shape.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_of.hpp"

using namespace simsync;

namespace {

/// A model around `layers`, each line of which is one statement.
Model model_of(const std::string& layers, const std::string& before = "input: [3, 8, 8]\n") {
  return parse_model("schema: simsync/model/v1\nname: m\nbatch: 2\nsample: image\n" + before + "layers:\n" + layers,
                     "m.yaml");
}

const Layer& layer(const Model& model, const std::string& name) {
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    if (model.layer(id).name == name) return model.layer(id);
  }
  FAIL("no layer " << name);
  return model.layer(0);
}

std::int64_t value_of(const std::string& text) {
  const auto lookup = [](const std::string& name) -> std::optional<std::int64_t> {
    return name == "planes" ? std::optional<std::int64_t>{64} : std::nullopt;
  };
  const auto result = detail::evaluate(text, lookup);
  INFO(text << ": " << result.error);
  REQUIRE(result.error.empty());
  return result.value;
}

std::string error_of(const std::string& text) {
  return detail::evaluate(text, [](const std::string&) { return std::nullopt; }).error;
}

}  // namespace

TEST_CASE("expressions are exact whole-number arithmetic", "[models]") {
  CHECK(value_of("7") == 7);
  CHECK(value_of("4 * $planes") == 256);
  CHECK(value_of("2 + 3 * 4 - 6 / 2") == 11);
  CHECK(value_of("($planes - -8) / (2 * 4)") == 9);
  CHECK(error_of("7 / 2") == "7 / 2 leaves a remainder");
  CHECK(error_of("1 / 0") == "divides by zero");
  CHECK(error_of("$x") == "unknown parameter '$x'");
  CHECK(error_of("(1") == "lacks a ')'");
  CHECK(error_of("3 x") == "unexpected 'x'");
  CHECK(error_of("3.5") == "unexpected '.'");
  CHECK(error_of("99999999999999999999") == "'99999999999999999999' is too large: expected at most 1099511627776");
  CHECK(error_of("1000000000 * 1000000000 * 1000000000") ==
        "'1000000000 * 1000000000 * 1000000000' is too large: expected at most 1099511627776");
  CHECK(error_of(std::string(100, '(')) == "has too many parentheses");
  CHECK(error_of(std::string(300, '1')) == "is longer than 200 characters");
}

TEST_CASE("the element count of a shape never overflows", "[models]") {
  CHECK(detail::elements_of({3, 224, 224}) == 150'528);
  CHECK(detail::elements_of({}) == 1);
  CHECK_FALSE(detail::elements_of({0}));
  CHECK(detail::elements_of({detail::kMaxElements}) == detail::kMaxElements);
  CHECK_FALSE(detail::elements_of({detail::kMaxElements, 2}));
  CHECK_FALSE(detail::elements_of({1LL << 62, 1LL << 62}));
}

TEST_CASE("shapes follow from the input", "[models]") {
  const Model model = model_of(
      "  - {conv: c, out: 16, kernel: 3, stride: 2, padding: 1}\n"
      "  - {max_pool: p, kernel: 3, stride: 2, ceil: true}\n"
      "  - {flatten: all}\n"
      "  - {dense: d, out: 10}\n");
  // (8 + 2 - 3) / 2 + 1 = 4; then (4 - 3) / 2 rounded up + 1 = 2, so 16 x 2 x 2 = 64 features.
  CHECK(layer(model, "c").output_bytes == 4.0 * 16 * 4 * 4);
  CHECK(layer(model, "p").output_bytes == 4.0 * 16 * 2 * 2);
  CHECK(model.variable(2).shape == std::vector<std::int64_t>{10, 64});
  // 16 filters of 3 x 3 x 3 and a bias each; 64 x 10 weights and 10 biases.
  CHECK(model.parameter_count() == 16 * 27 + 16 + 640 + 10);
  CHECK(layer(model, "d").forward_flops.value() == 2.0 * 64 * 10);
}

TEST_CASE("blocks, repetition and branches make a graph", "[models]") {
  const Model model = model_of(
      "  - {conv: stem, out: 4, kernel: 1}\n"
      "  - {use: residual, name: r, repeat: 2, with: {channels: 4}}\n"
      "  - {branches: join, merge: concat, paths: [[], [{conv: side, out: 2, kernel: 1}]]}\n",
      "input: [3, 8, 8]\n"
      "blocks:\n"
      "  residual:\n"
      "    parameters: [channels]\n"
      "    layers:\n"
      "      - {branches: add, merge: add, paths: [[{conv: c, out: $channels, kernel: 1}], []]}\n");
  // stem, r.0.c, r.0.add, r.1.c, r.1.add, side, join
  REQUIRE(model.layer_count() == 7);
  CHECK(model.layer(3).name == "r.1.c");
  CHECK(layer(model, "join").output_bytes == 4.0 * 6 * 8 * 8);
  // Edges: stem to c and add, c to add (3 per block), the last add to side and join, side to join.
  CHECK(boost::num_edges(model.graph()) == 3 + 3 + 3);
  CHECK(boost::edge(4, 6, model.graph()).second);
}

TEST_CASE("registration order is a stable sort by 'order'", "[models]") {
  const Model model = model_of(
      "  - {conv: a, out: 4, kernel: 1, bias: false, order: 2}\n"
      "  - {conv: b, out: 4, kernel: 1, bias: false}\n"
      "  - {conv: c, out: 4, kernel: 1, bias: false, order: 2}\n");
  CHECK(model.variable(0).name == "b/weight");
  CHECK(model.variable(1).name == "a/weight");
  CHECK(model.variable(2).name == "c/weight");
  CHECK(model.layer(0).variables == std::vector<VariableId>{1});
}

TEST_CASE("heads that share keys, and attention in one kernel", "[models]") {
  // 4 query heads of 3 features on 2 key heads: 12 + 6 + 6 features of 10 tokens.
  const Model one =
      model_of("  - {dense: qkv, out: 24}\n  - {attention: a, heads: 4, key_heads: 2, fused: 1}\n", "input: [10, 8]\n");
  REQUIRE(one.layer_count() == 2);
  const Layer& all = one.layer(1);
  CHECK(all.forward_flops.value() == 2 * 2.0 * 10 * 10 * 12);
  CHECK(all.backward_flops.value() == 5 * 2.0 * 10 * 10 * 12);
  CHECK(all.input_bytes == 4.0 * 10 * 24);
  CHECK(all.output_bytes == 4.0 * 10 * 12);
  const Model causal =
      model_of("  - {dense: qkv, out: 24}\n  - {attention: a, heads: 4, key_heads: 2, fused: 1, causal: 1}\n",
               "input: [10, 8]\n");
  CHECK(causal.layer(1).forward_flops.value() == 2.0 * 10 * 10 * 12);
  const Model unfused =
      model_of("  - {dense: qkv, out: 24}\n  - {attention: a, heads: 4, key_heads: 2}\n", "input: [10, 8]\n");
  CHECK(unfused.layer(1).input_bytes == 4.0 * 10 * (12 + 6));
  CHECK(unfused.layer(4).output_bytes == 4.0 * 10 * 12);
}

TEST_CASE("experts: every row meets one matrix of several", "[models]") {
  const Model model =
      model_of("  - {dispatch: d, top: 2}\n  - {dense: w, out: 6, experts: 3, bias: false}\n  - {combine: c, top: 2}\n",
               "input: [10, 8]\n");
  CHECK(model.parameter_count() == 3 * 6 * 8);
  CHECK(model.variable(1).name == "w/1.weight");
  CHECK(model.layer(1).forward_flops.value() == 2.0 * 20 * 8 * 6);
  CHECK(model.layer(2).output_bytes == 4.0 * 10 * 6);
}

TEST_CASE("rows go to experts and come back", "[models]") {
  const auto refusal = [](const std::string& layers) {
    return test::error_of([&] { (void)model_of(layers, "input: [10, 8]\n"); });
  };
  CHECK_THAT(refusal("  - {dense: w, out: 6, experts: 3}\n"),
             ContainsSubstring("'w' has experts, and no 'dispatch' has sent them the rows that it reads"));
  CHECK_THAT(refusal("  - {combine: c, top: 2}\n"),
             ContainsSubstring("'c' combines rows that no 'dispatch' has sent to experts"));
  // The residual, and the loss, have a row for each token.
  const std::string sent = "  - {dispatch: d, top: 1}\n  - {dense: w, out: 8, experts: 3}\n";
  CHECK_THAT(refusal("  - {dense: a, out: 8}\n" + sent + "  - {add: s, from: [w, a]}\n"),
             ContainsSubstring("'s' reads rows that are still with experts: a 'combine' takes them back"));
  CHECK_THAT(refusal(sent + "  - {loss: l}\n"), ContainsSubstring("'l' reads rows that are still with experts"));
  CHECK_THAT(refusal(sent + "  - {dispatch: e, top: 2}\n"),
             ContainsSubstring("'e' reads rows that are still with experts"));
}

TEST_CASE("attention is four kernels with the traffic of its scores", "[models]") {
  // 10 tokens of 24 features are query, key and value of 8; 2 heads.
  const Model model = model_of("  - {dense: qkv, out: 24}\n  - {attention: a, heads: 2}\n", "input: [10, 8]\n");
  REQUIRE(model.layer_count() == 5);
  // Every query with every key over 8 features, two operations each.
  CHECK(layer(model, "a.scores").forward_flops.value() == 2.0 * 10 * 10 * 8);
  CHECK(layer(model, "a.scores").output_bytes == 4.0 * 2 * 10 * 10);
  // Both operands of the product need a gradient.
  CHECK(layer(model, "a.scores").backward_flops.value() == 4.0 * 10 * 10 * 8);
  CHECK(layer(model, "a.context").output_bytes == 4.0 * 10 * 8);
}

TEST_CASE("a projected LSTM has the variables of its framework", "[models]") {
  const Model model = model_of("  - {lstm: l, hidden: 8, projection: 4, style: tensorflow}\n", "input: [5, 6]\n");
  // kernel (6 + 4) x 32, bias 32, projection 8 x 4
  CHECK(model.parameter_count() == 320 + 32 + 32);
  CHECK(layer(model, "l").dense_rows == 5.0);
  const Model torch = model_of("  - {lstm: l, hidden: 8, bidirectional: true}\n", "input: [5, 6]\n");
  // per direction 32 x 6 + 32 x 8 + 2 x 32
  CHECK(torch.parameter_count() == 2 * (192 + 256 + 64));
  CHECK(torch.variables().size() == 8);
  CHECK(layer(torch, "l").output_bytes == 4.0 * 5 * 16);
}

TEST_CASE("a user's model may be given in numbers", "[models]") {
  const Model model = model_of(
      "  - {layer: table, kind: embedding, parameters: [[1000, 64]], sparse: true, lookups: 26,\n"
      "     forward_flops: 0, output_bytes: 6656B}\n"
      "  - {layer: fc, kind: dense, parameters: {w: [10, 64], b: [10]}, forward_flops: 1.28KFLOP,\n"
      "     backward_flops: 2KFLOP, output_bytes: 40B}\n",
      "");
  REQUIRE(model.variables().size() == 3);
  CHECK(model.variable(0).name == "table/weight");
  CHECK(model.variable(0).sparse);
  CHECK(model.variable(0).lookups_per_sample == 26.0);
  CHECK(model.variable(1).name == "fc/w");
  CHECK(layer(model, "fc").forward_flops.value() == 1280.0);
  CHECK_THAT(layer(model, "fc").backward_flops.value(), WithinRel(2000.0, 1e-12));
  CHECK(layer(model, "fc").input_bytes == 6656.0);
  CHECK(layer(model, "fc").output_bytes == 40.0);
  CHECK(boost::edge(0, 1, model.graph()).second);
}

TEST_CASE("a file may extend a model of the zoo", "[models]") {
  const std::string head = "schema: simsync/model/v1\nname: mine\nextends: resnet50\n";
  const Model model = parse_model(head + "batch: 256\nset: {classes: 10}\n", "mine.yaml");
  CHECK(model.name() == "mine");
  CHECK(model.default_batch() == 256);
  CHECK(model.sample_unit() == "image");
  // The last layer has 10 instead of 1,000 classes of 2048 features.
  CHECK(model.parameter_count() == 25'557'032 - 990 * (2048 + 1));
}

TEST_CASE("a model is the same however often it is read", "[models]") {
  const Model first = find_model("inception-v3");
  const Model second = find_model("inception-v3");
  REQUIRE(first.layer_count() == second.layer_count());
  for (LayerId id = 0; id < first.layer_count(); ++id) CHECK(first.layer(id).name == second.layer(id).name);
  CHECK(first.backward_order() == second.backward_order());
}
