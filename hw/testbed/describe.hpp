// A testbed as a Cluster.
#pragma once
#include <vector>

#include "hw/testbed/shape.hpp"
#include "platforms/cluster.hpp"

namespace simsync::testbed {

/// One group per link, the last `servers` of them without a device. The nominal bandwidth of the class `ethernet` is
/// that of the fastest link; slower ones have a `nic_slowdown`, and what it states of fair queues' turns is the fastest
/// link's.
Cluster describe(const std::vector<LinkShape>& links, int servers);

}  // namespace simsync::testbed
