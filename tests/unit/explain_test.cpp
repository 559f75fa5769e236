#include "sim/engine/explain.hpp"

#include "sim/engine/verdict.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab_run.hpp"
#include "tests/unit/explain_support.hpp"

namespace simsync {
namespace {

using namespace test;

double time_of(const Explanation& explanation, const std::string& resource) {
  for (const PathShare& share : explanation.resources)
    if (share.resource == resource) return share.time.value();
  return 0.0;
}

double free_step(const std::vector<WhatIf>& answers, const std::string& what) {
  for (const WhatIf& answer : answers)
    if (answer.what == what) return answer.step.value().value();
  return -1.0;
}

/// Pieces follow each other without gaps and fill the step.
void require_complete(const Explanation& explanation, const Prediction& prediction) {
  REQUIRE(!explanation.path.empty());
  const double end = prediction.iteration_end[static_cast<std::size_t>(explanation.iteration)].value();
  const double begin = end - explanation.step.value();
  double at = begin;
  for (const PathPiece& piece : explanation.path) {
    REQUIRE_THAT(piece.begin.value(), WithinAbs(at, 1e-9 * end));
    REQUIRE(piece.length.value() >= 0.0);
    REQUIRE(piece.shared.value() <= piece.length.value() * (1.0 + 1e-9));
    at = (piece.begin + piece.length).value();
  }
  REQUIRE_THAT(at, WithinAbs(end, 1e-9 * end));
  double by_resource = 0.0;
  for (const PathShare& share : explanation.resources) by_resource += share.time.value();
  double by_op = 0.0;
  for (const PathShare& share : explanation.ops) by_op += share.time.value();
  REQUIRE_THAT(by_resource, WithinRel(explanation.step.value(), 1e-9));
  REQUIRE_THAT(by_op, WithinRel(explanation.step.value(), 1e-9));
}

TEST_CASE("two ranks and one layer: the step is explained to the millisecond", "[engine][explain]") {
  // P = 2, S = 10 MB, link 100 MB/s, latency 1 ms, half_size 0.5 MB, launch 2 ms.
  //   ring        2(P-1) = 2 rounds of S/P = 5 MB, each message as dear as 0.5 MB more
  //   wire        2 x 5 MB / 100 MB/s                 = 100 ms
  //   fixed       launch 2 + 2 rounds x (1 + 0.5 MB / 100 MB/s = 5) = 14 ms
  //   compute     forward 10, backward 20, update 5   =  35 ms
  //   step        149 ms; every part waits for the one before, so all of it is critical
  const Problem problem = two_ranks();
  const Prediction prediction = recorded(problem);
  const Explanation e = explain(problem, prediction);
  REQUIRE_THAT(e.step.value(), WithinRel(0.149, 1e-6));
  require_complete(e, prediction);
  REQUIRE_THAT(time_of(e, "compute forward"), WithinRel(0.010, 1e-6));
  REQUIRE_THAT(time_of(e, "compute backward"), WithinRel(0.020, 1e-6));
  REQUIRE_THAT(time_of(e, "compute update"), WithinRel(0.005, 1e-6));
  REQUIRE_THAT(time_of(e, "link nic-out"), WithinRel(0.100, 1e-6));
  REQUIRE_THAT(time_of(e, kLatency), WithinRel(0.014, 1e-6));

  // Each NIC sends 10 MB and 2 x 0.5 MB in 149 ms of 100 MB/s; PCIe carries the same.
  REQUIRE(e.links.size() == 4);
  for (const LinkLoad& load : e.links) {
    const double rate = load.role.starts_with("nic") ? 1e8 : 1e10;
    REQUIRE(load.count == 2);
    REQUIRE_THAT(load.bytes, WithinRel(11e6, 1e-6));
    REQUIRE_THAT(load.utilization, WithinRel(11e6 / (rate * 0.149), 1e-6));
  }
  REQUIRE(e.collectives.size() == 1);
  REQUIRE(e.collectives.front().what == "all-reduce a/weight");
  REQUIRE(e.collectives.front().limit == "link nic-out");
  REQUIRE_THAT(e.collectives.front().time.value(), WithinRel(0.114, 1e-6));

  // Without compute 114 ms; without fixed costs 100 + 35; with the network free PCIe moves 11 MB in 1.1 ms, and
  // launch + 2 x 1 ms + 35 remain; the rest of the machine is not in the way.
  std::vector<WhatIf> answers;
  what_if(problem, prediction, [&](const WhatIf& answer) { answers.push_back(answer); });
  REQUIRE_THAT(free_step(answers, "compute"), WithinRel(0.114, 1e-5));
  REQUIRE_THAT(free_step(answers, kLatency), WithinRel(0.135, 1e-5));
  REQUIRE_THAT(free_step(answers, "bandwidth between nodes"), WithinRel(0.0401, 1e-4));
  REQUIRE_THAT(free_step(answers, "bandwidth inside nodes"), WithinRel(0.149, 1e-6));
  REQUIRE_THAT(free_step(answers, "host CPUs"), WithinRel(0.149, 1e-6));

  const std::string text = to_text(e);
  REQUIRE_THAT(text, ContainsSubstring("Critical path of iteration"));
  REQUIRE_THAT(text, ContainsSubstring("all-reduce a/weight: link nic-out"));
  REQUIRE_THAT(to_text(WhatIf{"compute", Seconds{0.114}}, e.step), ContainsSubstring("114.000 ms   23.5 % less"));
  REQUIRE_THAT(to_text(WhatIf{"compute", 1.1 * e.step}, e.step),
               ContainsSubstring("163.900 ms   10.0 % more (queues serve in another order)"));
}

TEST_CASE("of steps that vary the one nearest to their mean is explained", "[engine][explain]") {
  Problem problem = two_ranks();
  problem.profile.variation = 0.3;
  compile_again(problem);
  const Prediction prediction = recorded(problem);
  const Explanation e = explain(problem, prediction);
  require_complete(e, prediction);
  const auto from_mean = [&](Seconds step) { return std::abs((step - prediction.step).value()); };
  REQUIRE(prediction.warm_up >= 12);  // a fifth of 60
  REQUIRE(e.iteration >= prediction.warm_up);
  for (auto step = prediction.steps.begin() + prediction.warm_up; step != prediction.steps.end(); ++step)
    REQUIRE(from_mean(*step) >= from_mean(e.step) - 1e-9);
  REQUIRE(from_mean(prediction.steps.back()) > 2.0 * from_mean(e.step));
  // 114 ms of 149 are no compute (above); what the draws add to that is the slower rank's forward, backward and update.
  const double compute = time_of(e, "compute forward") + time_of(e, "compute backward") + time_of(e, "compute update");
  REQUIRE_THAT(e.step.value() - compute, WithinAbs(0.114, 1e-6));
  // A rank whose update was the faster one has begun its forward pass, half as long as its backward pass, before the
  // step: at most one update, of 5 ms and what varies of it, is missing.
  const double missing = 0.5 * time_of(e, "compute backward") - time_of(e, "compute forward");
  REQUIRE(missing > -1e-9);
  REQUIRE(missing < 2.0 * 0.005);
  REQUIRE_THAT(to_text(e), ContainsSubstring("(steps vary; this one is nearest to their mean)"));
}

TEST_CASE("what a message costs besides its bytes does not grow with a protocol's share of the rate",
          "[engine][explain]") {
  // As above, where half of what is sent are flags: 20 MB on the wire and the 2 x 0.5 MB of before, 100 ms more.
  Problem problem = two_ranks();
  problem.cluster.collective.efficiency = 0.5;
  REQUIRE_THAT(recorded(problem).step.value(), WithinRel(0.249, 1e-6));
}

TEST_CASE("a cap on one stream is told apart from the link", "[engine][explain]") {
  // As above without half_size, and one stream reaches 25 MB/s: 10 MB take 400 ms of a link that is a quarter busy.
  Cluster cluster = slow_cluster(2);
  cluster.links["ethernet"].per_flow_cap = BytesPerSecond{2.5e7};
  const Problem problem = problem_of(chain({{1000, 2500}}), cluster, "all-reduce", 2, {Seconds{0.010}, Seconds{0.020}},
                                     {{"algorithm", "ring"}});
  const Explanation e = explain(problem, recorded(problem));
  REQUIRE_THAT(time_of(e, "stream cap on nic-out"), WithinRel(0.400, 1e-6));
  REQUIRE(time_of(e, "link nic-out") == 0.0);
  REQUIRE_THAT(e.step.value(), WithinRel(0.439, 1e-6));
}

TEST_CASE("a limit of pairs is free where the network is", "[engine][explain]") {
  // As above without a cap, and both directions share 100 MB/s: 2 x 10 MB take 200 ms, 2 rounds of 1 ms, launch 2 ms,
  // compute 35 ms. Without any limit between the nodes PCIe moves 10 MB in 1 ms.
  Cluster cluster = slow_cluster(2);
  cluster.network.pair_bandwidth = BytesPerSecond{1e8};
  const Problem problem = problem_of(chain({{1000, 2500}}), cluster, "all-reduce", 2, {Seconds{0.010}, Seconds{0.020}},
                                     {{"algorithm", "ring"}});
  REQUIRE_THAT(recorded(problem).step.value(), WithinRel(0.239, 1e-6));
  const Problem unlimited = with_free_network(problem);
  REQUIRE_THAT(replay(unlimited.plan, unlimited.cluster, unlimited.options).step.value(), WithinRel(0.040, 1e-4));
}

TEST_CASE("the stages of a collective follow each other on the path", "[engine][explain]") {
  // Hierarchical over 2 nodes of 2 GPUs, S = 16 B, ports of 2 B/s, NICs of 1 B/s, 4 s forward and backward each.
  //   reduce-scatter  S/2 over every port                                     8 B   4 s
  //   between nodes   2 (N-1)/N x S/2 for each of two GPUs on one NIC        16 B  16 s
  //   all-gather      S/2 over every port                                     8 B   4 s
  const LabModel lab{{16, 4, 4}};
  const Cluster cluster = lab_cluster(2, 2, {.nic = 1.0, .port = 2.0});
  const Plan plan =
      compile(lab.model, lab.profile, cluster, all_reduced(lab.model, 4, CollectiveAlgorithm::Hierarchical));
  const Prediction prediction = replay(plan, cluster, {.fidelity = Fidelity::Fluid, .record = true});
  REQUIRE_THAT(prediction.step.value(), WithinRel(32.0, 1e-6));
  const auto path = critical_path(plan, cluster, prediction);
  const std::vector<std::pair<std::string, double>> expected{{"compute forward", 4},
                                                             {"compute backward", 4},
                                                             {"link port-out", 4},
                                                             {"link nic-out", 16},
                                                             {"link port-out", 4}};
  REQUIRE(path.size() == expected.size());
  for (std::size_t i = 0; i < path.size(); ++i) {
    REQUIRE(path[i].resource == expected[i].first);
    REQUIRE_THAT(path[i].length.value(), WithinRel(expected[i].second, 1e-6));
  }
}

TEST_CASE("packing a bucket is told as packing, and costs nothing where compute is free", "[engine][explain]") {
  // Two layers of 5 MB in one bucket, copied in and out: 4 x 10 MB at 1 GB/s = 40 ms. Launch 2 ms, 2 rounds of 1 ms and
  // of 5 MB at 100 MB/s: 104 ms. Forward 2 x 10, backward 2 x 20, update 5: 65 ms.
  Problem problem = problem_of(chain({{1000, 1250}, {1000, 1250}}), slow_cluster(2), "all-reduce", 2,
                               {Seconds{0.010}, Seconds{0.020}}, {{"algorithm", "ring"}});
  problem.cluster.devices["GPU"].memory_bandwidth = BytesPerSecond{1e9};
  problem.strategy.graph.fusion.copies = true;
  problem.plan = compile(problem.model, problem.profile, problem.cluster, problem.strategy);
  const Prediction prediction = recorded(problem);
  const Explanation e = explain(problem, prediction);
  require_complete(e, prediction);
  REQUIRE_THAT(e.step.value(), WithinRel(0.209, 1e-6));
  REQUIRE_THAT(time_of(e, kPacking), WithinRel(0.040, 1e-6));
  REQUIRE_THAT(time_of(e, kLatency), WithinRel(0.004, 1e-6));
  std::vector<WhatIf> answers;
  what_if(problem, prediction, [&](const WhatIf& answer) { answers.push_back(answer); });
  REQUIRE_THAT(free_step(answers, "compute"), WithinRel(0.104, 1e-5));
  REQUIRE_THAT(free_step(answers, kLatency), WithinRel(0.205, 1e-5));
}

TEST_CASE("waiting for a server is told as the work of the one before", "[engine][explain]") {
  // One thread; a (3 ms) and b (2 ms) are ready together; c (1 s) on the device follows b; the next step follows c.
  //   step = 0.003 + 0.002 + 1; the 3 ms belong to a but b, which is next on the path, could have used them: shared.
  const Cluster cluster = slow_cluster(1);
  const Place server{0, -1};
  Plan plan;
  plan.set_ranks({{0, 0}});
  plan.servers = {server};
  plan.queues = {{.name = "compute", .grouping = kEachRank}, {.name = "server", .grouping = kWholeJob}};
  const auto work = [&](double seconds, const std::string& label) {
    Op op;
    op.grouping = kWholeJob;
    op.queue = 1;
    op.body = HostWork{.action = HostAction::Apply, .at = {End::Kind::Server, server}, .duration = Seconds{seconds}};
    op.after = {{2, 1}};
    op.reason = {Phase::Update, -1, label};
    return op;
  };
  Op compute;
  compute.queue = 0;
  compute.body = Compute{.duration = Seconds{1.0}, .parts = {{-1, Phase::Forward, Seconds{1.0}}}, .samples = {}};
  compute.after = {{1, 0}};
  plan.ops = {work(3e-3, "a"), work(2e-3, "b"), compute};
  check(plan);

  const Prediction prediction = replay(plan, cluster, {.record = true});
  const auto path = critical_path(plan, cluster, prediction);
  REQUIRE(path.size() == 3);
  REQUIRE(path[0].what == "update a");
  REQUIRE(path[0].resource == "server CPU");
  REQUIRE(path[0].where == "node0:cpu0");
  REQUIRE_THAT(path[0].length.value(), WithinRel(3e-3, 1e-7));
  REQUIRE_THAT(path[0].shared.value(), WithinRel(3e-3, 1e-7));
  REQUIRE(path[1].what == "update b");
  REQUIRE_THAT(path[1].length.value(), WithinRel(2e-3, 1e-7));
  REQUIRE(path[1].shared.value() == 0.0);
  REQUIRE(path[2].resource == "compute forward");
  REQUIRE_THAT(path[2].length.value(), WithinRel(1.0, 1e-9));
  // The cold start is explained as well.
  REQUIRE(critical_path(plan, cluster, prediction, 0).size() == 3);
}

TEST_CASE("until a server begins with a push, or with what it is asked for, is dispatch", "[engine][explain]") {
  Cluster cluster = slow_cluster(2);
  cluster.groups.front().cpu.dispatch_latency = Seconds{0.1};
  const Problem problem =
      problem_of(chain({{1000, 2500}}), std::move(cluster), "tictac", 2, {Seconds{0.010}, Seconds{0.020}});
  const Prediction prediction = recorded(problem);
  const Explanation e = explain(problem, prediction);
  require_complete(e, prediction);
  REQUIRE_THAT(time_of(e, "server dispatch"), WithinRel(0.2, 1e-6));
}

TEST_CASE("the parts add up to the step whatever the strategy", "[engine][explain]") {
  const auto builder = GENERATE(as<std::string>{}, "all-reduce", "ddp", "horovod", "mg-wfbp", "ps", "ps-load-balancing",
                                "byteps", "p3", "bytescheduler", "tictac", "poseidon");
  CAPTURE(builder);
  const Model model = chain({{1000, 300}, {500, 700}, {2000, 400}, {100, 100}});
  Cluster cluster = slow_cluster(3, 2);
  cluster.links["pcie"].bandwidth = BytesPerSecond{2e8};
  cluster.groups.front().cpu.threads = 2;
  Problem problem = problem_of(model, cluster, builder, 6, {Seconds{0.010}, Seconds{0.020}});
  SECTION("as it comes") {}
  SECTION("every message") {
    problem.options.fidelity = Fidelity::Steps;
  }
  SECTION("collectives slow the devices") {
    problem.cluster.collective.interference = 0.25;
  }
  const Prediction prediction = recorded(problem);
  const Explanation e = explain(problem, prediction);
  REQUIRE_THAT(e.step.value(), WithinRel(prediction.steps.back().value(), 1e-9));
  require_complete(e, prediction);
  for (const LinkLoad& load : e.links) {
    REQUIRE(load.utilization <= 1.0 + 1e-6);
    REQUIRE(load.mean_utilization <= load.utilization * (1.0 + 1e-9));
  }
}

TEST_CASE("the last step is explained alike when the others are forgotten", "[engine][explain]") {
  const auto builder = GENERATE(as<std::string>{}, "ddp", "ps", "byteps", "p3");
  CAPTURE(builder);
  Problem problem = problem_of(chain({{1000, 300}, {500, 700}, {2000, 400}}), slow_cluster(3, 2), builder, 6,
                               {Seconds{0.010}, Seconds{0.020}});
  const Prediction whole = recorded(problem);
  problem.options.recorded_steps = 1;
  const Prediction last = recorded(problem);
  REQUIRE(last.step == whole.step);
  REQUIRE(last.spans.size() < whole.spans.size());
  REQUIRE(to_text(explain(problem, last)) == to_text(explain(problem, whole)));
}

TEST_CASE("a record that grows too large is dropped, and the prediction stays", "[engine][explain]") {
  Problem problem = two_ranks();
  problem.options.most_recorded = 10;
  const Prediction prediction = recorded(problem);
  REQUIRE(!prediction.recorded);
  REQUIRE(prediction.spans.empty());
  REQUIRE(prediction.step == replay(problem.plan, problem.cluster, {}).step);
  // 35 of 149 ms are compute.
  REQUIRE(limit_phrase(problem, prediction) == "77 % communication");
}

TEST_CASE("the parts of a step have names that people use", "[engine][explain]") {
  // As in the first test: 100 of 149 ms on the NICs, 35 computing, 14 whatever the size.
  const Problem problem = two_ranks();
  const Prediction prediction = recorded(problem);
  const Explanation e = explain(problem, prediction);
  const auto parts = step_parts(problem, prediction, e.path);
  REQUIRE(parts.size() == 3);
  REQUIRE(parts[0].name == "ring on ethernet");
  REQUIRE(parts[0].kind == PartKind::Communication);
  REQUIRE_THAT(parts[0].time.value(), WithinRel(0.100, 1e-6));
  REQUIRE(parts[1].name == "compute");
  REQUIRE_THAT(parts[1].time.value(), WithinRel(0.035, 1e-6));
  REQUIRE(parts[2].name == kLatency);
  REQUIRE(limit_phrase(problem, prediction) == "67 % ring on ethernet");
  // With the network free 40.1 ms remain (first test): 149 / 40.1 = 3.72.
  std::vector<WhatIf> answers;
  what_if(problem, prediction, [&](const WhatIf& answer) { answers.push_back(answer); });
  REQUIRE(verdict(problem, e, parts, answers) ==
          "Limited by ring on ethernet: 100.000 ms of the step's 149.000 ms (67 %). More\n"
          "bandwidth between nodes would help most: 40.100 ms at best, 3.72x as fast.\n");
}

TEST_CASE("a step that waits for a slow node says so", "[engine][explain]") {
  // As above; the second node computes twice as long: 70 ms, of which the first one waits for 35.
  Cluster cluster = slow_cluster(3);
  cluster.groups.push_back(cluster.groups.front());
  cluster.groups.front().count = 2;
  cluster.groups.back().count = 1;
  cluster.groups.back().compute_slowdown = 20.0;
  const Problem problem = problem_of(chain({{1000, 2500}}), cluster, "all-reduce", 3, {Seconds{0.010}, Seconds{0.020}},
                                     {{"algorithm", "ring"}});
  const Prediction prediction = recorded(problem);
  const Explanation e = explain(problem, prediction);
  const auto parts = step_parts(problem, prediction, e.path);
  // 20 x 35 ms, 19/20 of which the others do not compute.
  REQUIRE(parts.front().name == "waiting for the slowest rank");
  REQUIRE(parts.front().kind == PartKind::Waiting);
  REQUIRE_THAT(parts.front().time.value(), WithinRel(0.665, 1e-6));
  REQUIRE(slow_nodes(problem) == "node2");
  REQUIRE_THAT(verdict(problem, e, parts, {}, 1000), ContainsSubstring("The others wait 665.000 ms for node2"));
}

TEST_CASE("of two predictions the verdict says which is faster and why", "[engine][explain]") {
  // Four nodes of 100 MB/s and 10 MB of gradients. A server on node 0 sends and receives those of the three others:
  // 30 MB each way; in a ring every NIC sends and receives 2 x 3/4 x 10 = 15 MB.
  const auto problem_with = [](const char* builder) {
    return problem_of(chain({{1000, 2500}}), slow_cluster(4), builder, 4, {Seconds{0.010}, Seconds{0.020}},
                      std::string(builder) == "ps" ? std::map<std::string, std::string>{}
                                                   : std::map<std::string, std::string>{{"algorithm", "ring"}});
  };
  const Problem ps = problem_with("ps");
  const Problem ring = problem_with("all-reduce");
  const Prediction ps_run = recorded(ps);
  const Prediction ring_run = recorded(ring);
  const Explanation ps_text = explain(ps, ps_run);
  const Explanation ring_text = explain(ring, ring_run);
  const auto ps_parts = step_parts(ps, ps_run, ps_text.path);
  const auto ring_parts = step_parts(ring, ring_run, ring_text.path);
  REQUIRE(ps_parts.front().name == "ethernet of the servers");
  const NicLoad load = busiest_nic(ps, ps_text).value();
  REQUIRE(load.node == "node0");
  REQUIRE(load.alone);
  REQUIRE_THAT(load.bytes, WithinRel(30e6, 1e-6));
  REQUIRE_THAT(busiest_nic(ring, ring_text)->bytes, WithinRel(15e6, 1e-6));
  const ComparedSide a{"ps", ps, ps_run, ps_text, ps_parts};
  const ComparedSide b{"ring", ring, ring_run, ring_text, ring_parts};
  const std::string text = comparison_verdict(a, b);
  REQUIRE_THAT(text, Catch::Matchers::StartsWith("ring is "));
  REQUIRE_THAT(text, ContainsSubstring("; in a step ps moves 28.6 MiB through one NIC (node0) of 0.8 Gbit/s, ring "
                                       "14.3 MiB through each NIC of 0.8 Gbit/s"));
  REQUIRE(comparison_verdict(b, a) == text);
  REQUIRE(comparison_verdict(a, {"the same", ps, ps_run, ps_text, ps_parts}) == "ps and the same are equally fast.");
}

TEST_CASE("recording changes nothing", "[engine][explain]") {
  const Problem problem = two_ranks();
  const Prediction without = replay(problem.plan, problem.cluster, problem.options);
  const Prediction with = recorded(problem);
  REQUIRE(without.step == with.step);
  REQUIRE(without.spans.empty());
  REQUIRE(without.traffic.flows.empty());
  REQUIRE(!with.traffic.flows.empty());
}

}  // namespace
}  // namespace simsync
