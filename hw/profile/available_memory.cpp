#include "hw/profile/available_memory.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string>

#include "base/parse_units.hpp"

namespace simsync {
namespace {

constexpr std::int64_t kUntold = std::numeric_limits<std::int64_t>::max();

/// `MemAvailable:  12345 kB`.
std::int64_t of_machine() {
  std::ifstream file("/proc/meminfo");
  for (std::string key; file >> key;) {
    std::int64_t kib = 0;
    if (key == "MemAvailable:" && file >> kib) return kib * 1024;
  }
  return kUntold;
}

/// Nothing where the file has no number, such as `max`.
std::optional<std::int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return parse_integer(word);
}

/// `0::/path` names the control group (version 2).
std::int64_t of_control_group() {
  std::ifstream file("/proc/self/cgroup");
  std::string group;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::")) group = line.substr(3);
  std::int64_t least = kUntold;
  // Each of the groups that contain it has a limit of its own.
  for (std::string path = "/sys/fs/cgroup" + group; path.size() >= std::string("/sys/fs/cgroup").size();
       path.resize(path.rfind('/'))) {
    const auto most = number_in(path + "/memory.max");
    const auto used = number_in(path + "/memory.current");
    if (most && used) least = std::min(least, std::max<std::int64_t>(*most - *used, 0));
  }
  return least;
}

}  // namespace

Bytes available_memory() {
  return Bytes{std::min(of_machine(), of_control_group())};
}

}  // namespace simsync
