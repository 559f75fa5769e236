// Nothing stays behind, however the owner of a testbed ends.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <stdexcept>

#include "hw/testbed/names.hpp"
#include "hw/testbed/testbed.hpp"
#include "hw/testbed/tool.hpp"
#include "tests/support/catch.hpp"
#include "tests/testbed/support.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

const TestbedRequest kTwoHosts{.hosts = 2, .rates = {BytesPerSecond{12.5e6}}};

bool testbeds_work() {
  return possible([] { const Testbed any(kTwoHosts); });
}

/// What an owner tells before it is killed.
struct Report {
  std::array<char, 128> name{};
  pid_t sleeper = 0;
};

}  // namespace

TEST_CASE("an exception removes the testbed and ends who is inside") {
  if (!testbeds_work()) return;
  std::string name;
  pid_t sleeper = 0;
  try {
    const Testbed testbed(kTwoHosts);
    name = shared_name(testbed);
    sleeper = start_sleeper(testbed.namespace_name(1));
    REQUIRE_FALSE(names_are_gone(name));
    throw std::runtime_error("any");
  } catch (const std::runtime_error&) {
  }
  CHECK(names_are_gone(name));
  CHECK(wait_for(sleeper) == 128 + SIGKILL);
}

TEST_CASE("a forked copy that ends leaves the testbed alone") {
  if (!testbeds_work()) return;
  std::optional<Testbed> testbed;
  testbed.emplace(kTwoHosts);
  CHECK(wait_for(start([&] {
          testbed.reset();
          return 0;
        })) == 0);
  CHECK(transfer(*testbed, 0, 1, Bytes{100'000}).value() > 0);
}

TEST_CASE("a signal that ends the owner ends its testbed too") {
  if (!testbeds_work()) return;
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    std::array<int, 2> told{};
    REQUIRE(::pipe(told.data()) == 0);
    const pid_t owner = start([&] {
      const Testbed testbed(kTwoHosts);
      Report report;
      shared_name(testbed).copy(report.name.data(), report.name.size() - 1);
      report.sleeper = start_sleeper(testbed.namespace_name(0));
      const bool sent = ::write(told[1], &report, sizeof report) == sizeof report;
      while (sent) ::pause();
      return 1;
    });
    ::close(told[1]);
    Report report;
    REQUIRE(::read(told[0], &report, sizeof report) == sizeof report);
    ::close(told[0]);
    CHECK(runs(report.sleeper));
    REQUIRE(::kill(owner, signal) == 0);
    CHECK(wait_for(owner) == 128 + signal);
    CHECK(soon([&] { return names_are_gone(report.name.data()) && !runs(report.sleeper); }));
  }
}

TEST_CASE("the next testbed sweeps what a dead process left, and nothing of a living one") {
  if (!testbeds_work()) return;
  const Testbed rights(kTwoHosts);  // as an ordinary user: inside the user namespace from here on
  const pid_t gone = start([] { return 0; });
  REQUIRE(wait_for(gone) == 0);
  const std::string dead = testbed::testbed_name({gone, 1}, 0);
  // The number of a living process, which started at another time: the owner's number was used again.
  const std::string reused = testbed::testbed_name({::getpid(), 1}, 0);
  testbed::run_batch("ip", "", {"netns add " + dead + "-host0", "netns add " + reused + "-switch"});
  const pid_t sleeper = start_sleeper(dead + "-host0");
  REQUIRE_FALSE(names_are_gone(dead));
  const Testbed next(kTwoHosts);
  CHECK(names_are_gone(dead));
  CHECK(names_are_gone(reused));
  CHECK(wait_for(sleeper) == 128 + SIGKILL);
  CHECK_FALSE(names_are_gone(shared_name(rights)));
}
