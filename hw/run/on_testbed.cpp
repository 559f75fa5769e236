#include "hw/run/on_testbed.hpp"

namespace simsync {

LaunchOptions on_testbed(const Testbed& testbed) {
  LaunchOptions out;
  out.real_time = true;
  out.address = [&testbed](int node) { return testbed.address(node); };
  out.enter = [&testbed](int node) { testbed.enter(node); };
  return out;
}

std::vector<std::string> notes_on_timing(const AwakeProcessors& awake) {
  std::vector<std::string> out;
  if (!real_time_allowed())
    out.emplace_back("note: without real-time scheduling (root has it) other programs on this machine delay the steps");
  if (awake.processes().empty())
    out.emplace_back("note: processors may fall asleep between messages: a control group limits their time");
  return out;
}

}  // namespace simsync
