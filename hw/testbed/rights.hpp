// The right to make network namespaces: as root, or as an ordinary user inside a user namespace.
#pragma once
#include <string>

namespace simsync::testbed {

/// Makes sure that this process may make network namespaces and name them. Without CAP_NET_ADMIN and CAP_SYS_ADMIN
/// it enters a user namespace; where /run/netns cannot be written it enters a mount namespace with a /run of its own,
/// mounted from `name`, in which all else of /run is still to be seen. Neither is undone. @throws CapabilityError.
void gain_rights(const std::string& name);

}  // namespace simsync::testbed
