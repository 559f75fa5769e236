// A small model timed on this machine's processor, written, and read back for a prediction.
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "hw/profile/time_layers.hpp"
#include "models/profile_writer.hpp"
#include "models/reader.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

/// One layer of every kind.
Model every_kind() {
  return parse_model(
      "schema: simsync/model/v1\nname: every-kind\nbatch: 2\nsample: x\n"
      "inputs: {image: [4, 12, 12], words: [16]}\nlayers:\n"
      "  - {conv: conv, out: 8, kernel: 3, padding: 1, from: image}\n"
      "  - {batch_norm: bn}\n  - {relu: relu}\n  - {max_pool: pool, kernel: 2}\n"
      "  - {conv: grouped, out: 8, kernel: [1, 3], stride: 2, groups: 4}\n"
      "  - {flatten: all}\n  - {dense: fc, out: 5}\n  - {loss: image_loss}\n"
      "  - {embedding: table, rows: 50, dim: 8, from: words}\n  - {lstm: lstm, hidden: 6}\n"
      "  - {dense: qkv, out: 24}\n  - {attention: attention, heads: 2}\n"
      "  - {additive_attention: additive, from: [attention.context, attention.context]}\n  - {loss: word_loss}\n",
      "every-kind.yaml");
}

}  // namespace

TEST_CASE("a profile of this processor serves a prediction", "[profile][cpu]") {
  const auto precision = GENERATE(as<std::string>{}, "fp32", "bf16");
  const Model model = every_kind();
  std::unique_ptr<Backend> backend;
  LayerTimings timings;
  try {
    backend = make_cpu_backend(precision);
    timings = time_layers(model, {.batch = 2, .repeats = 3, .warm_up = 1}, *backend);
  } catch (const CapabilityError& error) {
    REQUIRE(precision != "fp32");  // older processors lack bf16
    WARN("skipped: " << error.what());
    return;
  }
  CHECK(timings.untimed.empty());
  CHECK(timings.whole_step().value() > 0.0);
  for (const auto& step : timings.steps) {
    for (LayerId id = 0; id < model.layer_count(); ++id) {
      INFO(model.layer(id).name);
      CHECK(step[id].forward.value() > 0.0);
      CHECK(step[id].backward.value() > 0.0);
    }
  }

  const std::string file =
      (std::filesystem::temp_directory_path() / ("simsync-every-kind-" + precision + ".csv")).string();
  save_profile(file, model,
               {.device = "this-one",
                .precision = precision,
                .batch = 2,
                .framework = backend->device().framework,
                .source = "a \"test\"",
                .note = "",
                .steps = timings.steps});
  ProfileRequest request{.device = "this-one", .precision = precision, .batch = 2, .profile = file};
  const Profile profile = make_profile(model, request);
  CHECK(profile.source == ProfileSource::Measured);
  REQUIRE(profile.steps.size() == 3);
  // The table keeps nanoseconds.
  CHECK_THAT(profile.steps[1][0].forward.value(), WithinAbs(timings.steps[1][0].forward.value(), 1e-9));
  std::filesystem::remove(file);
  std::filesystem::remove(std::filesystem::path(file).replace_extension(".yaml"));
}

TEST_CASE("oneDNN has no fp16 on a CPU", "[profile][cpu]") {
  CHECK_THROWS_AS(make_cpu_backend("fp16"), CapabilityError);
}

TEST_CASE("what does not fit into the memory of this machine is refused before it is taken", "[profile][cpu]") {
  const auto backend = make_cpu_backend("fp32");
  const std::int64_t petabyte = std::int64_t{1} << 50;
  CHECK_THROWS_AS(backend->stream(Bytes{petabyte}), CapabilityError);
  CHECK_THROWS_WITH(backend->stream(Bytes{petabyte}), ContainsSubstring("an operand of a layer takes 524288.00 GiB") &&
                                                          ContainsSubstring("a smaller --batch needs less"));
}
