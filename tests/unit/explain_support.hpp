// Problems small enough to be followed by hand, with the profile given.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "sim/engine/predict.hpp"
#include "sim/plan/compile.hpp"
#include "tests/support/small_problems.hpp"

namespace simsync::test {

/// A problem whose layers all take the same time.
inline Problem problem_of(Model model, Cluster cluster, const std::string& builder, int workers, LayerTime layer,
                          std::map<std::string, std::string> options = {}) {
  Strategy strategy = build_strategy(builder, request_for(model, cluster, workers, std::move(options)));
  Profile profile;
  profile.model = model.name();
  profile.precision = "fp32";
  profile.batch = 32;
  profile.layers.assign(model.layer_count(), layer);
  profile.update = Seconds{0.005};
  Plan plan = compile(model, profile, cluster, strategy);
  return {std::move(model), std::move(cluster), std::move(strategy), std::move(profile), std::move(plan), {}};
}

inline Prediction recorded(const Problem& problem) {
  ReplayOptions options = problem.options;
  options.record = true;
  return replay(problem.plan, problem.cluster, options);
}

/// 100 MB/s between nodes, 1 ms latency, 2 ms to launch a collective; PCIe a hundred times as fast.
inline Cluster slow_cluster(int nodes, int gpus = 1) {
  Cluster cluster = make_cluster(nodes, gpus);
  LinkClass& link = cluster.links["ethernet"];
  link.bandwidth = BytesPerSecond{1e8};
  link.latency = Seconds{1e-3};
  LinkClass pcie;
  pcie.name = "pcie";
  pcie.bandwidth = BytesPerSecond{1e10};
  cluster.links["pcie"] = pcie;
  cluster.groups.front().fabric.pcie_link = "pcie";
  cluster.collective.launch = Seconds{2e-3};
  return cluster;
}

/// Two ranks, one layer of 10 MB, 10 ms forward and 20 ms backward, 5 ms to update: see explain_test.cpp.
inline Problem two_ranks() {
  Cluster cluster = slow_cluster(2);
  cluster.links["ethernet"].half_size = {500'000};
  return problem_of(chain({{1000, 2500}}), std::move(cluster), "all-reduce", 2, {Seconds{0.010}, Seconds{0.020}},
                    {{"algorithm", "ring"}});
}

}  // namespace simsync::test
