// Links and addresses of a testbed.
#include "hw/testbed/testbed.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <optional>
#include <set>

#include "base/error.hpp"
#include "hw/testbed/tool.hpp"
#include "tests/support/catch.hpp"
#include "tests/testbed/support.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

BytesPerSecond mbps(double value) {
  return BytesPerSecond{value * 1e6 / 8};
}

bool testbeds_work() {
  return possible([] { const Testbed any({.hosts = 1, .rates = {mbps(100)}}); });
}

/// Every address of the calling process's namespace, as text behind its device.
std::set<std::string> addresses() {
  std::set<std::string> out;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return out;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr) continue;
    const int family = one->ifa_addr->sa_family;
    char text[INET6_ADDRSTRLEN] = "";
    if (family == AF_INET)
      ::inet_ntop(family, &reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr, text, sizeof text);
    else if (family == AF_INET6)
      ::inet_ntop(family, &reinterpret_cast<const sockaddr_in6*>(one->ifa_addr)->sin6_addr, text, sizeof text);
    else
      continue;
    out.insert(std::string(one->ifa_name) + " " + text);
  }
  ::freeifaddrs(all);
  return out;
}

}  // namespace

TEST_CASE("every host has its own address and loopback, and nothing else") {
  if (!testbeds_work()) return;
  const Testbed testbed({.hosts = 2, .rates = {mbps(100)}, .server_hosts = 1});
  REQUIRE(testbed.hosts() == 3);
  std::set<std::string> distinct;
  for (int host = 0; host < testbed.hosts(); ++host) {
    distinct.insert(testbed.address(host));
    CHECK(wait_for(start([&] {
            testbed.enter(host);
            return addresses() == std::set<std::string>{"eth0 " + testbed.address(host), "lo 127.0.0.1"} ? 0 : 1;
          })) == 0);
  }
  CHECK(distinct.size() == 3);
}

TEST_CASE("a link passes what its rate allows, between two hosts that of the slower one") {
  if (!testbeds_work()) return;
  const Testbed testbed({.hosts = 4, .rates = {mbps(400), mbps(400), mbps(100)}});
  const BytesPerSecond fast = transfer(testbed, 0, 1, Bytes{12'000'000});    // 0.25 s
  const BytesPerSecond slow = transfer(testbed, 2, 3, Bytes{6'000'000});     // 0.5 s
  const BytesPerSecond to_slow = transfer(testbed, 0, 2, Bytes{6'000'000});  // at the far end of the path
  // The burst of 500 us is the only thing that comes for free: 0.2 % and less of these transfers.
  CHECK(fast.value() < 1.01 * mbps(400).value());
  CHECK(slow.value() < 1.01 * mbps(100).value());
  CHECK(to_slow.value() < 1.01 * mbps(100).value());
  // A ratio of 4, with room for a machine that does other things.
  CHECK(fast / slow > 2.5);
  CHECK(fast / slow < 5.0);
  CHECK(fast / to_slow > 2.5);
  CHECK(fast / to_slow < 5.0);
}

TEST_CASE("two testbeds at once do not disturb each other") {
  if (!testbeds_work()) return;
  const Testbed first({.hosts = 2, .rates = {mbps(200)}});
  std::optional<Testbed> second;
  second.emplace(TestbedRequest{.hosts = 2, .rates = {mbps(50)}});
  CHECK(shared_name(first) != shared_name(*second));
  CHECK(transfer(*second, 0, 1, Bytes{2'000'000}).value() < 1.01 * mbps(50).value());
  const std::string gone = shared_name(*second);
  second.reset();
  CHECK(names_are_gone(gone));
  CHECK_FALSE(names_are_gone(shared_name(first)));
  CHECK(transfer(first, 1, 0, Bytes{2'000'000}).value() > mbps(50).value());
}

TEST_CASE("a refused command is told with the tool's own words") {
  if (!testbeds_work()) return;
  const std::string expected =
      "the testbed cannot be built: 'ip link set no-such-device up': Cannot find device \"no-such-device\"";
  CHECK_THROWS_WITH(testbed::run_batch("ip", "", {"link show lo", "link set no-such-device up"}), expected);
  CHECK_THROWS_AS(testbed::run_batch("ip", "", {"link set no-such-device up"}), CapabilityError);
}
