// How far layer times may be off, by what they rest on, and what Winograd's algorithm saves.
#include "models/time_error.hpp"

#include "base/error.hpp"
#include "models/reader.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

ProfileRequest on(const std::string& device, const std::string& precision, std::int64_t batch) {
  ProfileRequest request;
  request.device = device;
  request.precision = precision;
  request.batch = batch;
  return request;
}

}  // namespace

TEST_CASE("what a profile rests on tells how far it may be off", "[models][profile]") {
  const TimeErrors& errors = time_errors();
  const Model bert = find_model("bert-large");
  const auto error = [&](const Profile& profile) { return &time_error(profile); };
  CHECK(error(make_profile(bert, on("T4", "fp32", 8))) == &errors.estimate_fp32);
  CHECK(error(make_profile(bert, on("T4", "amp", 8))) == &errors.estimate_matrix);
  // NeuSight measured it on an A100 with batches of 2 and 8.
  ProfileRequest measured = on("A100-PCIE-80GB", "fp32", 16);
  CHECK(error(make_profile(bert, measured)) == &errors.other_batch);
  // Its relative times on another device add up to an estimate.
  measured.device = "A100-SXM4-80GB";
  CHECK(error(make_profile(bert, measured)) == &errors.estimate_fp32);
  measured.step_time = Seconds{0.5};
  CHECK(error(make_profile(bert, measured)) == &errors.step_time);
  Profile kept = make_profile(bert, on("T4", "fp32", 8));
  kept.basis = TimeBasis::LayerTimes;
  CHECK(error(kept) == &errors.layer_times);
  kept.steps.assign(2, kept.layers);
  CHECK(error(kept) == &errors.step_time);
}

TEST_CASE("the file of errors is read strictly", "[models][profile]") {
  CHECK_THROWS_AS(parse_time_errors("schema: simsync/time-errors/v1\n", "e.yaml"), InputError);
}

TEST_CASE("windows of 3 x 3 and stride 1 take half the work in fp32", "[models][profile]") {
  // One convolution of 16 x 16 pixels, 64 channels to 64. Work that takes time alone: no bytes, no launch, no ramp.
  const auto forward = [](const std::string& window, const std::string& precision) {
    const Model model = parse_model(
        "schema: simsync/model/v1\nname: c\nbatch: 1\nsample: image\ninput: [64, 16, 16]\nlayers:\n"
        "  - {conv: c, out: 64, bias: false, " +
            window + "}\n",
        "c.yaml");
    ProfileRequest request = on("any", precision, 1);
    request.profile = "roofline";
    request.roofline = {.peak = FlopsPerSecond{1e9},
                        .memory = BytesPerSecond{1e18},
                        .launch = Seconds{0.0},
                        .compute_efficiency = 1.0,
                        .memory_efficiency = 1.0,
                        .half_efficiency = Flops{0.0}};
    return make_profile(model, request).layers[0].forward.value();
  };
  // 2 x 9 x 64 x 64 x 256 operations directly: 18.874368 ms at 1 GFLOPS.
  CHECK_THAT(forward("kernel: 3, padding: 1", "amp"), WithinRel(18.874368e-3, 1e-9));
  CHECK_THAT(forward("kernel: 3, padding: 1", "tf32"), WithinRel(18.874368e-3, 1e-9));
  CHECK_THAT(forward("kernel: 3, padding: 1", "fp32"), WithinRel(0.5 * 18.874368e-3, 1e-9));
  // A quarter of the pixels with stride 2; other windows and groups are direct.
  CHECK_THAT(forward("kernel: 3, padding: 1, stride: 2", "fp32"), WithinRel(0.25 * 18.874368e-3, 1e-9));
  CHECK_THAT(forward("kernel: 1", "fp32"), WithinRel(18.874368e-3 / 9.0, 1e-9));
  CHECK_THAT(forward("kernel: 3, padding: 1, groups: 64", "fp32"), WithinRel(18.874368e-3 / 64.0, 1e-9));
}
