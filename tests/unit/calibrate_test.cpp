// Readers of measurements, and fits to measurements that a known cluster made.
#include "validate/calibrate/calibrate.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/file.hpp"
#include "platforms/reader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/lab.hpp"
#include "tests/unit/calibrate_support.hpp"
#include "validate/calibrate/readers.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr const char* kNccl =
    R"(# nThread 1 nGpus 2 minBytes 8 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1
#
# Using devices
#  Rank  0 Group  0 Pid   4021 on     node01 device  0 [0x07] NVIDIA A100-SXM4-40GB
#  Rank  1 Group  0 Pid   4021 on     node01 device  1 [0x0a] NVIDIA A100-SXM4-40GB
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           0             0     float     sum      -1     0.20    0.00    0.00      0     0.19    0.00    0.00      0
     1048576        262144     float     sum      -1    51.40   20.40   20.40      0    50.10   20.93   20.93      0
# Out of bounds values : 0 OK
)";

/// A search for the number of threads would only take time.
const std::vector<std::pair<std::string, std::string>> kThreadsKnown{{"group.gpu.cpu.threads", "2"}};

/// A host with one device on a network of 125 MB/s: all that its probes depend on is set.
Cluster host_cluster() {
  Cluster cluster = lab_cluster(2, 1, {.nic = 125e6, .nic_latency = 50e-6});
  cluster.links["nic"].efficiency = 0.9;
  cluster.groups[0].cpu = {.threads = 2,
                           .per_tensor = Seconds{200e-6},
                           .update_rate = BytesPerSecond{1e9},
                           .sum_rate = BytesPerSecond{0.2e9}};
  return cluster;
}

std::vector<Probe> server_probes() {
  std::vector<Probe> out;
  for (const int workers : {1, 2, 4}) {
    for (const double bytes : {1e3, 1e5, 4e6}) {
      for (const int count : {1, 8}) {
        out.push_back(probe(ProbeKind::Push, workers, bytes, count));
        out.push_back(probe(ProbeKind::Pull, workers, bytes, count));
      }
    }
  }
  return out;
}

std::vector<Probe> message_probes() {
  std::vector<Probe> out;
  for (const double bytes : {1e3, 1e5, 4e6}) {
    for (const int count : {1, 8}) {
      out.push_back(probe(ProbeKind::Message, 2, bytes, count));
      out.back().per_node = 1;
    }
  }
  return out;
}

}  // namespace

TEST_CASE("nccl-tests output: ranks from the list of devices, time of the out-of-place run", "[calibrate]") {
  const auto probes = read_nccl_tests(kNccl, "n.txt");
  REQUIRE(probes.size() == 1);
  CHECK(probes[0].kind == ProbeKind::AllReduce);
  CHECK(probes[0].ranks == 2);
  CHECK(probes[0].per_node == 2);
  CHECK(probes[0].bytes == 1048576.0);
  CHECK_THAT(probes[0].measured.value(), WithinRel(51.40e-6, 1e-12));
  CHECK(probes[0].where == "n.txt:11");
}

TEST_CASE("nccl-tests output that was cut short or mangled", "[calibrate]") {
  std::string text = kNccl;
  text.replace(text.find("51.40"), 5, "51.4x");
  CHECK(error_of([&] { (void)read_nccl_tests(text, "n.txt"); }) ==
        R"(n.txt:11:1: error: expected a time in us, got '51.4x'
   11 |      1048576        262144     float     sum      -1    51.4x   20.40   20.40      0    50.10   20.93   20.93      0
      | ^)");
  const std::string headers(kNccl, std::string(kNccl).find("           0"));
  CHECK(error_of([&] { (void)read_nccl_tests(headers, "n.txt"); }) ==
        "n.txt: error: no measurement in this nccl-tests output\n  help: was the run cut short?");
  std::string alone = kNccl;
  alone.erase(alone.find("#  Rank  1"), alone.find("#\n#  ") - alone.find("#  Rank  1"));
  CHECK_THAT(error_of([&] { (void)read_nccl_tests(alone, "n.txt"); }),
             ContainsSubstring("n.txt:10:1: error: a run of one rank, which sends nothing"));
}

TEST_CASE("OSU output: latency, bandwidth and all-reduce", "[calibrate]") {
  const auto latency = read_osu("# OSU MPI Latency Test v7.5\n# Size  Latency (us)\n1 3.34\n4096 5.10\n", "l.txt", {});
  REQUIRE(latency.size() == 2);
  CHECK(latency[1].kind == ProbeKind::Message);
  CHECK_THAT(latency[1].measured.value(), WithinRel(5.10e-6, 1e-12));
  // A window of 64 messages of 1 MB at 20 MB/s (powers of 1000): 64e6 / 20e6 = 3.2 s.
  const auto rate = read_osu("# OSU MPI Bandwidth Test v7.5\n# Size  Bandwidth (MB/s)\n1000000 20.0\n", "b.txt", {});
  CHECK(rate.at(0).count == 64);
  CHECK_THAT(rate.at(0).measured.value(), WithinRel(3.2, 1e-12));
  const std::string reduce = "# OSU MPI Allreduce Latency Test v5.9\n# Size  Avg Latency(us)\n4 2.0\n";
  CHECK(read_osu(reduce, "r.txt", {.ranks = 4, .where = {}}).at(0).ranks == 4);
  CHECK(error_of([&] { (void)read_osu(reduce, "r.txt", {}); }) ==
        R"(r.txt:3:1: error: osu_allreduce does not say how many ranks took part
    3 | 4 2.0
      | ^
  help: give --ranks)");
  CHECK(error_of([&] { (void)read_osu("# OSU MPI Bi-Directional Bandwidth Test v7.5\n1 2\n", "x.txt", {}); }) ==
        R"(x.txt:1:1: error: expected the output of osu_latency, osu_bw or osu_allreduce
    1 | # OSU MPI Bi-Directional Bandwidth Test v7.5
      | ^)");
}

TEST_CASE("our own table of probes", "[calibrate]") {
  const auto table = CsvTable::parse(
      "kind,ranks,bytes,count,algorithm,time_s\nall-reduce,4,1e6,1,ring,0.02\npush,3,2000,5,,0.001\n", "p.csv");
  const auto probes = read_table(table, {});
  REQUIRE(probes.size() == 2);
  CHECK(probes[0].algorithm == CollectiveAlgorithm::Ring);
  CHECK(probes[1].kind == ProbeKind::Push);
  CHECK(probes[1].count == 5);
  CHECK(probes[1].measured.value() == 0.001);
  CHECK(probes[1].repeat == 0.0);
  const auto repeated = read_table(CsvTable::parse("kind,ranks,bytes,count,algorithm,time_s,time_p10_s,time_p90_s\n"
                                                   "push,3,2000,5,,0.01,0.009,0.0115631\n",
                                                   "p.csv"),
                                   {});
  CHECK_THAT(repeated.at(0).repeat, WithinRel(0.1, 1e-6));  // 2.5631 ms are 2.5631 standard deviations
  const auto wrong = [](const std::string& row) {
    return error_of(
        [&] { (void)read_table(CsvTable::parse("kind,ranks,bytes,count,algorithm,time_s\n" + row, "p.csv"), {}); });
  };
  CHECK(wrong("pusj,4,1,1,,1\n") ==
        "p.csv:2:1: error: column 'kind': 'pusj' is not one of all-reduce, push, pull, message, overlap, reads\n  "
        "help: did "
        "you mean "
        "'push'?");
  CHECK(wrong("push,2.5,1,1,,1\n") ==
        "p.csv:2:1: error: column 'ranks': expected a whole number up to 1000000, got 2.5");
  CHECK(wrong("push,2,1,1,,0\n") == "p.csv:2:1: error: column 'time_s': expected at least 1e-12, got 0");
  CHECK(wrong("all-reduce,2,,1,,1\n") == "p.csv:2:1: error: column 'bytes' is empty");
}

TEST_CASE("tables of collectives and of point-to-point runs", "[calibrate]") {
  const auto collectives = CsvTable::parse(
      "system,collective,gpus_per_node,nodes,in_place,size_bytes,time_us\n"
      "a,all_reduce,4,2,0,1024,30\na,all_reduce,4,2,1,1024,29\nb,all_gather,4,2,0,1024,20\na,all_reduce,4,2,0,4096,\n",
      "c.csv");
  const auto probes = read_table(collectives, {});
  REQUIRE(probes.size() == 2);  // neither the in-place row nor the one without a time
  CHECK(probes[0].ranks == 8);
  CHECK(probes[1].bytes == 128.0);  // an all-gather's size is that of the result
  CHECK(read_table(collectives, {.ranks = 0, .where = {{"system", {"b"}}}}).size() == 1);
  const auto messages = CsvTable::parse(
      "test,intra_or_inter,size_bytes,bandwidth_MBps,latency_us\nosu_bw,inter-node,1000,64,\nosu_latency,intra-node,8,,"
      "2\n",
      "p2p.csv");
  const auto sent = read_table(messages, {});
  REQUIRE(sent.size() == 2);
  CHECK_THAT(sent[0].measured.value(), WithinRel(1e-3, 1e-12));
  CHECK(sent[1].per_node == 2);
}

TEST_CASE("rows that do not repeat, and rows that are far off, hardly move a fit", "[calibrate]") {
  const Cluster truth = lab_cluster(2, 1, {.nic = 125e6, .nic_latency = 50e-6});
  std::vector<Probe> probes;
  for (const double bytes : {1e3, 4e3, 1e6, 1.5e6, 2e6, 3e6, 4e6, 6e6, 8e6, 12e6, 16e6, 24e6, 32e6, 48e6})
    probes.push_back(probe(ProbeKind::Message, 2, bytes));
  for (Probe& one : probes) one.per_node = 1;
  probes = measured_on(truth, probes, 0.002);
  const auto found = [&] {
    return value_of(calibrate(truth, probes, {.date = "2026-01-31"}).calibration, "link.nic.efficiency");
  };
  const double undisturbed = found();
  SECTION("half of the large ones came 15 % late, and their repetitions say so") {
    for (const std::size_t late : {3U, 5U, 7U, 9U, 11U, 13U}) {
      probes[late].measured *= 1.15;
      probes[late].repeat = 0.5;
    }
    CHECK_THAT(found(), WithinRel(undisturbed, 0.01));
  }
  SECTION("a quarter of them came 8 % late, and nothing tells") {
    for (const std::size_t late : {3U, 7U, 11U}) probes[late].measured *= 1.08;
    CHECK_THAT(found(), WithinRel(undisturbed, 0.01));
  }
}

TEST_CASE("a push and a pull as small plans", "[calibrate]") {
  // 2 workers push 3 tensors of 1 MB to one server over 100 MB/s: its NIC receives 6 MB in 0.06 s. The last tensors of
  // both arrive together and are added to one sum, one after the other, at 1 GB/s: 2 ms. Pull: 6 MB out of the
  // server's NIC: 0.06 s, after 0 of work.
  Cluster cluster = lab_cluster(2, 1, {.nic = 100e6});
  cluster.groups[0].cpu = {
      .threads = 8, .per_tensor = Seconds{0.0}, .update_rate = BytesPerSecond{1e9}, .sum_rate = BytesPerSecond{1e9}};
  const std::vector<Probe> probes{probe(ProbeKind::Push, 2, 1e6, 3), probe(ProbeKind::Pull, 2, 1e6, 3)};
  const Cluster grown = grown_for(cluster, probes);
  CHECK(grown.node_count() == 3);
  CHECK_THAT(predicted_time(probes[0], grown).value(), WithinRel(0.062, 1e-9));
  CHECK_THAT(predicted_time(probes[1], grown).value(), WithinRel(0.060, 1e-9));
}

TEST_CASE("a fit finds the numbers that made the measurements", "[calibrate]") {
  Cluster truth = host_cluster();
  truth.groups[0].cpu.dispatch_latency = Seconds{500e-6};
  Cluster nominal = truth;
  nominal.links["nic"].efficiency = 1.0;
  nominal.links["nic"].latency = Seconds{1e-6};
  nominal.groups[0].cpu.per_tensor = Seconds{10e-6};
  nominal.groups[0].cpu.dispatch_latency = Seconds{0.0};
  nominal.groups[0].cpu.sum_rate = BytesPerSecond{8e9};
  auto probes = server_probes();
  for (const Probe& message : message_probes()) probes.push_back(message);
  const auto result =
      calibrate(nominal, measured_on(truth, probes, 0.01), {.assumed = kThreadsKnown, .date = "2026-01-31"});
  CHECK(result.calibration.rows == 42);
  CHECK(result.calibration.residuals.rms_pct < 1.5);
  CHECK(result.calibration.repeat_pct == 0.0);
  CHECK_THAT(value_of(result.calibration, "link.nic.efficiency"), WithinRel(0.9, 0.02));
  CHECK_THAT(value_of(result.calibration, "link.nic.latency"), WithinRel(50e-6, 0.2));
  CHECK_THAT(value_of(result.calibration, "group.*.cpu.per_tensor"), WithinRel(200e-6, 0.05));
  CHECK_THAT(value_of(result.calibration, "group.*.cpu.dispatch_latency"), WithinRel(500e-6, 0.05));
  CHECK_THAT(value_of(result.calibration, "group.*.cpu.sum_rate"), WithinRel(0.2e9, 0.05));
  // What the file says predicts the same as what was fitted.
  const Calibration read = parse_calibration(to_yaml(result.calibration), "c.yaml");
  Cluster calibrated = nominal;
  apply(calibrated, read);
  CHECK(residuals_of(predict_rows(calibrated, measured_on(truth, server_probes()))).worst_pct < 2.0);
}

TEST_CASE("collectives of two protocols, and what was not measured", "[calibrate]") {
  const auto sizes = [](const std::vector<int>& ranks, double first) {
    std::vector<Probe> out;
    for (const int count : ranks)
      for (double bytes = first; bytes < 2e9; bytes *= 16.0) out.push_back(probe(ProbeKind::AllReduce, count, bytes));
    return out;
  };
  const Cluster nominal = lab_cluster(1, 8, {.port = 100e9, .port_latency = 0.0});
  Cluster truth = nominal;
  truth.collective.launch = Seconds{20e-6};
  truth.collective.protocols["ll128"] = {.per_step_intra = Seconds{2e-6}, .efficiency = 0.3, .overlap = true};
  truth.collective.protocols["simple"] = {.per_step_intra = Seconds{12e-6}, .efficiency = 0.8, .overlap = false};
  CollectiveEstimates estimates(truth);
  for (const Probe& one : sizes({2, 8}, 64.0))  // rings: the closed form is what a replay takes
    CHECK_THAT(estimates.of(one).value(), WithinRel(predicted_time(one, truth).value(), 0.005));
  const auto result = calibrate(nominal, measured_on(truth, sizes({2, 4, 8}, 64.0), 0.01), {.date = "2026-01-31"});
  CHECK(result.model == "ll128 and simple");
  Cluster calibrated = nominal;
  apply(calibrated, result.calibration);
  CHECK(residuals_of(predict_rows(calibrated, measured_on(truth, sizes({3, 5, 6}, 256.0)))).worst_pct < 5.0);
}

/// Alternating sizes of a machine of the public table fitted to its preset, as the README of the folder does.
CalibrationResult half_of(const std::string& system, const std::string& preset) {
  const auto table = CsvTable::load(data_folder("validate") + "/reference/collectives.csv");
  const auto probes = read_table(table, {.ranks = 0, .where = {{"system", {system}}, {"half", {"a"}}}});
  return calibrate(load_cluster(resolve_name(preset, "platforms/presets", ".yaml", "cluster")), probes,
                   {.date = "2026-01-31"});
}

TEST_CASE("eight A100: sizes that were not fitted, as the README of the folder says", "[calibrate]") {
  const auto table = CsvTable::load(data_folder("validate") + "/reference/collectives.csv");
  const auto rows = [&](const std::string& half) {
    return read_table(
        table,
        {.ranks = 0, .where = {{"system", {"vtrain-a100"}}, {"gpus_per_node", {"2", "4", "8"}}, {"half", {half}}}});
  };
  const Cluster nominal = load_cluster(resolve_name("dgx-a100", "platforms/presets", ".yaml", "cluster"));
  Cluster calibrated = nominal;
  apply(calibrated, calibrate(nominal, rows("a"), {.date = "2026-01-31"}).calibration);
  const Residuals unseen = residuals_of(predict_rows(calibrated, rows("b")));
  CHECK(unseen.median_pct < 3.0);
  CHECK(unseen.worst_pct < 10.0);
}

TEST_CASE("a description with a protocol that no measurement takes is left out", "[calibrate]") {
  // Eight H100 of one node: from 8 B to 256 KiB all take 35 us. A third protocol costs nothing when nothing takes it.
  const auto result = half_of("together-h100", "dgx-h100");
  CHECK(result.model == "one protocol");
  CHECK(result.calibration.residuals.median_pct < 5.0);
}

TEST_CASE("costs of a message below those that the cluster states", "[calibrate]") {
  // Two nodes of p3dn: 52 us for 8 B, where the preset's half_size of 64 KiB alone takes that long in both rounds.
  const auto result = half_of("aws-p3dn", "p3.16xlarge");
  const auto& assumed = result.calibration.assumed;
  CHECK(std::count(assumed.begin(), assumed.end(),
                   std::pair<std::string, std::string>("link.ethernet.half_size", "0")) == 1);
  CHECK(value_of(result.calibration, "link.ethernet.latency") < 25e-6);
  // Both half_size and latency could be smaller than stated. half_size alone leaves 64 KiB 39 % off.
  CHECK(result.model == "ll128 and simple");
  CHECK(result.calibration.residuals.median_pct < 5.0);
  CHECK(result.calibration.residuals.worst_pct < 20.0);
}

TEST_CASE("a cost of a message that the caller sets is not found in the place of another", "[calibrate]") {
  const auto table = CsvTable::load(data_folder("validate") + "/reference/collectives.csv");
  const auto probes = read_table(table, {.ranks = 0, .where = {{"system", {"aws-p3dn"}}, {"half", {"a"}}}});
  const auto result = calibrate(find_cluster("p3.16xlarge"), probes,
                                {.assumed = {{"link.ethernet.half_size", "1000B"}}, .date = "2026-01-31"});
  const auto is_half_size = [](const auto& one) { return one == "link.ethernet.half_size"; };
  const auto& calibration = result.calibration;
  CHECK(std::ranges::none_of(calibration.parameters, is_half_size, &CalibratedParameter::key));
  CHECK(std::ranges::count_if(calibration.assumed, is_half_size, &std::pair<std::string, std::string>::first) == 1);
}

TEST_CASE("how measurements repeat, weighted by their time", "[calibrate]") {
  auto probes = measured_on(host_cluster(), server_probes());
  for (Probe& one : probes) one.repeat = one.count == 8 ? 0.02 : 0.08;
  double sum = 0.0;
  double time = 0.0;
  for (const Probe& one : probes) {
    sum += one.repeat * one.measured.value();
    time += one.measured.value();
  }
  probes.push_back(probes.back());
  probes.back().repeat = 0.0;  // not known: it says nothing
  const auto result = calibrate(host_cluster(), probes, {.assumed = kThreadsKnown, .date = "2026-01-31"});
  CHECK_THAT(result.calibration.repeat_pct, WithinRel(100.0 * sum / time, 1e-9));
}

TEST_CASE("what the measurements cannot tell is refused by name", "[calibrate]") {
  // One rank count and one size: a launch and a cost per round only show as their sum.
  const Cluster truth = lab_cluster(1, 4, {.port = 1e9, .port_latency = 1e-6});
  std::vector<Probe> probes;
  for (int i = 0; i < 4; ++i) probes.push_back(probe(ProbeKind::AllReduce, 4, 1e3));
  CalibrateOptions options{.date = "2026-01-31"};
  options.unknowns = {{"collective.launch", Dimension::Time, 1e-7, 1e-3, true},
                      {"collective.per_step_intra", Dimension::Time, 1e-7, 1e-3, true}};
  CHECK(error_of([&] { (void)calibrate(truth, measured_on(truth, probes, 0.01), options); }) ==
        "error: the measurements cannot identify 'collective.launch': it trades off against "
        "'collective.per_step_intra'\n  help: measure other sizes, rank counts or tensor counts, or fix a value with "
        "--set");
}

TEST_CASE("a prior helps while probes are few and does no harm when they are many", "[calibrate]") {
  // Cluster B has half of A's rate and 1.3 times its costs per tensor. A's calibration is the prior.
  const Cluster a = host_cluster();
  Cluster b = a;
  b.links["nic"].efficiency = 0.45;
  b.groups[0].cpu.per_tensor = Seconds{260e-6};
  CalibrateOptions options{.assumed = kThreadsKnown, .date = "2026-01-31"};
  const auto of_a = calibrate(a, measured_on(a, server_probes(), 0.01), options).calibration;
  const auto all = measured_on(b, server_probes(), 0.02);
  const auto error_with = [&](std::size_t k, bool prior) {
    CalibrateOptions with = options;
    if (prior) with.prior = of_a;
    for (const auto& p : of_a.parameters)
      with.unknowns.push_back({p.key, p.scale.dimension, p.value / 20.0,
                               p.scale.dimension == Dimension::Number ? 1.0 : p.value * 20.0, false});
    // Probes spread over the list; what was not probed is predicted.
    std::vector<Probe> few;
    for (std::size_t i = 0; i < k; ++i) few.push_back(all[(i * 7) % all.size()]);
    Cluster calibrated = b;
    apply(calibrated, calibrate(b, few, with).calibration);
    return residuals_of(predict_rows(calibrated, all)).rms_pct;
  };
  CHECK(error_with(2, true) < 25.0);
  CHECK(error_with(5, true) < error_with(5, false) + 0.5);
  CHECK_THAT(error_with(36, true), WithinAbs(error_with(36, false), 0.5));
}

TEST_CASE("two probes are enough where a prior knows the rest, or took it as given", "[calibrate]") {
  const Cluster a = host_cluster();
  Cluster b = a;
  b.links["nic"].efficiency = 0.45;
  const CalibrateOptions options{.assumed = kThreadsKnown, .date = "2026-01-31"};
  Calibration prior = calibrate(a, measured_on(a, server_probes(), 0.01), options).calibration;
  // As if the cost of a tensor could not be told from 0.
  prior.assumed.emplace_back("group.*.cpu.per_tensor", "0");
  const auto gone = std::find_if(prior.parameters.begin(), prior.parameters.end(),
                                 [](const auto& parameter) { return parameter.key == "group.*.cpu.per_tensor"; });
  REQUIRE(gone != prior.parameters.end());
  for (auto& row : prior.correlation) row.erase(row.begin() + (gone - prior.parameters.begin()));
  prior.correlation.erase(prior.correlation.begin() + (gone - prior.parameters.begin()));
  prior.parameters.erase(gone);
  const auto all = measured_on(b, server_probes(), 0.02);
  const std::vector<Probe> two(all.end() - 2, all.end());  // a push and a pull of eight large tensors
  CHECK_THROWS_AS(calibrate(b, two, options), InputError);
  CalibrateOptions with = options;
  with.prior = prior;
  const CalibrationResult result = calibrate(b, two, with);
  CHECK(std::find(result.calibration.assumed.begin(), result.calibration.assumed.end(),
                  std::pair<std::string, std::string>{"group.*.cpu.per_tensor", "0"}) !=
        result.calibration.assumed.end());
  CHECK_THAT(value_of(result.calibration, "link.nic.efficiency"), WithinRel(0.45, 0.25));
}
