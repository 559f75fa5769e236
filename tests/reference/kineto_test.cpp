// Real traces of PyTorch's profiler: each is imported with sensible figures, or refused by what it lacks.
#include "base/error.hpp"
#include "models/trace/importers.hpp"
#include "tests/reference/archive.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;
using test::archived;

namespace {

struct Found {
  ImportedTrace imported;
  TracedModel traced;
  std::int64_t elements = 0;
  std::size_t variables = 0;
};

Found found_in(const std::string& name) {
  Found found;
  found.imported = import_kineto(archived("traces/" + name));
  found.traced = layers_of(found.imported.trace, found.imported.hints);
  for (const TracedLayer& layer : found.traced.layers) {
    for (const TracedVariable& variable : layer.variables) {
      std::int64_t elements = 1;
      for (const std::int64_t axis : variable.shape) elements *= axis;
      found.elements += elements;
      ++found.variables;
    }
  }
  // Whatever the trace, the times of a step add up to its compute, which fits into the step's own time on the device.
  for (std::size_t step = 0; step < found.traced.steps.size(); ++step) {
    double sum = 0.0;
    for (const LayerTime& time : found.traced.steps[step]) sum += time.forward.value() + time.backward.value();
    CHECK_THAT(sum, WithinRel(compute_of(found.imported.trace.steps[step]).value(), 1e-9));
    CHECK(sum > 0.0);
  }
  return found;
}

std::string refusal(const std::string& name) {
  try {
    (void)import_kineto(archived("traces/" + name));
  } catch (const InputError& error) {
    const std::string text = error.diagnostics().front().message;
    return text.substr(text.find(name) + name.size() + 1);
  }
  return "none";
}

}  // namespace

TEST_CASE("a step of VGG-13 has VGG-13's variables", "[kineto]") {
  const Found vgg = found_in("triosim_profiler_vgg13.json.gz");
  CHECK(vgg.variables == 26);
  CHECK(vgg.elements == 133'047'848);  // torchvision's vgg13
  REQUIRE(vgg.traced.steps.size() == 1);
  // 10 convolutions and 3 linear layers, and what lies outside of them.
  CHECK(vgg.traced.layers.size() <= 14);
  double first = 0.0;
  for (const TracedLayer& layer : vgg.traced.layers) {
    if (layer.name == "Conv2d_0")
      first = vgg.traced.steps[0][static_cast<std::size_t>(&layer - vgg.traced.layers.data())].forward.value();
  }
  CHECK(first > 0.0);
}

// Each step accumulates two gradients more, which are undefined: those of tables that are updated on the spot.
TEST_CASE("traces of recommenders with shapes are imported with all their steps", "[kineto]") {
  const Found compiled = found_in("hta_a100_80g_ws16_rank0.json.gz");
  CHECK(compiled.traced.steps.size() == 5);
  CHECK(compiled.variables == 163);
  const Found control = found_in("hta_a100_ws8_rank3_control.json.gz");
  CHECK(control.traced.steps.size() == 6);
  CHECK(control.variables == 257);
  const Found volta = found_in("hta_v100_ws2_rank1_test.json.gz");
  CHECK(volta.traced.steps.size() == 6);
  CHECK(volta.variables == 261);
}

TEST_CASE("traces without shapes or without a backward pass are refused", "[kineto]") {
  CHECK(refusal("hta_a100_ws2_nccl_parser_config.json.gz") ==
        "has no shapes: nothing tells how large its gradients are");
  CHECK(refusal("hta_v100_ws2_rank1_long.json.gz") == "has no shapes: nothing tells how large its gradients are");
  CHECK(refusal("hta_a100_alexnet_single.json.gz") ==
        "has no backward pass: no gradient is accumulated (torch::autograd::AccumulateGrad)");
  CHECK(refusal("triosim_graph_vgg13.json.gz") == "has no operators (events of category cpu_op)");
}
