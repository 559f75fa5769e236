// Lab problems, compiled and replayed.
#pragma once
#include "sim/engine/engine.hpp"
#include "sim/plan/compile.hpp"
#include "tests/support/lab.hpp"

namespace simsync::test {

/// Compile and replay.
inline Prediction run(const LabModel& lab, const Cluster& cluster, const Strategy& strategy,
                      const ReplayOptions& options = {}) {
  return replay(compile(lab.model, lab.profile, cluster, strategy), cluster, options);
}

inline double step_of(const LabModel& lab, const Cluster& cluster, const Strategy& strategy,
                      Fidelity fidelity = Fidelity::Fluid) {
  return run(lab, cluster, strategy, {.fidelity = fidelity}).step.value();
}

/// Step of a model that does nothing but all-reduce `bytes`.
inline double all_reduce_time(const Cluster& cluster, int ranks, double bytes, CollectiveAlgorithm algorithm,
                              Fidelity fidelity) {
  const LabModel lab{{.bytes = bytes}};
  return step_of(lab, cluster, all_reduced(lab.model, ranks, algorithm), fidelity);
}

}  // namespace simsync::test
