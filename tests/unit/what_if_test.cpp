// What the critical path says and what the same problem with one thing free says must be one story.
#include "sim/engine/what_if.hpp"

#include <map>

#include "sim/engine/explain.hpp"
#include "sim/engine/verdict.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab_run.hpp"
#include "tests/unit/explain_support.hpp"

namespace simsync {
namespace {

using namespace test;

/// Which answer of what_if makes a piece of the path free.
std::string freed_by(const std::string& resource) {
  static const std::map<std::string, std::string> kNames{{kLatency, kLatency},
                                                         {kPacking, "compute"},
                                                         {"host CPU", "host CPUs"},
                                                         {"server CPU", "host CPUs"},
                                                         {"server dispatch", "host CPUs"},
                                                         {"link nic-in", "bandwidth between nodes"},
                                                         {"link nic-out", "bandwidth between nodes"}};
  if (resource.starts_with("compute")) return "compute";
  if (resource.starts_with("stream cap")) return kFreeConnections;
  const auto found = kNames.find(resource);
  return found != kNames.end() ? found->second : "bandwidth inside nodes";
}

struct Account {
  double booked = 0.0;  ///< s of the path that become free
  double loose = 0.0;   ///< s of the rest of the path that may become shorter as well
};

Account account_of(const Explanation& e, const std::string& what) {
  Account out;
  for (const PathPiece& piece : e.path) {
    const bool freed = freed_by(piece.resource) == what;
    const Seconds loose = piece.where == "rounds" ? piece.length : piece.shared;
    (freed ? out.booked : out.loose) += (freed ? piece.length : loose).value();
  }
  return out;
}

/// Six workers on three nodes with something of everything; `limit` makes one thing several times dearer than the
/// others: of two links that are equally slow, a faster one alone would save nothing.
Problem problem_with(const std::string& builder, const std::string& limit) {
  Cluster cluster = slow_cluster(3, 2);
  cluster.links["ethernet"].half_size = {20'000};
  cluster.links["pcie"].bandwidth = BytesPerSecond{1e9};
  cluster.groups.front().cpu = {.threads = 2,
                                .per_tensor = Seconds{1e-4},
                                .dispatch_latency = Seconds{2e-4},
                                .update_rate = BytesPerSecond{4e9},
                                .sum_rate = BytesPerSecond{8e9}};
  if (limit == "streams") cluster.links["ethernet"].per_flow_cap = BytesPerSecond{2e7};
  if (limit == "latency") cluster.links["ethernet"].latency = Seconds{0.100};
  if (limit == "hosts") cluster.groups.front().cpu.update_rate = BytesPerSecond{2e7};
  if (limit == "pcie") cluster.links["pcie"].bandwidth = BytesPerSecond{1e7};
  const LayerTime layer =
      limit == "compute" ? LayerTime{Seconds{0.2}, Seconds{0.4}} : LayerTime{Seconds{0.010}, Seconds{0.020}};
  return problem_of(chain({{1000, 300}, {500, 700}, {2000, 400}, {100, 100}}), cluster, builder, 6, layer);
}

TEST_CASE("a turn on a connection is told as the transfer that had it", "[engine][explain]") {
  // One worker, one server, one stream of 1 B/s on a NIC of 2 B/s. Layers 0 and 1: 8 and 12 B, 4 s each way.
  //   f0, f1 0..8. b1 8..12, b0 12..16. push 1 12..24; push 0 is ready at 16, has its turn 24..32.
  //   pull 1 24..36; pull 0 is ready at 32, has its turn 36..44. The next step begins at 44.
  // On the path: f0 f1 b1, push 1, pull 1, pull 0. Pull 0 could have used the last 4 s of pull 1.
  const LabModel lab{{8, 4, 4}, {12, 4, 4}};
  Cluster cluster = lab_cluster(1, 1, {.nic = 2.0, .port = 1.0}, 1);
  cluster.links["nic"].per_flow_cap = BytesPerSecond{1.0};
  const Plan plan = compile(lab.model, lab.profile, cluster, on_server(lab.model, 1, host(1)));
  const Prediction prediction = replay(plan, cluster, {.record = true});
  REQUIRE_THAT(prediction.step.value(), WithinRel(44.0, 1e-6));
  std::vector<PathPiece> moves;
  for (const PathPiece& piece : critical_path(plan, cluster, prediction))
    if (piece.resource.starts_with("stream cap")) moves.push_back(piece);
  REQUIRE(moves.size() == 3);
  for (const PathPiece& piece : moves) CHECK(piece.resource == "stream cap on connection");
  CHECK_THAT((moves[0].length + moves[1].length + moves[2].length).value(), WithinRel(44.0 - 12.0, 1e-6));
  CHECK(moves[0].what.starts_with("push"));
  CHECK(moves[1].what.starts_with("pull"));
  CHECK(moves[2].what.starts_with("pull"));
  CHECK_THAT(moves[0].length.value(), WithinRel(12.0, 1e-6));
  CHECK_THAT(moves[1].length.value(), WithinRel(12.0, 1e-6));
  CHECK_THAT(moves[2].length.value(), WithinRel(8.0, 1e-6));
  CHECK_THAT(moves[1].shared.value(), WithinRel(4.0, 1e-6));
  CHECK_THAT(moves[2].shared.value(), WithinAbs(0.0, 1e-6));
}

TEST_CASE("a replay gives up beyond its budget of work, and leaves no trace", "[engine][explain]") {
  Problem problem = problem_with("ps", "network");
  const Prediction whole = replay(problem.plan, problem.cluster, problem.options);
  REQUIRE(whole.finished);
  REQUIRE(whole.work > whole.flows);
  problem.options.most_work = whole.work / 2;
  const Prediction half = replay(problem.plan, problem.cluster, problem.options);
  REQUIRE(!half.finished);
  REQUIRE(half.flows < whole.flows);
  problem.options.most_work = whole.work;
  const Prediction again = replay(problem.plan, problem.cluster, problem.options);
  REQUIRE(again.finished);
  REQUIRE(again.work == whole.work);
  REQUIRE_THAT(again.step.value(), WithinRel(whole.step.value(), 1e-9));
  // A what-if may take half as much again as the prediction, and never less than some seconds' worth.
  REQUIRE(what_if_budget(whole) > whole.work);
  Prediction large = whole;
  large.work = 3 * what_if_budget(whole);
  REQUIRE(what_if_budget(large) == large.work + large.work / 2);
  REQUIRE_THAT(to_text(WhatIf{"compute", std::nullopt}, whole.step), ContainsSubstring("not simulated"));
}

TEST_CASE("where the cap of a connection limits, bandwidth is not the advice", "[engine][explain]") {
  // Two nodes of 100 MB/s, connections of 20 MB/s, one layer of 10 MB in a ring: 2 rounds of 5 MB.
  //   as it is: launch 2 ms + 2 x 1 ms + 10 MB / 20 MB/s = 504 ms, forward, backward and update 35 ms: 539 ms
  //   links of unlimited rate: the cap stays, 539 ms; a faster link of the file does the same
  //   connections without a cap: 10 MB / 100 MB/s: 4 + 100 + 35 = 139 ms
  //   both: PCIe moves 10 MB in 1 ms, 4 + 1 + 35 = 40 ms
  constexpr std::size_t kOneLine = 1000;
  Cluster cluster = slow_cluster(2);
  cluster.links["ethernet"].per_flow_cap = BytesPerSecond{2e7};
  const auto ring = [](Cluster c) {
    return problem_of(chain({{1000, 2500}}), std::move(c), "all-reduce", 2, {Seconds{0.010}, Seconds{0.020}},
                      {{"algorithm", "ring"}});
  };
  const Problem problem = ring(cluster);
  const Prediction prediction = recorded(problem);
  REQUIRE_THAT(prediction.step.value(), WithinRel(0.539, 1e-5));
  std::map<std::string, double> steps;
  std::vector<WhatIf> answers;
  what_if(problem, prediction, [&](const WhatIf& answer) {
    answers.push_back(answer);
    steps[answer.what] = answer.step->value();
  });
  REQUIRE(answers.size() == what_if_count(problem));
  CHECK_THAT(steps.at(kFreeLinks), WithinRel(0.539, 1e-5));
  CHECK_THAT(steps.at(kFreeConnections), WithinRel(0.139, 1e-5));
  CHECK_THAT(steps.at(kFreeNetwork), WithinRel(0.040, 1e-3));

  // The advice, taken: the file's own numbers changed.
  Cluster wide = cluster;
  wide.links["ethernet"].bandwidth *= 8.0;
  CHECK_THAT(recorded(ring(wide)).step.value(), WithinRel(0.539, 1e-5));
  Cluster fast = cluster;
  fast.links["ethernet"].per_flow_cap = BytesPerSecond{1e9};
  CHECK_THAT(recorded(ring(fast)).step.value(), WithinRel(0.139, 1e-5));

  const Explanation e = explain(problem, prediction);
  const std::string text = verdict(problem, e, step_parts(problem, prediction, e.path), answers, kOneLine);
  CHECK_THAT(text, ContainsSubstring("Limited by ring, stream cap on ethernet: 500.000 ms"));
  CHECK_THAT(text, ContainsSubstring("A higher rate per connection, or more connections, would help most as a single "
                                     "change: 139.000 ms at best, 3.88x as fast."));
  CHECK_THAT(text,
             ContainsSubstring("More bandwidth between nodes and a higher rate per connection together: 40.000 ms"));

  // Of 20 MB/s both: neither alone changes anything.
  Cluster even = cluster;
  even.links["ethernet"].bandwidth = BytesPerSecond{2e7};
  const Problem narrow = ring(even);
  const Prediction slow = recorded(narrow);
  answers.clear();
  what_if(narrow, slow, [&](const WhatIf& answer) { answers.push_back(answer); });
  const Explanation why = explain(narrow, slow);
  CHECK_THAT(
      verdict(narrow, why, step_parts(narrow, slow, why.path), answers, kOneLine),
      ContainsSubstring("Faster compute would help most as a single change: 504.000 ms at best, 1.07x as fast. More "
                        "bandwidth between nodes and a higher rate per connection together: 40.000 ms"));
}

TEST_CASE("a comparison finds the same limit under the names of two strategies", "[engine][explain]") {
  // Both wait for connections of 20 MB/s; a server alone sends and receives for all.
  Cluster cluster = slow_cluster(3);
  cluster.links["ethernet"].per_flow_cap = BytesPerSecond{2e7};
  const auto side = [&](const char* builder, std::map<std::string, std::string> options) {
    return problem_of(chain({{1000, 2500}, {1000, 2500}}), cluster, builder, 3, {Seconds{0.010}, Seconds{0.020}},
                      std::move(options));
  };
  const Problem ps = side("ps", {});
  const Problem ring = side("all-reduce", {{"algorithm", "ring"}});
  const Prediction ps_run = recorded(ps);
  const Prediction ring_run = recorded(ring);
  const Explanation ps_why = explain(ps, ps_run);
  const Explanation ring_why = explain(ring, ring_run);
  const auto ps_parts = step_parts(ps, ps_run, ps_why.path);
  const auto ring_parts = step_parts(ring, ring_run, ring_why.path);
  REQUIRE(ps_parts.front().name == "stream cap on ethernet");
  REQUIRE(ring_parts.front().name == "ring, stream cap on ethernet");
  REQUIRE(ps_parts.front().limit == ring_parts.front().limit);
  const std::string text =
      comparison_verdict({"ps", ps, ps_run, ps_why, ps_parts}, {"ring", ring, ring_run, ring_why, ring_parts});
  CHECK_THAT(text, !ContainsSubstring("nothing"));
  CHECK_THAT(text, ContainsSubstring("on stream cap on ethernet"));
  CHECK_THAT(text, ContainsSubstring("on ring, stream cap on ethernet"));
}

TEST_CASE("what a free resource saves is on the critical path", "[engine][explain]") {
  // Make one resource free. The ops of the critical path still have to run one after another, and a piece that neither
  // is on that resource nor was stretched by others takes as long as before. So, with T the step,
  //   T_free >= T - (pieces on the resource) - (what others took part in, on the rest of the path)
  // up to the 0.1 % within which two steps count as equal. The rounds of a collective are loose too: between them also
  // lie the messages of hops that are not its busiest, on whatever link. And a resource with a tenth of the path is no
  // bystander: without it the step is shorter, by a quarter of its share at least (another chain may be nearly as
  // long).
  const auto builder = GENERATE(as<std::string>{}, "all-reduce", "ps", "partitioned-ps", "byteps");
  const auto limit = GENERATE(as<std::string>{}, "network", "streams", "latency", "hosts", "pcie", "compute");
  CAPTURE(builder, limit);
  const Problem problem = problem_with(builder, limit);
  const Prediction prediction = recorded(problem);
  REQUIRE(prediction.steady);
  const Explanation e = explain(problem, prediction);
  const double step = e.step.value();
  double booked = 0.0;
  what_if(problem, prediction, [&](const WhatIf& answer) {
    if (answer.what == kFreeNetwork) return;  // frees what two others do
    const Account account = account_of(e, answer.what);
    CAPTURE(answer.what, step, account.booked, account.loose);
    REQUIRE(answer.step);
    const double saved = step - answer.step->value();
    CHECK(saved <= account.booked + account.loose + 1e-3 * step);
    if (account.booked > 0.1 * step) CHECK(saved > 0.25 * account.booked);
    booked += account.booked;
  });
  REQUIRE_THAT(booked, WithinRel(step, 1e-9));  // every piece of the path has an answer of its own
}

}  // namespace
}  // namespace simsync
