// One collective on paper: what its hops take when nothing else is under way. Private to sim.
#pragma once
#include "platforms/topology.hpp"
#include "sim/plan/routed_collective.hpp"

namespace simsync::detail {

/// What a collective sends.
struct Sent {
  double payload = 0.0;      ///< bytes, Collective::bytes
  double ratio = 1.0;        ///< Collective::ratio
  bool whole_bytes = false;  ///< of each hop, as the flows of a replay have
};

/// Seconds from the first start-up to the end of the last hop. Hops are flows that share `topology`'s links max-min
/// fairly, each after its start-up time and the stage before it: the `fluid` of a replay, without the collective's
/// setup. A route may cross a link several times; each counts.
/// Cost: O(changes of rates x hops x links of a hop).
double time_alone(const Topology& topology, const RoutedSchedule& schedule, const Sent& sent);

}  // namespace simsync::detail
