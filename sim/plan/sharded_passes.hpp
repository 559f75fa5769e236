// Passes of sharded data parallelism, unit by unit, for estimates. Private to sim/plan.
#pragma once
#include <vector>

#include "sim/plan/estimate_context.hpp"
#include "strategies/sharding.hpp"

namespace simsync::detail {

/// A unit (units.hpp) and what it takes, s.
struct UnitTimes {
  bool root = false;  ///< stays whole between its forward and its backward pass
  double forward = 0.0;
  double backward = 0.0;
  double gather = 0.0;
  double reduce = 0.0;    ///< over its shard group
  double replicas = 0.0;  ///< of its share, over replica groups
};

/// Where collectives of a pass run.
struct UnitStreams {
  Resource shard;
  Resource replicas;
};

/// The end of a forward pass that begins at `now`. With `gathers` a unit waits for its own parameters; at stage 3 their
/// gather begins when the unit so many before it (Sharding::prefetch) has been computed.
double forward_pass(const std::vector<UnitTimes>& units, const Sharding& sharding, bool gathers, double now,
                    UnitStreams& streams);

/// What is sent in a backward pass.
struct BackwardExchange {
  bool gathers = false;  ///< parameters that were freed after the forward pass
  bool reduces = false;
};
/// The end of its compute; reductions may go on.
double backward_pass(const std::vector<UnitTimes>& units, const Sharding& sharding, const BackwardExchange& exchange,
                     double now, UnitStreams& streams);

}  // namespace simsync::detail
