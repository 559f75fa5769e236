#include "sim/engine/engine.hpp"
#include "validate/calibrate/calibrate.hpp"

namespace simsync {

Seconds predicted_time(const Probe& probe, const Cluster& cluster) {
  return replay(plan_of(probe, cluster), cluster, {.max_iterations = 1}).step;
}

}  // namespace simsync
