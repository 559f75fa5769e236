// The geometry of layers against the work that templates derive for them.
#include "models/operation.hpp"

#include "models/reader.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

bool is_product(LayerKind kind) {
  return kind == LayerKind::Conv || kind == LayerKind::Dense || kind == LayerKind::Attention ||
         kind == LayerKind::Recurrent;
}

Model small(const std::string& input, const std::string& layers) {
  return parse_model("schema: simsync/model/v1\nname: s\nbatch: 1\nsample: x\ninput: " + input + "\nlayers:\n" + layers,
                     "s.yaml");
}

}  // namespace

TEST_CASE("the operation of every zoo layer has the work of the layer", "[models][operation]") {
  for (const std::string& name : known_models()) {
    const Model model = find_model(name);
    for (LayerId id = 0; id < model.layer_count(); ++id) {
      const Layer& layer = model.layer(id);
      INFO(name << " " << layer.name);
      CHECK(layer.operation.has_products() == is_product(layer.kind));
      if (!layer.operation.has_products()) continue;
      CHECK_THAT(layer.operation.flops(), WithinRel(layer.forward_flops.value(), 1e-12));
      // Both operands of a product need a gradient, unless the first one is the sample.
      const double products = layer.operation.data_gradient ? 2.0 : 1.0;
      const double again = layer.operation.first_product_again ? layer.operation.products.front().flops() : 0.0;
      CHECK_THAT(products * layer.operation.flops() + again, WithinRel(layer.backward_flops.value(), 1e-12));
    }
  }
}

TEST_CASE("a convolution knows its window", "[models][operation]") {
  const Model model =
      small("[8, 20, 30]", "  - {conv: c, out: 12, kernel: [3, 5], stride: [2, 1], padding: [1, 2], groups: 4}\n");
  const Operation& operation = model.layer(0).operation;
  REQUIRE(operation.convolution);
  const Convolution& c = *operation.convolution;
  CHECK(c.in_channels == 8);
  CHECK(c.out_channels == 12);
  CHECK(c.groups == 4);
  CHECK(c.height.size == 20);
  CHECK(c.height.kernel == 3);
  CHECK(c.height.stride == 2);
  CHECK(c.height.padding == 1);
  // (20 + 2 - 3) / 2 + 1 = 10 rows and (30 + 4 - 5) + 1 = 30 columns.
  CHECK(c.height.positions == 10);
  CHECK(c.width.positions == 30);
  // Each of 12 x 10 x 30 outputs adds 3 x 5 x (8 / 4) products.
  CHECK(c.flops() == 2.0 * 12 * 10 * 30 * 3 * 5 * 2);
  CHECK_FALSE(operation.data_gradient);
}

TEST_CASE("attention is a product per head", "[models][operation]") {
  const Model model = small("[10, 24]", "  - {attention: a, heads: 2}\n");
  // Query, key and value of 8 features each lie in one tensor: two heads of 4 features.
  const MatrixProduct scores = model.layer(0).operation.products.at(0);
  CHECK(scores.heads == 2);
  CHECK(scores.rows == 10);
  CHECK(scores.inner == 4);
  CHECK(scores.columns == 10);
  CHECK_FALSE(scores.weights);
  const MatrixProduct context = model.layer(3).operation.products.at(0);
  CHECK(context.inner == 10);
  CHECK(context.columns == 4);
}

TEST_CASE("an LSTM is a product for its input and one per token for its state", "[models][operation]") {
  const Model model = small("[7, 5]", "  - {lstm: l, hidden: 3, projection: 2, bidirectional: true}\n");
  const auto& products = model.layer(0).operation.products;
  REQUIRE(products.size() == 3);
  // 7 tokens of 5 features to 4 gates of 3 units, in two directions.
  CHECK(products[0].flops() == 2.0 * 7 * 5 * 12 * 2);
  CHECK(products[0].steps == 2);
  // 14 times the state of 2 to the gates, and 14 times 3 units to 2.
  CHECK(products[1].flops() == 2.0 * 2 * 12 * 14);
  CHECK(products[1].steps == 14);
  CHECK(products[2].flops() == 2.0 * 3 * 2 * 14);
}

TEST_CASE("a layer given in numbers has no geometry", "[models][operation]") {
  const Model model = small("[4]", "  - {layer: l, kind: dense, forward_flops: 8FLOP, output_bytes: 4B}\n");
  CHECK_FALSE(model.layer(0).operation.has_products());
}
