#include "models/profile.hpp"

#include <filesystem>
#include <functional>

#include "base/error.hpp"
#include "base/file.hpp"
#include "models/profile_writer.hpp"
#include "models/reader.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

/// Two layers whose times are easy to work out by hand.
Model two_layers() {
  return parse_model(
      "schema: simsync/model/v1\nname: two\nbatch: 1\nsample: row\nlayers:\n"
      "  - {layer: a, kind: dense, parameters: [[250]], forward_flops: 600FLOP, backward_flops: 1200FLOP,\n"
      "     input_bytes: 0B, output_bytes: 4B}\n"
      "  - {layer: b, kind: elementwise, forward_flops: 0, input_bytes: 400B, output_bytes: 800B}\n",
      "two.yaml");
}

/// 1,000 operations and 1,000 bytes per second, no launch cost, no ramp.
Roofline plain() {
  Roofline roofline;
  roofline.peak = FlopsPerSecond{1000.0};
  roofline.memory = BytesPerSecond{1000.0};
  roofline.launch = Seconds{0.0};
  roofline.compute_efficiency = 1.0;
  roofline.memory_efficiency = 1.0;
  roofline.half_efficiency = Flops{0.0};
  return roofline;
}

ProfileRequest request(const std::string& device, const std::string& precision, std::int64_t batch) {
  ProfileRequest wanted;
  wanted.device = device;
  wanted.precision = precision;
  wanted.batch = batch;
  wanted.roofline.peak = FlopsPerSecond{60e12};
  wanted.roofline.memory = BytesPerSecond{3e12};
  return wanted;
}

LayerId id_of(const Model& model, const std::string& name) {
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    if (model.layer(id).name == name) return id;
  }
  FAIL("no layer " << name);
  return 0;
}

}  // namespace

TEST_CASE("the roofline takes the slower of work and bytes", "[models][profile]") {
  const Profile profile = estimate_profile(two_layers(), plain(), 1);
  // a forward: 600 operations take 0.6 s; 250 weights and one output element are 1,004 bytes, 1.004 s.
  CHECK_THAT(profile.layers[0].forward.value(), WithinRel(1.004, 1e-12));
  // a backward: 1.2 s of work against 2 x 1,004 bytes (weights read and their gradient written).
  CHECK_THAT(profile.layers[0].backward.value(), WithinRel(2.008, 1e-12));
  // b: 400 bytes in, 800 out.
  CHECK_THAT(profile.layers[1].forward.value(), WithinRel(1.2, 1e-12));
  CHECK(profile.source == ProfileSource::Roofline);
  // Momentum SGD moves five times 1,000 bytes.
  CHECK_THAT(profile.update.value(), WithinRel(5.0, 1e-12));
  CHECK_THAT(profile.step().value(), WithinRel(1.004 + 2.008 + 1.2 + 1.2 + 5.0, 1e-12));

  // Ten samples: 6,000 operations take 6 s against 1,040 bytes. Parameters do not grow with the batch.
  const Profile ten = estimate_profile(two_layers(), plain(), 10);
  CHECK_THAT(ten.layers[0].forward.value(), WithinRel(6.0, 1e-12));
  CHECK_THAT(ten.layers[1].forward.value(), WithinRel(12.0, 1e-12));
  CHECK_THAT(ten.update.value(), WithinRel(5.0, 1e-12));
}

TEST_CASE("launches and the ramp add to every kernel", "[models][profile]") {
  Roofline roofline = plain();
  roofline.launch = Seconds{0.5};
  roofline.half_efficiency = Flops{6000.0};
  // w / (peak w / (w + h)) = (w + h) / peak: 6,000 operations at half speed take 12 s, and one launch 0.5 s.
  const Profile profile = estimate_profile(two_layers(), roofline, 10);
  CHECK_THAT(profile.layers[0].forward.value(), WithinRel(12.5, 1e-12));
  // Backward is two products: (12,000 + 2 x 6,000) / 1,000 s and two launches.
  CHECK_THAT(profile.layers[0].backward.value(), WithinRel(25.0, 1e-12));
  // No product, no ramp: 12,000 bytes and one launch.
  CHECK_THAT(profile.layers[1].forward.value(), WithinRel(12.5, 1e-12));
}

TEST_CASE("a sparse table is updated only where it was touched", "[models][profile]") {
  const Model model = parse_model(
      "schema: simsync/model/v1\nname: s\nbatch: 1\nsample: row\ninput: [2]\n"
      "layers:\n  - {embedding: e, rows: 100, dim: 25}\n",
      "s.yaml");
  // Rows of 100 bytes, two per sample: batch 3 touches 6 rows, 600 bytes, moved five times.
  CHECK_THAT(estimate_profile(model, plain(), 3).update.value(), WithinRel(3.0, 1e-12));
  // No more than the table itself: 10,000 bytes.
  CHECK_THAT(estimate_profile(model, plain(), 1000).update.value(), WithinRel(50.0, 1e-12));
}

TEST_CASE("half precision moves half the bytes", "[models][profile]") {
  ProfileRequest wanted = request("x", "amp", 1);
  wanted.roofline = plain();
  wanted.profile = "roofline";
  // b: 1,200 bytes at four per element are 600 at two.
  CHECK_THAT(make_profile(two_layers(), wanted).layers[1].forward.value(), WithinRel(0.6, 1e-12));
}

TEST_CASE("a profile measured on the device is used as it is", "[models][profile]") {
  const Model model = find_model("resnet50");
  const Profile profile = make_profile(model, request("H100-SXM5-80GB", "tf32", 128));
  CHECK(profile.source == ProfileSource::Measured);
  CHECK_THAT(profile.provenance, ContainsSubstring("triosim-h100-resnet50"));
  // First row of the file: conv1 took 1,278 us forward and 1,110 us backward.
  CHECK_THAT(profile.layers[0].forward.value(), WithinRel(1278e-6, 1e-9));
  CHECK_THAT(profile.layers[0].backward.value(), WithinRel(1110e-6, 1e-9));
}

TEST_CASE("another batch scales each layer by its estimates", "[models][profile]") {
  const Model model = find_model("resnet50");
  const ProfileRequest wanted = request("H100-SXM5-80GB", "tf32", 32);
  const Profile profile = make_profile(model, wanted);
  CHECK(profile.source == ProfileSource::MeasuredScaled);
  const double ratio = estimate_profile(model, wanted.roofline, 32).layers[0].forward /
                       estimate_profile(model, wanted.roofline, 128).layers[0].forward;
  CHECK_THAT(profile.layers[0].forward.value(), WithinRel(ratio * 1278e-6, 1e-9));
}

TEST_CASE("a profile of another device gives relative times", "[models][profile]") {
  const Model model = find_model("vgg16");
  ProfileRequest wanted = request("T4", "fp32", 128);
  wanted.roofline.winograd = true;  // as make_profile sets it for fp32
  const Profile profile = make_profile(model, wanted);
  const Profile estimate = estimate_profile(model, wanted.roofline, 128);
  CHECK(profile.source == ProfileSource::MeasuredScaled);
  CHECK_THAT(profile.provenance, ContainsSubstring("pipedream-vgg16"));
  CHECK_THAT((profile.forward() + profile.backward()).value(),
             WithinRel((estimate.forward() + estimate.backward()).value(), 1e-9));
  // Second and first convolution of the source: 46,201 and 22,307 us.
  const LayerId first = id_of(model, "stage1.0.conv");
  const LayerId second = id_of(model, "stage1.1.conv");
  CHECK_THAT(profile.layers[second].forward / profile.layers[first].forward, WithinRel(46201.0 / 22307.0, 1e-9));
}

TEST_CASE("a step time measured by the user wins", "[models][profile]") {
  ProfileRequest wanted = request("T4", "fp32", 64);
  wanted.step_time = Seconds{0.25};
  const Profile measured = make_profile(find_model("vgg16"), wanted);
  CHECK_THAT(measured.step().value(), WithinRel(0.25, 1e-12));
  CHECK(measured.source == ProfileSource::MeasuredScaled);
  const Profile estimated = make_profile(find_model("ncf"), wanted);
  CHECK_THAT(estimated.step().value(), WithinRel(0.25, 1e-12));
  CHECK(estimated.source == ProfileSource::RooflineScaled);
}

TEST_CASE("a profile of a longer sequence is scaled to the model's own", "[models][profile]") {
  const Profile profile = make_profile(find_model("bert-large"), request("V100-PCIE-32GB", "fp32", 8));
  CHECK(profile.source == ProfileSource::MeasuredScaled);
  CHECK_THAT(profile.provenance, ContainsSubstring("neusight-v100-bert-large-b8"));
  // Every block has the times of the first.
  const Model model = find_model("bert-large");
  const auto forward = [&](const std::string& name) { return profile.layers[id_of(model, name)].forward.value(); };
  CHECK(forward("bert.encoder.layer.0.output.dense") == forward("bert.encoder.layer.23.output.dense"));
}

TEST_CASE("every built-in profile fits its model", "[models][profile]") {
  for (const char* name : {"alexnet", "vgg16", "resnet50", "resnet101", "inception-v3", "densenet121", "gnmt",
                           "bert-large", "gpt2-large"}) {
    INFO(name);
    const Profile profile = make_profile(find_model(name), request("none", "fp32", 16));
    CHECK(profile.source == ProfileSource::MeasuredScaled);
    for (const LayerTime& time : profile.layers) {
      CHECK(time.forward.value() >= 0.0);
      CHECK(time.backward.value() >= 0.0);
    }
  }
}

TEST_CASE("profiles that do not fit are refused", "[models][profile]") {
  ProfileRequest wanted = request("T4", "fp32", 64);
  wanted.profile = "pipedream-vgg61";
  CHECK_THROWS_WITH(make_profile(find_model("vgg16"), wanted), ContainsSubstring("unknown profile 'pipedream-vgg61'"));
  wanted.profile = "pipedream-vgg16";
  CHECK_THROWS_WITH(make_profile(find_model("alexnet"), wanted), ContainsSubstring("alexnet"));
  wanted.batch = 0;
  CHECK_THROWS_AS(make_profile(find_model("alexnet"), wanted), InputError);
}

TEST_CASE("steps of a table are kept apart", "[models][profile]") {
  const auto folder = std::filesystem::temp_directory_path();
  const std::string file = (folder / "simsync-steps.csv").string();
  const Model model = two_layers();
  const auto us = [](double forward, double backward) {
    return LayerTime{Seconds{1e-6 * forward}, Seconds{1e-6 * backward}};
  };
  save_profile(file, model,
               {.device = "d",
                .precision = "fp32",
                .batch = 1,
                .framework = "none",
                .source = "here",
                .note = "three \\ \"steps\"",
                .steps = {{us(1, 10), us(3, 4)}, {us(9, 20), us(3, 4)}, {us(2, 90), us(3, 4)}}});
  ProfileRequest wanted{.device = "d", .precision = "fp32", .batch = 1, .roofline = plain(), .profile = file};
  const Profile profile = make_profile(model, wanted);
  CHECK(profile.source == ProfileSource::Measured);
  REQUIRE(profile.steps.size() == 3);
  CHECK_THAT(profile.steps[2][0].backward.value(), WithinRel(90e-6, 1e-12));
  // Medians of 1, 9, 2 and of 10, 20, 90, beside 3 and 4: 29 us. The steps took 18, 36 and 99 us: 36 in the middle.
  CHECK_THAT(profile.layers[0].forward.value(), WithinRel(2e-6 * 36.0 / 29.0, 1e-12));
  CHECK_THAT(profile.layers[0].backward.value(), WithinRel(20e-6 * 36.0 / 29.0, 1e-12));
  CHECK_THAT((profile.forward() + profile.backward()).value(), WithinRel(36e-6, 1e-12));
  ProfileRequest drawn = wanted;
  drawn.mean = true;
  CHECK_THAT(make_profile(model, drawn).layers[0].forward.value(), WithinRel(4e-6, 1e-12));
  CHECK_THAT(make_profile(model, drawn).layers[0].backward.value(), WithinRel(40e-6, 1e-12));
  // An estimate: five passes over 1,000 B and one launch.
  CHECK_THAT(profile.update.value(), WithinRel(estimate_profile(model, plain(), 1).update.value(), 1e-12));
  // The manifest is the same profile.
  wanted.profile = (folder / "simsync-steps.yaml").string();
  CHECK(make_profile(model, wanted).steps.size() == 3);
  // Ten samples: a forward is 6 s of work by the roofline instead of 1.004 s of bytes; every step is scaled alike.
  wanted.batch = 10;
  const Profile ten = make_profile(model, wanted);
  CHECK(ten.source == ProfileSource::MeasuredScaled);
  CHECK_THAT(ten.steps[1][0].forward.value(), WithinRel(9e-6 * 6.0 / 1.004, 1e-12));
  std::filesystem::remove(file);
  std::filesystem::remove(folder / "simsync-steps.yaml");
}

namespace {

/// What was thrown, with what helps behind ` | `.
std::string refusal(const std::function<void()>& ask) {
  try {
    ask();
  } catch (const InputError& e) {
    return e.diagnostics().front().message + " | " + e.diagnostics().front().help;
  }
  return "none";
}

/// A layer whose work is not known, as the layers of traces are.
Model traced_model(const std::string& more = {}) {
  return parse_model(
      "schema: simsync/model/v1\nname: traced\nbatch: 4\nsample: row\n" + more +
          "layers:\n  - {layer: a, kind: dense, parameters: [[250]], forward_flops: 0, output_bytes: 0B}\n",
      "traced.yaml");
}

}  // namespace

TEST_CASE("a model that does not tell its work needs a profile", "[models][profile]") {
  const std::string needed =
      "model 'traced' needs a profile: the work of its layer 'a' is not known, so its time cannot be estimated | "
      "'simsync import kineto TRACE --device D --out m.yaml' writes a model together with its profile; --set "
      "profile=F.csv names one";
  ProfileRequest wanted{.device = "d", .batch = 4, .roofline = plain()};
  CHECK(refusal([&] { (void)make_profile(traced_model(), wanted); }) == needed);
  wanted.profile = "roofline";
  CHECK(refusal([&] { (void)make_profile(traced_model(), wanted); }) == needed);
  CHECK(!two_layers().layer_of_unknown_work());
  for (const std::string& name : known_models()) {
    INFO(name);
    CHECK(!find_model(name).layer_of_unknown_work());
  }
}

TEST_CASE("a model's file names its profile", "[models][profile]") {
  const std::string folder = (std::filesystem::temp_directory_path() / "simsync-own-profile").string();
  std::filesystem::create_directory(folder);
  const std::string layers =
      "layers:\n  - {layer: a, kind: dense, parameters: [[250]], forward_flops: 0, output_bytes: 0B}\n";
  const std::string head = "schema: simsync/model/v1\nname: m\n";
  write_file(folder + "/m.yaml", head + "batch: 4\nsample: row\nprofile: m.profile.csv\n" + layers);
  write_file(folder + "/n.yaml", head + "extends: ./m.yaml\n");
  ProfileRequest wanted{.device = "d", .precision = "fp32", .batch = 4, .roofline = plain()};
  const Model model = load_model(folder + "/m.yaml");
  CHECK(model.profile() == folder + "/m.profile.csv");
  CHECK(load_model(folder + "/n.yaml").profile() == folder + "/m.profile.csv");
  CHECK(refusal([&] { (void)make_profile(model, wanted); }) ==
        "model 'm' names a profile that does not exist: " + folder +
            "/m.profile.csv | --set profile=F.csv names another one");
  const auto save = [&](const std::string& file, double forward, std::vector<std::vector<LayerTime>> steps) {
    if (steps.empty()) steps = {{{Seconds{forward}, Seconds{1.0}}}};
    save_profile(folder + "/" + file, model,
                 {.device = "d",
                  .precision = "fp32",
                  .batch = 4,
                  .framework = "none",
                  .source = "here",
                  .note = "",
                  .update = Seconds{0.25},
                  .steps = steps});
  };
  save("m.profile.csv", 2.0, {});
  save("other.csv", 5.0, {});
  const Profile own = make_profile(model, wanted);
  CHECK(own.source == ProfileSource::Measured);
  CHECK_THAT(own.step().value(), WithinRel(3.25, 1e-9));  // 2 + 1 and the optimizer's 0.25
  wanted.profile = folder + "/other.csv";
  CHECK_THAT(make_profile(model, wanted).step().value(), WithinRel(6.25, 1e-9));
  // A text of its own: GCC 12 warns of the short literal (PR 105329).
  const std::string other_device = "another";
  const ProfileRequest elsewhere{.device = other_device, .precision = "fp32", .batch = 4, .roofline = plain()};
  CHECK(refusal([&] { (void)make_profile(model, elsewhere); }) ==
        "profile 'm.profile' was measured on d at fp32; model 'm' does not tell the work of its layers to scale it to "
        "another at fp32 by | record a trace on that device and import it");
  save("m.profile.csv", 2.0, {{{Seconds{-1.0}, Seconds{0.0}}}});
  const ProfileRequest here{.device = "d", .precision = "fp32", .batch = 4, .roofline = plain()};
  CHECK(refusal([&] { (void)make_profile(model, here); }) ==
        "the profile has no rows, expected the times of at least one layer | ");
  std::filesystem::remove_all(folder);
}

TEST_CASE("a profile is saved as a table", "[models][profile]") {
  CHECK_THROWS_WITH(save_profile("p.yaml", two_layers(), {}), ContainsSubstring("ends in .csv"));
}

TEST_CASE("steps count from 1", "[models][profile]") {
  const auto folder = std::filesystem::temp_directory_path();
  const std::string file = (folder / "simsync-step-zero.csv").string();
  const Model model = two_layers();
  save_profile(file, model,
               {.device = "d", .precision = "fp32", .framework = "none", .source = "here", .note = "", .steps = {}});
  write_file(file, "layer,forward_us,backward_us,step\na,1,2,0\n");
  const ProfileRequest wanted{.device = "d", .profile = file};
  CHECK_THROWS_WITH(make_profile(model, wanted), ContainsSubstring("column 'step': expected a whole number"));
  std::filesystem::remove(file);
  std::filesystem::remove(folder / "simsync-step-zero.yaml");
}
