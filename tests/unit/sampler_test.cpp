// The search space and what is drawn from it.
#include "strategies/search/sampler.hpp"

#include <cmath>
#include <set>

#include "base/error.hpp"
#include "sim/engine/evaluators.hpp"
#include "sim/plan/compile.hpp"
#include "strategies/reader.hpp"
#include "strategies/search/deal.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

Problem problem_of(const char* model, const char* cluster, int workers) {
  return prepare({.model = model,
                  .cluster = cluster,
                  .strategy = "ddp",
                  .workers = workers,
                  .batch = {},
                  .settings = {{"memory", "ignore"}}});
}

/// Every strategy of a small space, as text.
std::vector<std::string> all_of(const StrategySampler& sampler, const Model& model) {
  std::vector<std::string> out;
  AllDecisions decisions;
  do out.push_back(to_yaml(sampler.draw(decisions), model));
  while (decisions.next());
  return out;
}

}  // namespace

TEST_CASE("whatever is drawn or changed passes the checks, compiles and is estimated", "[search]") {
  struct Case {
    const char* model;
    const char* cluster;
    int workers;
  };
  const Case at = GENERATE(Case{"resnet50", "g4dn.12xlarge", 16}, Case{"ncf", "titanx-40gbe", 5},
                           Case{"gpt2", "dgx-a100", 24}, Case{"vgg16", "g4dn.12xlarge", 3});
  const Problem problem = problem_of(at.model, at.cluster, at.workers);
  const SearchSpace space = make_space({{"compressors", "none,fp16,powersgd"}}, problem.cluster);
  const StrategySampler sampler(space, {problem.model, problem.cluster, at.workers});
  const auto estimates = estimating_evaluator(problem);
  RandomDecisions decisions(7);
  std::set<Schedule> seen;
  Strategy last = problem.strategy;
  for (int i = 0; i < 60; ++i) {
    CAPTURE(at.model, i);
    Strategy strategy = i % 3 == 0 ? sampler.draw(decisions) : sampler.mutated(last, decisions);
    if (i % 5 == 4) strategy = sampler.crossed(strategy, sampler.draw(decisions), decisions);
    REQUIRE_NOTHROW(check(strategy, problem.model, problem.cluster));
    REQUIRE_NOTHROW(compile(problem.model, problem.profile, problem.cluster, strategy));
    REQUIRE(estimates->evaluate(strategy).step > Seconds{0.0});
    const BuildRequest request{
        .model = problem.model, .cluster = problem.cluster, .workers = at.workers, .batch = 1, .options = {}};
    REQUIRE(parse_strategy(to_yaml(strategy, problem.model), "drawn.yaml", request) == strategy);
    seen.insert(schedule_of(strategy));
    last = strategy;
  }
  CHECK(seen.size() == 4);
}

TEST_CASE("the same seed draws the same strategies, another one others", "[search]") {
  const Problem problem = problem_of("resnet50", "g4dn.12xlarge", 16);
  const StrategySampler sampler(make_space({}, problem.cluster), {problem.model, problem.cluster, 16});
  const auto third = [&](std::uint64_t seed) {
    RandomDecisions decisions(seed);
    (void)sampler.draw(decisions);
    return sampler.mutated(sampler.draw(decisions), decisions);
  };
  CHECK(third(1) == third(1));
  CHECK_FALSE(third(1) == third(2));
}

TEST_CASE("dimensions restrict what is drawn, changed and crossed", "[search]") {
  const Problem problem = problem_of("vgg16", "g4dn.12xlarge", 16);
  const auto space = make_space({{"schedules", "read-at-start"},
                                 {"synchronizers", "parameter-server"},
                                 {"partition_above", "1MB"},
                                 {"shards", "4"},
                                 {"any_axis", "false"},
                                 {"servers", "2"},
                                 {"local_replication", "true"}},
                                problem.cluster);
  const StrategySampler sampler(space, {problem.model, problem.cluster, 16});
  RandomDecisions decisions(3);
  std::size_t most_shards = 0;
  Strategy strategy;
  for (int i = 0; i < 100; ++i) {
    strategy = i % 3 == 0 ? sampler.draw(decisions) : sampler.mutated(strategy, decisions);
    if (i % 5 == 4) strategy = sampler.crossed(strategy, sampler.draw(decisions), decisions);
    std::set<Place> servers;
    CHECK(strategy.graph.pull_at_step_start);
    for (const VariableStrategy& entry : strategy.variables) {
      if (problem.model.variable(entry.variable).bytes() < Bytes{1'000'000}) CHECK(entry.shards.size() == 1);
      if (entry.shards.size() > 1) CHECK(entry.partition_axis == 0);
      most_shards = std::max(most_shards, entry.shards.size());
      for (const Shard& shard : entry.shards) {
        const auto& ps = std::get<PsSynchronizer>(shard.synchronizer);
        CHECK(ps.local_replication);
        servers.insert(ps.server);
      }
    }
    CHECK(servers.size() <= 2);
  }
  CHECK(most_shards == 4);
  CHECK_THROWS_AS(make_space({{"schedule", "priority"}}, problem.cluster), InputError);
  CHECK_THROWS_AS(make_space({{"shards", "0"}}, problem.cluster), InputError);
  CHECK_THROWS_AS(make_space({{"fusions", "groups,bucket"}}, problem.cluster), InputError);
  const auto factors = make_space({{"synchronizers", "sufficient-factors"}}, problem.cluster);
  CHECK_THROWS_AS(StrategySampler(factors, {problem.model, problem.cluster, 16}), InputError);
}

TEST_CASE("sizes and times of the graph level are dimensions, too", "[search]") {
  const Problem problem = problem_of("vgg16", "g4dn.12xlarge", 16);
  const auto draw_fifty = [&](const std::map<std::string, std::string>& given, const auto& look) {
    const StrategySampler sampler(make_space(given, problem.cluster), {problem.model, problem.cluster, 16});
    RandomDecisions decisions(3);
    for (int i = 0; i < 50; ++i) look(sampler.draw(decisions).graph);
  };
  draw_fifty({{"schedules", "priority"}, {"pieces", "3MB"}, {"credits", "7MB"}}, [](const GraphStrategy& graph) {
    CHECK(graph.scheduling.partition == Bytes{3'000'000});
    CHECK(graph.scheduling.credit == Bytes{7'000'000});
  });
  draw_fifty({{"schedules", "wait-free"},
              {"fusions", "buckets,cycle"},
              {"buckets", "7MiB"},
              {"thresholds", "3MiB"},
              {"cycles", "2ms"}},
             [](const GraphStrategy& graph) {
               const bool is_cycle = graph.fusion.kind == FusionKind::Cycle;
               if (!is_cycle) CHECK(graph.fusion.limit == Bytes{7 << 20});
               if (is_cycle) CHECK(graph.fusion.threshold == Bytes{3 << 20});
               if (is_cycle) CHECK(graph.fusion.cycle == Seconds{2e-3});
             });
  // Four GPUs of a node are a shard group, or none are; by default half of the draws.
  draw_fifty({{"schedules", "sharded"}, {"units", "9MB"}, {"shard_groups", "true"}}, [](const GraphStrategy& graph) {
    CHECK(graph.sharding.min_unit == Bytes{9'000'000});
    CHECK(graph.sharding.group == 4);
  });
  draw_fifty({{"schedules", "sharded"}, {"shard_groups", "false"}},
             [](const GraphStrategy& graph) { CHECK(graph.sharding.group == 0); });
  CHECK_THROWS_AS(make_space({{"pieces", "3"}}, problem.cluster), InputError);
  CHECK_THROWS_AS(make_space({{"cycles", "1ms,5"}}, problem.cluster), InputError);
}

TEST_CASE("all decisions make every strategy of a small space once", "[search]") {
  const LabModel lab{{.bytes = 8, .forward = 1.0, .backward = 1.0}, {.bytes = 16, .forward = 1.0, .backward = 1.0}};
  const Cluster cluster = lab_cluster(2, 1);
  const auto count = [&](const std::map<std::string, std::string>& given) {
    const StrategySampler sampler(make_space(given, cluster), {lab.model, cluster, 2});
    const std::vector<std::string> all = all_of(sampler, lab.model);
    CHECK(std::set<std::string>(all.begin(), all.end()).size() == all.size());
    return all.size();
  };
  std::map<std::string, std::string> given{{"schedules", "wait-free"},    {"synchronizers", "parameter-server"},
                                           {"partition_above", "1MB"},    {"fusions", "groups"},
                                           {"server_rules", "random"},    {"group_rules", "random"},
                                           {"algorithms", "ring"},        {"groups", "2"},
                                           {"local_replication", "false"}};
  // Each of two variables on each of two servers.
  CHECK(count(given) == 4);
  // On a server (2) or in a collective: both served 4; one served, the other in the only group: 2 x 2; both in
  // collectives, apart or together: 2.
  given["synchronizers"] = "parameter-server,all-reduce";
  CHECK(count(given) == 10);
  // Cut into two halves, too (4 bytes an element: 2 and 4 elements): (2 + 4) for each.
  given["synchronizers"] = "parameter-server";
  given["partition_above"] = "1B";
  given["shards"] = "2";
  CHECK(count(given) == 36);
}

TEST_CASE("the size of a space is counted", "[search]") {
  const LabModel lab{{.bytes = 8, .forward = 1.0, .backward = 1.0}, {.bytes = 16, .forward = 1.0, .backward = 1.0}};
  const Cluster cluster = lab_cluster(2, 1);
  const auto space = make_space({{"synchronizers", "parameter-server"},
                                 {"partition_above", "1B"},
                                 {"shards", "2"},
                                 {"local_replication", "false"}},
                                cluster);
  CHECK_THAT(log10_size(space, lab.model, cluster, 2), WithinRel(std::log10(36.0), 1e-12));
}

TEST_CASE("rules deal shards to servers and groups", "[search]") {
  RandomDecisions decisions(1);
  const std::vector<double> bytes{1.0, 8.0, 4.0, 4.0, 1.0};
  // 8 to the first, 4 and 4 to the second, then 1 to each.
  CHECK(deal_to_servers(ServerRule::LeastLoaded, bytes, {1.0, 1.0}, decisions) ==
        std::vector<std::size_t>{0, 0, 1, 1, 1});
  CHECK(deal_to_groups(GroupRule::Chunks, bytes, 2, decisions) == std::vector<int>{0, 0, 0, 1, 1});
  // Nine bytes a group: 1 and 8 fill the first.
  CHECK(deal_to_groups(GroupRule::Ordered, bytes, 2, decisions) == std::vector<int>{0, 0, 1, 1, 1});
  // Shares of bandwidth: of 4,000 bytes in equal shards a server with three times the bandwidth gets about 3,000.
  const std::vector<double> equal(4000, 1.0);
  const auto dealt = deal_to_servers(ServerRule::Proportional, equal, {3.0, 1.0}, decisions);
  const auto first = std::count(dealt.begin(), dealt.end(), std::size_t{0});
  CHECK(std::abs(static_cast<double>(first) - 3000.0) < 30.0);
}
