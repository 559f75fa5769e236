// Programs of iproute2, run without a shell.
#pragma once
#include <string>
#include <vector>

namespace simsync::testbed {

/// Runs `ip` or `tc` once over many commands, in a named network namespace (empty: the caller's own).
/// @throws CapabilityError with the tool's own message and the command that it refused; when the tool is missing,
/// with the package that brings it.
void run_batch(const std::string& tool, const std::string& netns, const std::vector<std::string>& commands);

}  // namespace simsync::testbed
