// What a job does over what its devices do alone, on clusters that are not all alike.
#include <filesystem>

#include "base/file.hpp"
#include "sim/engine/predict.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/mixed_cluster.hpp"

using namespace simsync;

TEST_CASE("scaling efficiency is over what the workers' devices do alone", "[predict][heterogeneous]") {
  const auto asked = [](const std::string& cluster, const std::string& strategy) {
    return PredictRequest{.model = "resnet50",
                          .cluster = cluster,
                          .strategy = strategy,
                          .workers = 4,
                          .batch = 32,
                          .settings = {{"profile", "roofline"}}};
  };
  const std::string fast = test::mixed_cluster_file("V100-SXM2-16GB", "V100-SXM2-16GB");
  const std::string slow = test::mixed_cluster_file("T4", "T4");
  const double v100 = 32.0 / prepare(asked(fast, "ddp")).profile.step().value();
  const double t4 = 32.0 / prepare(asked(slow, "ddp")).profile.step().value();
  SECTION("two kinds of devices, whichever comes first: two of each alone do 2 x V100 + 2 x T4 samples/s") {
    for (const auto& [first, second] : {std::pair{"V100-SXM2-16GB", "T4"}, {"T4", "V100-SXM2-16GB"}}) {
      const std::string mixed = test::mixed_cluster_file(first, second);
      const PredictedRow row = predict(asked(mixed, "ddp"));
      CHECK_THAT(row.scaling_efficiency, WithinRel(row.throughput() / (2.0 * v100 + 2.0 * t4), 1e-6));
      std::filesystem::remove(mixed);
    }
  }
  SECTION("a straggler counts as if it were none: 4 x V100") {
    PredictRequest request = asked(fast, "ddp");
    request.settings.emplace_back("straggler", "2");
    const PredictedRow row = predict(request);
    CHECK_THAT(row.scaling_efficiency, WithinRel(row.throughput() / (4.0 * v100), 1e-9));
    CHECK(row.scaling_efficiency < 0.5);
  }
  SECTION("backups count, though a step does without one: 3 gradients over 4 x V100") {
    PredictRequest request = asked(fast, "ps");
    request.settings.emplace_back("strategy.backups", "1");
    const PredictedRow row = predict(request);
    CHECK_THAT(row.scaling_efficiency, WithinRel(3.0 * 32.0 / row.step_time.value() / (4.0 * v100), 1e-9));
  }
  SECTION("a host without devices is no worker") {
    const std::string served = test::mixed_cluster_file("T4", "T4");
    write_file(served, read_file(served) + "  - {name: server, count: 2, nic_link: net}\n");
    const PredictedRow row = predict(asked(served, "ps"));
    CHECK_THAT(row.scaling_efficiency, WithinRel(row.throughput() / (4.0 * t4), 1e-9));
  }
  std::filesystem::remove(fast);
  std::filesystem::remove(slow);
}
