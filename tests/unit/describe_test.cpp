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
  // ByteScheduler counts parameters: 1,000,000 bytes are 250,000 of four bytes. It starts a piece while any credit is
  // left, so that one parameter is one piece at a time.
  CHECK(settings(scheduled) == Lines{"ByteScheduler with Horovod: USE_BYTESCHEDULER=1 BYTESCHEDULER_PARTITION=250000 "
                                     "BYTESCHEDULER_CREDIT=1 BYTESCHEDULER_CREDIT_TUNING=0",
                                     "NCCL: NCCL_ALGO=Ring"});
  // 8 MB are cut at 4,096,000 bytes, 500 pages for each of two GPUs.
  CHECK(settings(built("byteps")) == Lines{"BytePS, with a placement of its own: BYTEPS_PARTITION_BYTES=4096000"});
}

TEST_CASE("a builder's partition and credit come back in the unit of its framework", "[search]") {
  const auto settings = [](const Strategy& strategy) { return framework_settings(strategy, lab().model); };
  // BytePS counts its credit in partitions. The builder's four are 16,384,000 bytes.
  const Strategy byteps = built("byteps", {{"credit", "4"}});
  REQUIRE(byteps.graph.scheduling.credit.count == 4 * 4'096'000);
  CHECK(settings(byteps) == Lines{"BytePS, with a placement of its own: BYTEPS_PARTITION_BYTES=4096000 "
                                  "BYTEPS_SCHEDULING_CREDIT=4"});
  // ByteScheduler counts both in parameters: 8 MB are two pieces of 1,000,000 parameters.
  const Strategy served = built("bytescheduler", {{"credit", "3000000"}});
  REQUIRE(served.graph.scheduling.credit.count == 12'000'000);
  CHECK(settings(served) == Lines{"ByteScheduler with MXNet's servers, with a placement of its own: "
                                  "USE_BYTESCHEDULER=1 BYTESCHEDULER_PARTITION=1000000 BYTESCHEDULER_CREDIT=3000000 "
                                  "BYTESCHEDULER_CREDIT_TUNING=0"});
  // One message in service: P3's slices of 40,000 parameters.
  CHECK(settings(built("p3")) == Lines{"ByteScheduler with MXNet's servers, with a placement of its own: "
                                       "USE_BYTESCHEDULER=1 BYTESCHEDULER_PARTITION=40000 BYTESCHEDULER_CREDIT=1 "
                                       "BYTESCHEDULER_CREDIT_TUNING=0"});
  const Strategy reduced = built("bytescheduler", {{"base", "all-reduce"}});
  CHECK(settings(reduced) == Lines{"ByteScheduler with Horovod: USE_BYTESCHEDULER=1 BYTESCHEDULER_PARTITION=8000000 "
                                   "BYTESCHEDULER_CREDIT=16000000 BYTESCHEDULER_CREDIT_TUNING=0"});
}

TEST_CASE("what a scheduler cannot be told names none", "[search]") {
  Strategy strict = built("bytescheduler", {{"base", "all-reduce"}});
  strict.graph.scheduling.credit_is_strict = true;  // ByteScheduler's is not
  CHECK(framework_settings(strict, lab().model).empty());
  Strategy updated_by_servers = built("byteps");
  updated_by_servers.graph.update_at = UpdateAt::Server;  // BytePS's servers only sum
  CHECK(framework_settings(updated_by_servers, lab().model).empty());
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
