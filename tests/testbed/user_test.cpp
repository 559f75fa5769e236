// A testbed of an ordinary user. As root, the cases run in a process that gave up its rights.
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "hw/testbed/testbed.hpp"
#include "tests/support/catch.hpp"
#include "tests/testbed/support.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

const TestbedRequest kTwoHosts{.hosts = 2, .rates = {BytesPerSecond{12.5e6}}};

void become_ordinary() {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() != 0) return;
  if (::setgroups(0, nullptr) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 ||
      ::setresuid(kNobody, kNobody, kNobody) != 0)
    throw std::runtime_error("cannot give up the rights of root");
  ::prctl(PR_SET_DUMPABLE, 1);  // as after a login: /proc/self belongs to the new user
}

bool testbeds_work() {
  return possible([] {
    become_ordinary();
    const Testbed any(kTwoHosts);
  });
}

/// Kills the keeper of the calling process's testbed, which shares its mount namespace with nobody else.
bool kill_keeper() {
  const auto mounts = std::filesystem::read_symlink("/proc/self/ns/mnt");
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::error_code error;
    std::string name;
    std::getline(std::ifstream(entry.path() / "comm"), name);
    if (name == "simsync-keeper" && std::filesystem::read_symlink(entry.path() / "ns/mnt", error) == mounts)
      return ::kill(std::stoi(entry.path().filename()), SIGKILL) == 0;
  }
  return false;
}

}  // namespace

TEST_CASE("an ordinary user builds, uses and removes a testbed, and still sees the rest of /run") {
  if (!testbeds_work()) return;
  CHECK(wait_for(start([] {
          become_ordinary();
          const auto entries = [] {
            int count = 0;
            for (const auto& entry : std::filesystem::directory_iterator("/run"))
              count += entry.path().filename() == "netns" ? 0 : 1;
            return count;
          };
          const int before = entries();
          std::string name;
          {
            const Testbed testbed(kTwoHosts);
            name = shared_name(testbed);
            const BytesPerSecond rate = transfer(testbed, 0, 1, Bytes{2'000'000});
            if (names_are_gone(name) || rate.value() > 1.01 * 12.5e6) return 2;
          }
          return names_are_gone(name) && entries() == before ? 0 : 3;
        })) == 0);
}

TEST_CASE("an ordinary user's next testbed ends what survived a dead owner and its keeper") {
  if (!testbeds_work()) return;
  std::array<int, 2> told{};
  REQUIRE(::pipe(told.data()) == 0);
  const pid_t owner = start([&] {
    become_ordinary();
    const Testbed testbed(kTwoHosts);
    const pid_t sleeper = start_sleeper(testbed.namespace_name(0));
    const bool sent = kill_keeper() && ::write(told[1], &sleeper, sizeof sleeper) == sizeof sleeper;
    while (sent) ::pause();
    return 1;
  });
  ::close(told[1]);
  pid_t sleeper = 0;
  REQUIRE(::read(told[0], &sleeper, sizeof sleeper) == sizeof sleeper);
  ::close(told[0]);
  REQUIRE(::kill(owner, SIGKILL) == 0);
  REQUIRE(wait_for(owner) == 128 + SIGKILL);
  CHECK(runs(sleeper));
  CHECK(wait_for(start([] {
          become_ordinary();
          const Testbed next(kTwoHosts);
          return 0;
        })) == 0);
  CHECK(soon([&] { return !runs(sleeper); }));
}
