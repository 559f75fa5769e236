#include "hw/testbed/removal.hpp"

#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "base/parse_units.hpp"
#include "hw/testbed/names.hpp"

namespace simsync::testbed {
namespace {

namespace fs = std::filesystem;
using NamespaceId = std::pair<dev_t, ino_t>;

std::vector<std::string> entries(const char* folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator(); at.increment(error))
    out.push_back(at->path().filename().string());
  return out;
}

/// Sends SIGKILL to the processes that `wanted` picks, until there is none (one may be starting another).
void end_processes(const std::function<bool(const std::string& proc_folder)>& wanted) {
  constexpr int kRounds = 500;  // about half a second in all
  for (int round = 0; round < kRounds; ++round) {
    bool found = false;
    for (const std::string& name : entries("/proc")) {
      const auto pid = parse_integer(name);
      if (!pid || *pid == ::getpid() || !wanted("/proc/" + name)) continue;
      found |= ::kill(static_cast<pid_t>(*pid), SIGKILL) == 0;
    }
    if (!found) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// Whether a process keeps the mounts of a testbed whose owner is gone: rights.cpp mounts /run from its name.
bool in_dead_testbed(const std::string& proc_folder) {
  std::ifstream mounts(proc_folder + "/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const auto at = line.find(" - tmpfs simsync-");  // separator, file system, source
    if (at == std::string::npos) continue;
    std::istringstream fields(line.substr(at));
    std::string separator, type, source;
    fields >> separator >> type >> source;
    const auto owner = owner_of(source);
    if (owner && !alive(*owner)) return true;
  }
  return false;
}

}  // namespace

void remove_namespaces(const std::vector<std::string>& names) {
  std::set<NamespaceId> ours;
  struct stat file {};
  for (const std::string& name : names)
    if (::stat(namespace_path(name).c_str(), &file) == 0) ours.emplace(file.st_dev, file.st_ino);
  if (ours.empty()) return;
  end_processes([&](const std::string& proc_folder) {
    struct stat link {};
    return ::stat((proc_folder + "/ns/net").c_str(), &link) == 0 && ours.contains({link.st_dev, link.st_ino});
  });
  for (const std::string& name : names) {
    const std::string path = namespace_path(name);
    ::umount2(path.c_str(), MNT_DETACH);
    ::unlink(path.c_str());
  }
}

void sweep_processes() {
  const uid_t user = ::geteuid();
  struct stat own {};
  ::stat("/proc/self/ns/mnt", &own);
  end_processes([&](const std::string& proc_folder) {
    struct stat process {};
    struct stat mounts {};
    return ::stat(proc_folder.c_str(), &process) == 0 && process.st_uid == user &&
           ::stat((proc_folder + "/ns/mnt").c_str(), &mounts) == 0 && mounts.st_ino != own.st_ino &&
           in_dead_testbed(proc_folder);
  });
}

void sweep_names() {
  std::vector<std::string> dead;
  for (const std::string& name : entries(kNamesFolder)) {
    const auto owner = owner_of(name);
    if (owner && !alive(*owner)) dead.push_back(name);
  }
  remove_namespaces(dead);
}

}  // namespace simsync::testbed
