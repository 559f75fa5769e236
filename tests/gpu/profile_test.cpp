// The layer profiler on a real GPU, at every precision.
#include "hw/profile/time_layers.hpp"
#include "models/reader.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

TEST_CASE("every kind of layer is timed on a GPU", "[profile]") {
  const auto precision = GENERATE(as<std::string>{}, "fp32", "tf32", "fp16", "bf16");
  INFO(precision);
  const Model model = parse_model(
      "schema: simsync/model/v1\nname: every-kind\nbatch: 8\nsample: x\n"
      "inputs: {image: [8, 16, 16], words: [16]}\nlayers:\n"
      "  - {conv: conv, out: 16, kernel: 3, padding: 1, from: image}\n"
      "  - {batch_norm: bn}\n  - {relu: relu}\n  - {max_pool: pool, kernel: 2}\n"
      "  - {conv: second, out: 32, kernel: 3}\n"
      "  - {flatten: all}\n  - {dense: fc, out: 16}\n  - {loss: image_loss}\n"
      "  - {embedding: table, rows: 64, dim: 32, from: words}\n  - {lstm: lstm, hidden: 32}\n"
      "  - {dense: qkv, out: 96}\n  - {attention: attention, heads: 2}\n  - {loss: word_loss}\n",
      "every-kind.yaml");
  const auto backend = make_cuda_backend("cuda:0", precision);
  const LayerTimings timings = time_layers(model, {.batch = 8, .repeats = 3, .warm_up = 1}, *backend);
  CHECK(timings.untimed.empty());
  CHECK(timings.whole_step().value() > 0.0);
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    INFO(model.layer(id).name);
    CHECK(timings.steps.back()[id].forward.value() > 0.0);
    CHECK(timings.steps.back()[id].backward.value() > 0.0);
  }
  const auto rate = backend->host_bandwidth();
  REQUIRE(rate);
  CHECK(rate->to_device.value() > 1e8);
  CHECK(rate->to_host.value() > 1e8);
}
