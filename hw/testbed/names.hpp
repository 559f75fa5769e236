// Names that tell who made a testbed, so that a later process knows what was left behind.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simsync::testbed {

/// Where `ip netns` keeps its names, each a file that stands for a namespace.
inline constexpr const char* kNamesFolder = "/run/netns";

/// A process; its start time tells it from a later one with the same number.
struct Owner {
  pid_t pid = 0;
  unsigned long long started = 0;  ///< clock ticks since the machine started
  friend bool operator==(const Owner&, const Owner&) = default;
};

Owner this_process();
/// False also for a process that ended and was not yet waited for.
bool alive(const Owner& owner);

/// `simsync-<pid>-<start>-<number>`: one testbed of one process.
std::string testbed_name(const Owner& owner, int number);
/// Whose testbed a name of this form belongs to, also with more after it; nullopt for any other text.
std::optional<Owner> owner_of(std::string_view name);

std::string host_name(const std::string& testbed, int host);
std::string switch_name(const std::string& testbed);
/// Path of a namespace's file.
std::string namespace_path(const std::string& name);

}  // namespace simsync::testbed
