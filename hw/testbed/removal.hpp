// Removes testbeds, also those of processes that are gone.
#pragma once
#include <string>
#include <vector>

namespace simsync::testbed {

/// Ends (SIGKILL) every process inside these namespaces except the caller and takes their names away; the kernel then
/// drops the namespaces with the veth pairs and the bridge in them. Names that do not exist are skipped.
void remove_namespaces(const std::vector<std::string>& names);

/// Ends what still runs in testbeds that a dead process of this user made inside a user namespace; the kernel then
/// drops them. To be called before entering a user namespace: from inside, the others cannot be seen.
void sweep_processes();
/// Removes the named namespaces of dead processes.
void sweep_names();

}  // namespace simsync::testbed
