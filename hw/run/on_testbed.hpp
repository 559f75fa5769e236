// What every run on a testbed has in common.
#pragma once
#include <string>
#include <vector>

#include "hw/run/awake_processors.hpp"
#include "hw/run/launch.hpp"
#include "hw/testbed/testbed.hpp"

namespace simsync {

/// Nodes of the plan are hosts of the testbed, which must outlive the options; scheduled in real time.
LaunchOptions on_testbed(const Testbed& testbed);

/// Notes for the user: what this machine does not allow, and what that does to the times.
std::vector<std::string> notes_on_timing(const AwakeProcessors& awake);

}  // namespace simsync
