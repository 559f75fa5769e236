// Features of strategies and rankers that learn from trials.
#include "strategies/search/ranker.hpp"

#include <cmath>
#include <numeric>

#include "sim/plan/step_estimate.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/known_orders.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

double feature(const std::vector<double>& values, const FeatureSchema& schema, const std::string& name) {
  const auto found = std::find(schema.names.begin(), schema.names.end(), name);
  REQUIRE(found != schema.names.end());
  return values.at(static_cast<std::size_t>(found - schema.names.begin()));
}

}  // namespace

TEST_CASE("AutoSync's features by hand", "[search]") {
  // Three nodes of two GPUs, 1 GB/s. 1 GB on the server of node 0: from two nodes, and back to four GPUs: 6 s and four
  // receivers; 2 GB in group 0: 2 s.
  const LabModel lab{{.bytes = 1e9, .forward = 1.0, .backward = 1.0}, {.bytes = 2e9, .forward = 1.0, .backward = 1.0}};
  const Cluster cluster = lab_cluster(3, 2);
  const SearchTarget target{lab.model, cluster, 6};
  Strategy strategy = all_reduced(lab.model, 6);
  std::get<AllReduceSynchronizer>(strategy.variables[1].shards.front().synchronizer).group = 0;
  strategy.variables[0].shards.front().synchronizer = PsSynchronizer{.server = {0, -1}};
  const std::vector<double> values = autosync_features(strategy, target, 1);
  const auto at = [&](const char* name) { return feature(values, autosync_schema(), name); };
  CHECK_THAT(at("server_transmission_max"), WithinRel(6.0, 1e-12));
  CHECK_THAT(at("server_transmission_sum"), WithinRel(6.0, 1e-12));
  CHECK(at("server_overhead_sum") == 4.0);
  CHECK(at("server_latency_max") == 2.0);
  CHECK_THAT(at("group_transmission_sum"), WithinRel(2.0, 1e-12));
  CHECK(at("group_overhead_max") == 1.0);
  // With copies on hosts a variable is received once by each of two nodes.
  std::get<PsSynchronizer>(strategy.variables[0].shards.front().synchronizer).local_replication = true;
  CHECK_THAT(autosync_features(strategy, target, 1).front(), WithinRel(4.0, 1e-12));
}

TEST_CASE("features do not change when hosts and groups are renamed", "[search]") {
  const LabLayer layer{.bytes = 4e6, .forward = 1.0, .backward = 1.0};
  const LabModel lab{layer, layer, layer, layer, layer, layer};
  const Cluster cluster = lab_cluster(4, 2);
  const SearchTarget target{lab.model, cluster, 8};
  const StrategySampler sampler(make_space({{"schedules", "wait-free,read-at-start"}}, cluster), target);
  const StepEstimator estimator(lab.model, lab.profile, cluster, 8);
  RandomDecisions decisions(2);
  int renamed_servers = 0;
  for (int i = 0; i < 20; ++i) {
    const Strategy strategy = sampler.draw(decisions);
    Strategy renamed = strategy;
    for (VariableStrategy& entry : renamed.variables) {
      for (Shard& shard : entry.shards) {
        if (auto* ps = std::get_if<PsSynchronizer>(&shard.synchronizer)) {
          ps->server.node = 3 - ps->server.node;
          ++renamed_servers;
        }
        if (auto* reduced = std::get_if<AllReduceSynchronizer>(&shard.synchronizer); reduced && reduced->group >= 0)
          reduced->group = 40 - reduced->group;
      }
    }
    const Evaluation estimate = estimator.estimate(strategy);
    const auto before = strategy_features(strategy, target, 1, estimate, estimate.step);
    const auto after = strategy_features(renamed, target, 1, estimate, estimate.step);
    REQUIRE(before.size() == strategy_schema().names.size());
    for (std::size_t k = 0; k < before.size(); ++k) {
      CAPTURE(strategy_schema().names[k]);
      CHECK_THAT(after[k], WithinRel(before[k], 1e-12));
    }
  }
  CHECK(renamed_servers > 0);
}

TEST_CASE("a linear ranker finds the order that a sum of features has", "[search]") {
  Random random(4);
  const auto draw = [&](int domain) {
    Example out{.features = {random.unit(), 1000.0 * random.unit(), 7.0}, .domain = domain};
    // Seconds of two domains do not compare: the second is a thousand times as slow.
    out.step = (domain == 0 ? 1.0 : 1000.0) * std::exp(2.0 * out.features[0] - 0.001 * out.features[1]);
    return out;
  };
  std::vector<Example> examples;
  std::vector<Example> others;
  for (int i = 0; i < 60; ++i) examples.push_back(draw(i % 2));
  for (int i = 0; i < 100; ++i) others.push_back(draw(i % 2));
  const auto ranker = linear_ranker();
  ranker->fit(examples);
  std::vector<double> scores;
  for (const Example& example : others) scores.push_back(ranker->score(example.features));
  CHECK(pairwise_accuracy(others, scores) > 0.98);
  for (double& score : scores) score = -score;
  CHECK(pairwise_accuracy(others, scores) < 0.02);
}

TEST_CASE("a linear ranker does not go on beyond the features that it has seen", "[search]") {
  const auto known = drawn(40, 2, sum_of_two, 1);
  const auto fitted = linear_ranker({.prior = 1, .penalties = {1e-3}});
  fitted->fit(known);
  double most = 0.0;
  for (const Example& example : known) most = std::max(most, example.features[0]);
  CHECK(fitted->score({most, 0.5}) > fitted->score({0.5, 0.5}));
  CHECK(fitted->score({1000.0, 0.5}) == fitted->score({most, 0.5}));
  // The simulated step, its prior, ranks by itself whatever it is.
  CHECK(fitted->score({0.5, 1000.0}) != fitted->score({0.5, 1.0}));
}

TEST_CASE("of equally fast strategies the one with more shards ranks as slower", "[search]") {
  std::vector<Example> examples;
  for (int i = 0; i < 20; ++i)
    examples.push_back({.features = {static_cast<double>(i)}, .step = 1.0 + 1e-5 * i, .shards = 40.0 - i});
  const auto ranker = linear_ranker();
  ranker->fit(examples);
  CHECK(ranker->score({19.0}) < ranker->score({0.0}));
}

TEST_CASE("pairwise accuracy leaves near ties and other domains out", "[search]") {
  const std::vector<Example> examples{{{}, 1.0, 0, 0.0}, {{}, 1.001, 0, 0.0}, {{}, 2.0, 0, 0.0}, {{}, 0.5, 1, 0.0}};
  // Pairs: the first with the third (right), the second with the third (wrong).
  CHECK(pairwise_accuracy(examples, {1.0, 3.0, 2.0, 9.0}) == 0.5);
  CHECK(pairwise_accuracy(examples, {1.0, 1.0, 1.0, 1.0}) == 0.5);
  CHECK(pairwise_accuracy({examples.front()}, {1.0}) == 1.0);
  CHECK(has_pairs(examples));
  CHECK_FALSE(has_pairs({examples[0], examples[1], examples[3]}));
}
