// What a calibration finds apart from its other parameters: interference of collectives with compute, threads of
// servers.
#include <algorithm>

#include "base/error.hpp"
#include "base/file.hpp"
#include "platforms/reader.hpp"
#include "sim/problem/choose_probes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/lab.hpp"
#include "tests/unit/calibrate_support.hpp"
#include "validate/calibrate/calibrate.hpp"
#include "validate/calibrate/readers.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr const char* kThreads = "group.gpu.cpu.threads";
constexpr const char* kThreadsOfAll = "group.*.cpu.threads";  ///< the name when nothing else was asked for

Probe overlap(int ranks, double bytes, int count, double compute) {
  Probe out = probe(ProbeKind::Overlap, ranks, bytes, count);
  out.compute = Seconds{compute};
  return out;
}

/// Two devices on 1 GB/s: a ring of 1 GB takes 1 s.
Cluster pair_of_devices(double interference) {
  Cluster cluster = lab_cluster(1, 2, {.port = 1e9});
  cluster.collective.interference = interference;
  return cluster;
}

/// All-reduces alone, and beside compute that they outlast or do not.
std::vector<Probe> mixed_probes() {
  std::vector<Probe> out;
  for (const double bytes : {1e4, 1e6, 1e8}) out.push_back(probe(ProbeKind::AllReduce, 2, bytes));
  for (const double compute : {0.01, 0.1, 0.4}) {
    out.push_back(overlap(2, 1e7, 100, compute));
    out.push_back(overlap(2, 1e7, 1, compute));
  }
  return out;
}

bool has_note(const CalibrationResult& result, const std::string& note) {
  return std::find(result.notes.begin(), result.notes.end(), note) != result.notes.end();
}

/// A host with `threads` threads that take 50 us for each tensor and sum 2 GB/s, on 12.5 GB/s.
Cluster threaded_cluster(int threads, double per_tensor = 50e-6) {
  Cluster cluster = lab_cluster(2, 1, {.nic = 12.5e9, .nic_latency = 5e-6});
  cluster.groups[0].cpu = {.threads = threads,
                           .per_tensor = Seconds{per_tensor},
                           .update_rate = BytesPerSecond{2e9},
                           .sum_rate = BytesPerSecond{2e9}};
  return cluster;
}

/// One worker with one tensor shows what a thread takes; many tensors of many workers, how many threads there are.
std::vector<Probe> tensors() {
  std::vector<Probe> out;
  for (const int workers : {1, 4}) {
    for (const double bytes : {4e3, 4e5}) {
      for (const int count : {1, 8}) {
        out.push_back(probe(ProbeKind::Push, workers, bytes, count));
        out.push_back(probe(ProbeKind::Pull, workers, bytes, count));
      }
    }
  }
  return out;
}

CalibrateOptions fitting_threads(double low, double high) {
  CalibrateOptions options{.date = "2026-01-31"};
  options.unknowns = {{"group.gpu.cpu.per_tensor", Dimension::Time, 1e-6, 1e-3, true},
                      {"group.gpu.cpu.sum_rate", Dimension::Rate, 1e8, 1e11, true},
                      {kThreads, Dimension::Number, low, high, true}};
  return options;
}

}  // namespace

TEST_CASE("an overlap takes as long as its compute", "[calibrate]") {
  // 1 s of compute under a share of 0.2: 1 / 0.8 s while collectives of 1 s each go on; beside one of 0.5 s, which
  // costs 0.5 x 0.2 s of compute, 1.1 s. How long the collectives take afterwards does not count.
  const Cluster cluster = pair_of_devices(0.2);
  CHECK_THAT(predicted_time(overlap(2, 1e9, 4, 1.0), cluster).value(), WithinRel(1.25, 1e-9));
  CHECK_THAT(predicted_time(overlap(2, 0.5e9, 1, 1.0), cluster).value(), WithinRel(1.1, 1e-9));
  CHECK_THAT(predicted_time(overlap(2, 1e9, 4, 1.0), pair_of_devices(0.0)).value(), WithinRel(1.0, 1e-9));
}

TEST_CASE("interference is found beside the costs of collectives", "[calibrate]") {
  const auto result = calibrate(pair_of_devices(0.0), measured_on(pair_of_devices(0.057), mixed_probes(), 0.01),
                                {.date = "2026-01-31"});
  CHECK_THAT(value_of(result.calibration, "collective.interference"), WithinAbs(0.057, 0.01));
  const auto& found = result.calibration.parameters.back();
  CHECK(found.key == "collective.interference");
  CHECK_FALSE(found.scale.logarithmic);
  CHECK(std::abs(found.value - 0.057) < 3.0 * found.deviation);
  CHECK(found.deviation < 0.01);
  CHECK(result.calibration.correlation.size() == result.calibration.parameters.size());
  CHECK(result.calibration.correlation.back().front() == 0.0);
  CHECK(result.rows.size() == mixed_probes().size());
  CHECK(parse_calibration(to_yaml(result.calibration), "c.yaml") == result.calibration);
}

TEST_CASE("no interference comes out as 0, with a note", "[calibrate]") {
  Cluster nominal = pair_of_devices(0.3);
  const std::string note = "'collective.interference' cannot be told from 0 and is taken as 0";
  for (const double error : {0.0, 0.01}) {
    const auto result =
        calibrate(nominal, measured_on(pair_of_devices(0.0), mixed_probes(), error), {.date = "2026-01-31"});
    CHECK(has_note(result, note));
    const auto& assumed = result.calibration.assumed;
    CHECK(std::count(assumed.begin(), assumed.end(),
                     std::pair<std::string, std::string>("collective.interference", "0")) == 1);
    Cluster calibrated = nominal;
    apply(calibrated, result.calibration);
    CHECK(calibrated.collective.interference == 0.0);
  }
}

TEST_CASE("interference that the rows say nothing about", "[calibrate]") {
  // Beside 1 s of compute a collective of 10 us: half of the compute's speed would be 5 us.
  const Cluster cluster = pair_of_devices(0.1);
  std::vector<Probe> rows;
  for (int i = 0; i < 3; ++i) rows.push_back(overlap(2, 1e4, 1, 1.0));
  rows = measured_on(cluster, rows, 0.01);
  CalibrateOptions options{.date = "2026-01-31"};
  const auto result = calibrate(cluster, rows, options);
  CHECK(has_note(result, "nothing depends on 'collective.interference', which was left as it is"));
  CHECK(result.calibration.parameters.empty());
  options.unknowns = {{"collective.interference", Dimension::Number, 0.0, 0.5, true}};
  const std::string refusal =
      "error: the measurements cannot identify 'collective.interference': they hardly depend on it\n  help: measure "
      "other sizes, rank counts or tensor counts, or fix a value with --set";
  CHECK(error_of([&] { (void)calibrate(cluster, rows, options); }) == refusal);
  const auto alone = measured_on(cluster, {probe(ProbeKind::AllReduce, 2, 1e6)});
  CHECK(error_of([&] { (void)calibrate(cluster, alone, options); }) == refusal);
  options.unknowns.clear();
  options.assumed = {{"collective.interference", "0.2"}};
  CHECK(error_of([&] { (void)calibrate(cluster, rows, options); }) ==
        "error: these measurements depend on none of the parameters");
}

TEST_CASE("four A40: the interference that the parts of the measured steps show", "[calibrate]") {
  // The stretches of backward beside which all-reduces ran all the time: 74.799 ms took 79.34 (5.72 %), 61.07 ms 64.664
  // (5.56 %), 51.03 ms 54.231 (5.90 %).
  const auto table = CsvTable::load(data_folder("validate") + "/reference/ddp_a40_overlap.csv");
  const auto rows = read_table(table, {.ranks = 0, .where = {{"all_reduces", {"throughout"}}}});
  Cluster nominal = load_cluster(resolve_name("a40-pcie4-shm", "platforms/presets", ".yaml", "cluster"));
  nominal.collective.interference = 0.0;
  const auto result = calibrate(nominal, rows, {.date = "2026-01-31"});
  CHECK_THAT(value_of(result.calibration, "collective.interference"), WithinAbs(0.0573, 0.0005));
  CHECK(result.calibration.residuals.worst_pct < 0.3);
}

TEST_CASE("the number of threads is found where many tensors keep them busy", "[calibrate]") {
  // 4 x 8 tensors of 50 us each take 550 us on 3 threads and 400 us on 4.
  const int stated = GENERATE(1, 3, 16);
  const auto rows = measured_on(threaded_cluster(3), tensors(), 0.02);
  const auto told = calibrate(threaded_cluster(stated), rows, fitting_threads(1, 64));
  CHECK(value_of(told.calibration, kThreads) == 3.0);
  CHECK_THAT(value_of(told.calibration, "group.gpu.cpu.per_tensor"), WithinRel(50e-6, 0.05));
  CHECK_THAT(value_of(told.calibration, "group.gpu.cpu.sum_rate"), WithinRel(2e9, 0.1));
  CHECK(told.calibration.residuals.rms_pct < 2.5);
  CHECK(parse_calibration(to_yaml(told.calibration), "c.yaml") == told.calibration);
}

TEST_CASE("the number of threads follows from the probes when nothing else was asked for", "[calibrate]") {
  const auto result =
      calibrate(threaded_cluster(16), measured_on(threaded_cluster(4), tensors(), 0.01), {.date = "2026-01-31"});
  CHECK(value_of(result.calibration, kThreadsOfAll) == 4.0);
  CHECK(result.calibration.residuals.rms_pct < 1.5);
}

TEST_CASE("threads that are never busy are left, or refused by name", "[calibrate]") {
  // A tensor takes 1 us of a thread and 3.3 us on the wire: one thread is enough.
  const Cluster cluster = [] {
    Cluster out = threaded_cluster(8, 1e-6);
    out.links["nic"].bandwidth = BytesPerSecond{1e9};
    out.groups[0].cpu.sum_rate = BytesPerSecond{20e9};
    return out;
  }();
  const auto rows = measured_on(cluster, tensors(), 0.01);
  const auto result = calibrate(cluster, rows, {.date = "2026-01-31"});
  CHECK(has_note(result, "nothing depends on 'group.*.cpu.threads', which was left as it is"));
  for (const auto& parameter : result.calibration.parameters) CHECK(parameter.key != kThreadsOfAll);
  CalibrateOptions options{.date = "2026-01-31"};
  options.unknowns = {{"link.nic.efficiency", Dimension::Number, 0.1, 1.0, true},
                      {kThreads, Dimension::Number, 1.0, 64.0, true}};
  CHECK(error_of([&] { (void)calibrate(cluster, rows, options); }) ==
        "error: the measurements cannot identify 'group.gpu.cpu.threads': they hardly depend on it\n  help: measure "
        "other "
        "sizes, rank counts or tensor counts, or fix a value with --set");
}

TEST_CASE("more threads than the probes can keep busy", "[calibrate]") {
  // 8 tensors at most are in service: 8 or more threads do the same, fewer do not.
  const Cluster truth = threaded_cluster(64, 500e-6);
  std::vector<Probe> few;
  for (const int workers : {1, 2, 4, 8})
    for (const double bytes : {4e3, 4e5}) few.push_back(probe(ProbeKind::Pull, workers, bytes, 1));
  const auto rows = measured_on(truth, few, 0.01);
  CalibrateOptions options{.date = "2026-01-31"};
  options.unknowns = {{"group.gpu.cpu.per_tensor", Dimension::Time, 1e-6, 1e-2, false},
                      {kThreads, Dimension::Number, 1.0, 64.0, false}};
  const auto as_stated = calibrate(truth, rows, options);
  CHECK(has_note(as_stated, "'group.gpu.cpu.threads' was left as it is, 64: 8 or more do the same"));
  const auto wrong = calibrate(threaded_cluster(2), rows, options);
  CHECK(has_note(wrong, "'group.gpu.cpu.threads' is 8, and not 2: 8 or more do the same"));
  CHECK(value_of(wrong.calibration, kThreads) == 8.0);
  options.unknowns.back().demanded = true;
  CHECK(error_of([&] { (void)calibrate(truth, rows, options); }) ==
        "error: the measurements cannot identify 'group.gpu.cpu.threads': 8 or more do the same\n  help: measure other "
        "sizes, rank counts or tensor counts, or fix a value with --set");
}

TEST_CASE("a number of threads that cannot be asked for", "[calibrate]") {
  const auto rows = measured_on(threaded_cluster(3), tensors());
  CHECK(error_of([&] { (void)calibrate(threaded_cluster(3), rows, fitting_threads(1.5, 8)); }) ==
        "error: 'group.gpu.cpu.threads' is a whole number of at least 1, its range has an end at 1.5");
  auto elsewhere = fitting_threads(1, 8);
  elsewhere.unknowns.back().key = "group.cpus.cpu.threads";
  CHECK_THAT(error_of([&] { (void)calibrate(threaded_cluster(3), rows, elsewhere); }),
             ContainsSubstring("error: cluster 'lab' has no parameter 'group.cpus.cpu.threads'"));
}

TEST_CASE("a calibration that leaves its rows far off says so", "[calibrate]") {
  auto rows = measured_on(pair_of_devices(0.1), mixed_probes());
  for (std::size_t i = 0; i < rows.size(); i += 2) rows[i].measured *= 1.5;
  const auto result = calibrate(pair_of_devices(0.1), rows, {.date = "2026-01-31"});
  CHECK(result.calibration.residuals.rms_pct > 10.0);
  REQUIRE_FALSE(result.notes.empty());
  CHECK_THAT(result.notes.back(), ContainsSubstring("% (rms) off after the fit, more than 10 %"));
}

TEST_CASE("overlaps in a table", "[calibrate]") {
  const auto read = [](const std::string& row) {
    return read_table(CsvTable::parse("kind,ranks,bytes,count,algorithm,time_s,compute_s\n" + row + "\n", "p.csv"), {});
  };
  const auto rows = read("overlap,4,1e6,10,ring,0.11,0.1\npush,3,2000,5,,0.001,");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].kind == ProbeKind::Overlap);
  CHECK(rows[0].compute == Seconds{0.1});
  CHECK(rows[1].compute == Seconds{0.0});
  CHECK(error_of([&] { (void)read("overlap,4,1e6,10,ring,0.11,"); }) ==
        "p.csv:2:1: error: an overlap without 'compute_s': what each device computes beside the all-reduces");
  CHECK(error_of([&] { (void)read("overlap,4,1e6,10,ring,0.11,0"); }) ==
        "p.csv:2:1: error: column 'compute_s': expected at least 1e-12, got 0");
  CHECK(error_of([&] { (void)read("push,3,2000,5,,0.001,0.1"); }) ==
        "p.csv:2:1: error: column 'compute_s': nothing is computed during a probe 'push'");
  const auto without = CsvTable::parse("kind,ranks,bytes,count,algorithm,time_s\noverlap,4,1e6,10,ring,0.1\n", "p.csv");
  CHECK(error_of([&] { (void)read_table(without, {}); }) ==
        "p.csv:2:1: error: an overlap without 'compute_s': what each device computes beside the all-reduces");
}
