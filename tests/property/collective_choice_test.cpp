// `auto` and `best` against the engine: every algorithm simulated on the presets, one collective at a time.
#include <fmt/format.h>

#include <iostream>
#include <limits>
#include <map>

#include "platforms/reader.hpp"
#include "sim/engine/engine.hpp"
#include "sim/plan/collective_alone.hpp"
#include "sim/plan/compile.hpp"
#include "strategies/names.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

using Algorithm = CollectiveAlgorithm;

constexpr double kMiB = 1024.0 * 1024.0;
constexpr double kClose = 0.02;  ///< what a choice may lose

struct Question {
  Cluster cluster;
  int workers = 2;
  double bytes = 0.0;

  [[nodiscard]] Plan plan(Algorithm algorithm) const {
    return collective_plan(cluster, cluster.workers(workers), CollectivePrimitive::AllReduce, algorithm, bytes);
  }
  [[nodiscard]] double simulated(Algorithm algorithm) const {
    return replay(plan(algorithm), cluster, ReplayOptions{}).step.value();
  }
  [[nodiscard]] Algorithm chosen(Algorithm rule) const { return plan(rule).ops.front().collective().algorithm; }
};

struct Answer {
  Algorithm of_auto = Algorithm::Ring;
  Algorithm of_best = Algorithm::Ring;
  Algorithm fastest = Algorithm::Ring;
  std::map<Algorithm, double> simulated;

  [[nodiscard]] double loss(Algorithm algorithm) const { return simulated.at(algorithm) / simulated.at(fastest) - 1.0; }
};

Answer answer(const Question& question) {
  Answer out;
  out.of_auto = question.chosen(Algorithm::Auto);
  out.of_best = question.chosen(Algorithm::Best);
  for (const auto algorithm : {Algorithm::Ring, Algorithm::DoubleBinaryTree, Algorithm::HalvingDoubling,
                               Algorithm::Hierarchical, Algorithm::BroadcastReduce}) {
    if (question.chosen(algorithm) != algorithm) continue;  // hierarchical over unequal nodes
    out.simulated[algorithm] = question.simulated(algorithm);
    if (out.simulated.at(algorithm) < out.simulated.at(out.fastest)) out.fastest = algorithm;
  }
  return out;
}

/// NCCL's own estimate with its fastest protocol.
double nccl_time_of(const Question& question, Algorithm algorithm) {
  const GroupCosts costs = group_costs(question.cluster, question.cluster.workers(question.workers));
  const NcclCall call{CollectivePrimitive::AllReduce, costs.shape.ranks(), costs.shape.nodes(), question.bytes};
  double least = std::numeric_limits<double>::infinity();
  for (const auto protocol : {NcclProtocol::LL, NcclProtocol::LL128, NcclProtocol::Simple}) {
    const auto time = nccl_time(costs.nccl, call, algorithm, protocol);
    if (time) least = std::min(least, time->value());
  }
  return least;
}

/// Workers from 2 to 128, and a number that leaves a node partly used.
std::vector<Question> questions(const std::string& preset, const std::vector<int>& workers,
                                const std::vector<double>& sizes) {
  std::vector<Question> out;
  const Cluster described = find_cluster(preset);
  for (const int n : workers) {
    Cluster cluster = described;
    try {
      cluster = grown_to(described, n);
    } catch (const std::exception&) {
      continue;  // a machine without a network
    }
    for (const double bytes : sizes) out.push_back({cluster, n, bytes});
  }
  return out;
}

void check(const Question& question) {
  INFO(question.cluster.name << ", " << question.workers << " workers, " << question.bytes << " bytes");
  const Answer now = answer(question);
  INFO("fastest " << name_of(now.fastest) << ", best " << name_of(now.of_best) << ", auto " << name_of(now.of_auto));
  CHECK(now.loss(now.of_best) <= kClose);
  // Where auto loses, NCCL's own model has the algorithm that it takes as the faster of its two.
  if (now.loss(now.of_auto) <= kClose) return;
  const auto other = now.of_auto == Algorithm::Ring ? Algorithm::DoubleBinaryTree : Algorithm::Ring;
  CHECK(nccl_time_of(question, now.of_auto) <= nccl_time_of(question, other));
}

}  // namespace

TEST_CASE("best is the fastest in simulation, and auto NCCL's choice, on all presets", "[choice]") {
  for (const std::string& preset : known_clusters())
    for (const Question& question : questions(preset, {2, 3, 8, 12, 32}, {0.0625 * kMiB, kMiB, 25 * kMiB}))
      check(question);
}

TEST_CASE("a collective worked out on paper takes what its replay takes", "[choice]") {
  for (const std::string& preset : known_clusters()) {
    for (const Question& question : questions(preset, {4, 12, 16}, {0.0625 * kMiB, 25 * kMiB})) {
      const GroupCosts costs = group_costs(question.cluster, question.cluster.workers(question.workers));
      const Seconds setup = collective_setup(question.cluster.collective, question.bytes);
      for (const auto& [algorithm, simulated] : answer(question).simulated) {
        INFO(preset << ", " << question.workers << " workers, " << question.bytes << " bytes, " << name_of(algorithm));
        const std::string protocol = question.plan(algorithm).ops.front().collective().protocol;
        const Seconds alone = costs.alone->time(CollectivePrimitive::AllReduce, algorithm, protocol, question.bytes);
        CHECK_THAT((setup + alone).value(), WithinRel(simulated, 1e-3));
      }
    }
  }
}

// collective_choice_test "[table]" -o FILE: 2 to 128 workers and larger payloads, as a table.
TEST_CASE("best and auto on all presets, as a table", "[.][table]") {
  std::cout << "preset,workers,payload_bytes,auto,auto_s,best,best_s,fastest,fastest_s,ring_s,tree_s,nccl_ring_s,"
               "nccl_tree_s\n";
  for (const std::string& preset : known_clusters()) {
    for (const Question& question :
         questions(preset, {2, 3, 4, 8, 12, 16, 32, 64, 128}, {0.0625 * kMiB, kMiB, 25 * kMiB, 400 * kMiB})) {
      const Answer now = answer(question);
      std::cout << fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{}\n", preset, question.workers, question.bytes,
                               name_of(now.of_auto), now.simulated.at(now.of_auto), name_of(now.of_best),
                               now.simulated.at(now.of_best), name_of(now.fastest), now.simulated.at(now.fastest),
                               now.simulated.at(Algorithm::Ring), now.simulated.at(Algorithm::DoubleBinaryTree),
                               nccl_time_of(question, Algorithm::Ring),
                               nccl_time_of(question, Algorithm::DoubleBinaryTree));
    }
  }
}
