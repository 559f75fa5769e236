// What is told of a strategy: in words, and as settings of real frameworks.
#include "strategies/search/describe.hpp"

#include "strategies/builders.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

using Lines = std::vector<std::string>;

/// 8 MB and 2 MB.
const LabModel& lab() {
  static const LabModel kLab{{.bytes = 8e6, .forward = 0.1, .backward = 0.2},
                             {.bytes = 2e6, .forward = 0.1, .backward = 0.2}};
  return kLab;
}

Strategy built(const char* name, const std::map<std::string, std::string>& options = {}) {
  const Cluster cluster = lab_cluster(4, 2);
  return build_strategy(name, {.model = lab().model, .cluster = cluster, .workers = 8, .batch = 1, .options = options});
}

}  // namespace

TEST_CASE("buckets, cycles, pieces and partitions as frameworks take them", "[search]") {
  const auto settings = [](const Strategy& strategy) { return framework_settings(strategy, lab().model); };
  CHECK(settings(built("ddp", {{"bucket", "10MiB"}})) == Lines{"torch DistributedDataParallel: bucket_cap_mb=10"});
  CHECK(settings(built("horovod", {{"threshold", "64MiB"}, {"cycle", "5ms"}})) ==
        Lines{"Horovod: HOROVOD_FUSION_THRESHOLD=67108864 HOROVOD_CYCLE_TIME=5"});
  Strategy scheduled = built("ddp");
  scheduled.graph.fusion = {.kind = FusionKind::None};
  scheduled.graph.gate = Gate::PerVariable;
  scheduled.graph.algorithm = CollectiveAlgorithm::Ring;
  scheduled.graph.scheduling = {.ordering = Ordering::Priority, .partition = {1'000'000}, .credit = {1}};
  // One piece at a time is a credit of one piece.
  CHECK(settings(scheduled) == Lines{"ByteScheduler with Horovod: USE_BYTESCHEDULER=1 BYTESCHEDULER_PARTITION=1000000 "
                                     "BYTESCHEDULER_CREDIT=1000000",
                                     "NCCL: NCCL_ALGO=Ring"});
  // 8 MB are cut at 4,096,000 bytes, 500 pages for each of two GPUs.
  CHECK(settings(built("byteps")) == Lines{"BytePS, with a placement of its own: BYTEPS_PARTITION_BYTES=4096000"});
}

TEST_CASE("no framework is named for what none can do", "[search]") {
  CHECK(framework_settings(built("ps"), lab().model).empty());
  Strategy mixed = built("ddp");
  mixed.variables[1].shards.front().synchronizer = PsSynchronizer{.server = {0, -1}};
  CHECK(framework_settings(mixed, lab().model).empty());
  Strategy encoded = built("ddp");
  encoded.variables[0].compressor = Compressor::Fp16;  // of one variable only: no hook does that
  CHECK(framework_settings(encoded, lab().model).empty());
}

TEST_CASE("variables that are handled alike stand in one line, most bytes first", "[search]") {
  Strategy strategy = built("ddp", {{"bucket", "10MiB"}});
  strategy.variables[1].shards.front().synchronizer = PsSynchronizer{.server = {0, -1}};
  const Lines lines = describe(strategy, lab().model);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].find("80 % of the bytes): all-reduced") != std::string::npos);
  CHECK(lines[1].find("20 % of the bytes): on 1 server") != std::string::npos);
  CHECK(lines[2] == "the next step waits for all variables; gradients fused in buckets of 10.0 MiB");
}
