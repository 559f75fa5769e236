// Makes the namespaces, links and queues of a testbed.
#pragma once
#include <string>
#include <vector>

#include "hw/testbed/shape.hpp"

namespace simsync::testbed {

/// Address of a host in its own namespace. Every testbed uses the same ones: nothing connects two of them.
std::string host_address(int host);
/// All namespaces of a testbed, the switch first.
std::vector<std::string> namespaces_of(const std::string& testbed, int hosts);
/// One host per link. @throws CapabilityError; what exists by then is left to the caller to remove.
void build(const std::string& testbed, const std::vector<LinkShape>& links);
/// Moves the calling thread into a namespace. @throws CapabilityError.
void enter_namespace(const std::string& name);

}  // namespace simsync::testbed
