#include "hw/testbed/rights.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "hw/testbed/names.hpp"

namespace simsync::testbed {
namespace {

namespace fs = std::filesystem;

bool has_capabilities() {
  constexpr std::uint64_t kNeeded = (1ULL << 12) | (1ULL << 21);  // CAP_NET_ADMIN, CAP_SYS_ADMIN
  std::ifstream status("/proc/thread-self/status");
  const std::string key = "CapEff:\t";
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(key)) continue;
    std::uint64_t held = 0;
    std::from_chars(line.data() + key.size(), line.data() + line.size(), held, 16);
    return (held & kNeeded) == kNeeded;
  }
  return false;
}

[[noreturn]] void refuse_user_namespace(const std::string& what, int error) {
  if (error == EINVAL)
    throw CapabilityError("a testbed of an ordinary user must be made before the process starts threads");
  throw CapabilityError(
      fmt::format("the testbed needs CAP_NET_ADMIN and CAP_SYS_ADMIN (run as root), or unprivileged user namespaces, "
                  "which are off on this machine: {}: {} (see user.max_user_namespaces, "
                  "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)",
                  what, std::strerror(error)));
}

void write_map(const char* path, const std::string& text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!written) refuse_user_namespace(path, error);
}

/// Becomes root of a namespace in which only the caller's own user and group exist.
void enter_user_namespace() {
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) refuse_user_namespace("unshare", errno);
  write_map("/proc/self/setgroups", "deny");
  write_map("/proc/self/uid_map", fmt::format("0 {} 1", user));
  write_map("/proc/self/gid_map", fmt::format("0 {} 1", group));
}

bool names_can_be_written() {
  const char* folder = fs::exists(kNamesFolder) ? kNamesFolder : "/run";
  return ::faccessat(AT_FDCWD, folder, W_OK, AT_EACCESS) == 0;
}

/// Shows `entry` of the old /run under the new one; what cannot be shown is left out.
void show_again(const fs::directory_entry& entry) {
  const fs::path place = fs::path("/run") / entry.path().filename();
  std::error_code ignored;
  if (entry.is_symlink(ignored)) {
    fs::copy_symlink(entry.path(), place, ignored);
    return;
  }
  if (entry.is_directory(ignored))
    fs::create_directory(place, ignored);
  else
    std::ofstream{place};
  ::mount(entry.path().c_str(), place.c_str(), nullptr, MS_BIND | MS_REC, nullptr);
}

void mount_own_run(const std::string& name) {
  const auto need = [](const char* what, bool done) {
    if (!done) throw CapabilityError(fmt::format("the testbed cannot {}: {}", what, std::strerror(errno)));
  };
  need("leave the mounts of the machine", ::mount("none", "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0);
  const int old = ::open("/run", O_PATH | O_DIRECTORY | O_CLOEXEC);
  need("open /run", old >= 0);
  const bool mounted = ::mount(name.c_str(), "/run", "tmpfs", 0, "mode=755") == 0;
  if (mounted) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(fmt::format("/proc/self/fd/{}/", old), ignored))
      if (entry.path().filename() != fs::path(kNamesFolder).filename()) show_again(entry);
  }
  const int error = errno;
  ::close(old);
  errno = error;
  need("mount a /run of its own", mounted);
}

}  // namespace

void gain_rights(const std::string& name) {
  const bool user = !has_capabilities();
  if (user) enter_user_namespace();
  if (names_can_be_written()) return;
  if (!user && ::unshare(CLONE_NEWNS) != 0)
    throw CapabilityError(fmt::format("the testbed cannot enter a mount namespace: {}", std::strerror(errno)));
  mount_own_run(name);
}

}  // namespace simsync::testbed
