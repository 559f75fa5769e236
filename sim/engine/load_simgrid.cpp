// simgrid_network() for a program that loads SimGrid when a replay first asks for it.
#include "base/module.hpp"
#include "sim/engine/flow_network.hpp"

namespace simsync {

FlowNetwork& simgrid_network() {
  static void* const kNetwork =
      symbol_of({SIMSYNC_MODULE_FROM_BIN, SIMSYNC_MODULE_BUILT, "the solver of SimGrid"}, "simsync_simgrid_network");
  return *reinterpret_cast<decltype(&simsync_simgrid_network)>(kNetwork)();
}

}  // namespace simsync
