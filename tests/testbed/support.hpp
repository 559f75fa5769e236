// Processes, and traffic between the hosts of a testbed.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>

#include "hw/testbed/testbed.hpp"

namespace simsync::test {

/// Starts a copy of this process that runs `body` and ends without any destructor of its parent's objects; its status
/// is what `body` returns, 1 after an exception, whose text it prints.
pid_t start(const std::function<int()>& body);
/// Exit status; 128 + number of the signal that ended the process.
int wait_for(pid_t process);
/// Waits up to ten seconds until `condition` holds.
bool soon(const std::function<bool()>& condition);
/// Not even as a process that nobody waited for.
bool runs(pid_t process);
/// Starts a process inside a namespace of this name that sleeps until it is killed.
pid_t start_sleeper(const std::string& netns);

/// Sends `bytes` from one host to another over one TCP connection.
/// @return payload rate that the receiver sees after its first byte.
BytesPerSecond transfer(const Testbed& testbed, int from, int to, Bytes bytes);

/// Whether the namespaces that begin with this testbed's name are all gone.
bool names_are_gone(const std::string& testbed);
/// The part of a host's namespace name that its testbed's namespaces share.
std::string shared_name(const Testbed& testbed);

/// False, after printing why, when `body` in a process of its own ends with a CapabilityError.
bool possible(const std::function<void()>& body);

}  // namespace simsync::test
