// A small model and loopback addresses for tests with real processes.
#pragma once
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "hw/run/launch.hpp"
#include "sim/plan/compile.hpp"
#include "strategies/builders.hpp"
#include "tests/support/lab.hpp"
#include "tests/support/small_problems.hpp"

namespace simsync::test {

/// Three layers of 1 ms each way, with sizes that no piece length divides.
inline LabModel small_model() {
  return {{40'004, 1e-3, 1e-3}, {4, 1e-3, 1e-3}, {3'000'000, 1e-3, 1e-3}};
}

inline Plan small_plan(const std::string& builder, int workers, std::map<std::string, std::string> options = {}) {
  const auto lab = small_model();
  Cluster cluster = lab_cluster(workers, 1, {}, 2);
  cluster.collective.algorithm = "ring";  // Gloo's
  const Strategy strategy = build_strategy(builder, request_for(lab.model, cluster, workers, std::move(options)));
  return compile(lab.model, lab.profile, cluster, strategy);
}

/// Spoils a plan: work on servers of fewer than `below` bytes that should be `action` is `other`.
inline void replace(Plan& plan, HostAction action, HostAction other,
                    double below = std::numeric_limits<double>::infinity()) {
  for (Op& op : plan.ops) {
    auto* work = std::get_if<HostWork>(&op.body);
    if (work != nullptr && work->action == action && work->bytes < below) work->action = other;
  }
}

/// Node k is 127.0.0.(k + 1).
inline LaunchOptions loopback(int port) {
  LaunchOptions options;
  options.run = {.iterations = 4, .warm_up = 1, .timeout_s = 10.0};
  options.port = port;
  options.address = [](int node) { return "127.0.0." + std::to_string(node + 1); };
  return options;
}

}  // namespace simsync::test
