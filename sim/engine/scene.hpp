// What parts of a replay look at. Private to sim/engine.
#pragma once
#include "platforms/topology.hpp"
#include "sim/engine/groups.hpp"

namespace simsync::detail {

/// What is replayed, and on what. All of it must outlive who has it.
struct Scene {
  const Plan& plan;
  const Cluster& cluster;
  const Groups& groups;
  const Topology& topology;

  [[nodiscard]] const Op& op_of(const Instance& i) const { return plan.ops[static_cast<std::size_t>(i.op)]; }
};

}  // namespace simsync::detail
