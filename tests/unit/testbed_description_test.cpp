// What a testbed says of itself, and what it refuses; needs no namespace.
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.hpp"
#include "hw/testbed/describe.hpp"
#include "hw/testbed/names.hpp"
#include "hw/testbed/shape.hpp"
#include "hw/testbed/testbed.hpp"
#include "hw/testbed/tool.hpp"
#include "platforms/reader.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

constexpr BytesPerSecond kGigabit{125e6};
constexpr BytesPerSecond kQuarter{31.25e6};

std::string refusal(const TestbedRequest& request) {
  try {
    const Testbed any(request);
  } catch (const InputError& error) {
    return error.diagnostics().front().message;
  }
  return "";
}

}  // namespace

TEST_CASE("a link's buckets and queue follow its rate and never fall below a few frames") {
  // 125 MB/s x 500 us = 62500 B at up to 1.25 times the rate; x 125 us = 15625 B at once; x 10 ms = 1.25 MB.
  // A packet may be 15/16 of what passes at once.
  const testbed::LinkShape fast = testbed::shape_of(kGigabit);
  CHECK(fast.peak == BytesPerSecond{156.25e6});
  CHECK(fast.burst == Bytes{62'500});
  CHECK(fast.peak_burst == Bytes{15'625});
  CHECK(fast.segment == Bytes{14'648});
  CHECK(fast.queue == Bytes{1'250'000});
  // 1.25 MB/s x 125 us = 156 B is less than a frame: 5 frames of 1514 B at once, twice that as burst, 64 as queue.
  const testbed::LinkShape slow = testbed::shape_of(BytesPerSecond{1.25e6});
  CHECK(slow.peak_burst == Bytes{7'570});
  CHECK(slow.burst == Bytes{15'140});
  CHECK(slow.segment == Bytes{7'096});
  CHECK(slow.queue == Bytes{96'896});
  // 12.5 GB/s: the kernel's own limit of 64 KiB holds.
  CHECK(testbed::shape_of(BytesPerSecond{12.5e9}).segment == Bytes{65'536});
}

TEST_CASE("of a full frame of 1514 bytes 1448 are payload") {
  // 1500 less 20 (IP), 20 (TCP) and 12 (timestamps); 14 of Ethernet in front.
  CHECK(testbed::payload_share() == 1448.0 / 1514.0);
}

TEST_CASE("testbeds that serve differently have different names") {
  const auto name = [](const std::vector<BytesPerSecond>& rates, testbed::Queues queues) {
    return described_testbed({.hosts = 4, .rates = rates, .queues = queues}).name;
  };
  CHECK(name({kGigabit}, testbed::Queues::Fifo) == "testbed-4-fifo-4x1gbps");
  CHECK(name({kGigabit}, testbed::Queues::Fair) == "testbed-4-fair-4x1gbps");
  CHECK(name({kGigabit, kGigabit, kQuarter}, testbed::Queues::Fifo) == "testbed-4-fifo-2x1gbps-2x250mbps");
}

TEST_CASE("a testbed describes itself as a cluster that reads back equal") {
  const Cluster cluster =
      testbed::describe({testbed::shape_of(kGigabit), testbed::shape_of(kQuarter), testbed::shape_of(kGigabit)}, 1);
  REQUIRE(cluster.groups.size() == 3);
  CHECK(cluster.name == "testbed-2-and-1-fifo-1gbps-250mbps-1gbps");
  CHECK(cluster.gpu_count() == 2);
  CHECK(cluster.groups[0].name == "host0");
  CHECK(cluster.groups[2].name == "server2");
  CHECK(cluster.groups[2].gpus == 0);
  CHECK(cluster.groups[0].nic_slowdown == 1.0);
  CHECK(cluster.groups[1].nic_slowdown == 4.0);
  CHECK(cluster.links.at("ethernet").bandwidth == kGigabit);
  // 62500 and 15625 B of frames hold 1448/1514 of that as payload.
  CHECK(cluster.links.at("ethernet").service.burst == Bytes{59'775});
  CHECK(cluster.links.at("ethernet").service.burst_at_once == Bytes{14'944});
  CHECK(cluster.links.at("ethernet").service.burst_speed == 1.25);
  CHECK_THAT(cluster.description,
             ContainsSubstring("tbf 1000 Mbit/s, burst 62500 B at 1250 Mbit/s after 15625 B at once, queue"));
  CHECK_THAT(cluster.description,
             ContainsSubstring("tbf 250 Mbit/s, burst 15625 B at 312.5 Mbit/s after 7570 B at once, queue"));
  const Cluster again = parse_cluster(to_yaml(cluster), "testbed.yaml");
  CHECK(again == cluster);
}

TEST_CASE("a testbed of fair queues says so") {
  const Cluster cluster =
      testbed::describe(std::vector<testbed::LinkShape>(3, testbed::shape_of(kGigabit, testbed::Queues::Fair)), 0);
  CHECK_THAT(cluster.description,
             ContainsSubstring("after 15625 B at once, fair queues, one per other host, of 1250000 B"));
  // 15625 B of frames hold 15625 x 1448/1514 B of payload.
  CHECK(cluster.links.at("ethernet").service.turn == Bytes{14'944});
  CHECK(parse_cluster(to_yaml(cluster), "testbed.yaml") == cluster);
}

TEST_CASE("queues are fifo or fair") {
  CHECK(parse_queues("fifo") == testbed::Queues::Fifo);
  CHECK(parse_queues("fair") == testbed::Queues::Fair);
  CHECK_THROWS_WITH(parse_queues("Fair"), "error: 'Fair' is not a way of queueing: expected fifo or fair");
  CHECK_THROWS_AS(parse_queues(""), InputError);
}

TEST_CASE("rates come as one for all or one per host") {
  CHECK(parse_rates("1Gbps") == std::vector<BytesPerSecond>{kGigabit});
  CHECK(parse_rates("1Gbps,250Mbps") == std::vector<BytesPerSecond>{kGigabit, kQuarter});
  CHECK_THROWS_WITH(parse_rates("1Gbps,,250Mbps"),
                    ContainsSubstring("'' is not a rate: expected a number and a unit, such as 1Gbps"));
  CHECK_THROWS_WITH(parse_rates("1000"), ContainsSubstring("'1000' is not a rate"));
  CHECK_THROWS_WITH(parse_rates("1Kbps"),
                    ContainsSubstring("a testbed's rate is 1000 bit/s: expected 1Mbps to 100Gbps"));
  CHECK_THROWS_AS(parse_rates(""), InputError);
}

TEST_CASE("absurd requests are refused before anything is built") {
  CHECK(refusal({.hosts = 0, .rates = {kGigabit}}) ==
        "a testbed of 0 workers and 0 servers: expected at least one worker and at most 64 hosts");
  CHECK(refusal({.hosts = 60, .rates = {kGigabit}, .server_hosts = 5}) ==
        "a testbed of 60 workers and 5 servers: expected at least one worker and at most 64 hosts");
  CHECK(refusal({.hosts = 2}) == "a testbed needs a rate, such as 1Gbps");
  CHECK(refusal({.hosts = 2, .rates = {kGigabit, kGigabit, kGigabit}}) == "3 rates for the 2 hosts of a testbed");
  CHECK(refusal({.hosts = 2, .rates = {BytesPerSecond{-1}}}) ==
        "a testbed's rate is -8 bit/s: expected 1Mbps to 100Gbps");
}

TEST_CASE("a namespace's name tells whose testbed it belongs to") {
  const testbed::Owner self = testbed::this_process();
  CHECK(self.pid == ::getpid());
  CHECK(testbed::alive(self));
  CHECK_FALSE(testbed::alive({self.pid, self.started + 1}));
  const std::string name = testbed::testbed_name({12, 345}, 6);
  CHECK(name == "simsync-12-345-6");
  CHECK(testbed::owner_of(testbed::host_name(name, 7)) == testbed::Owner{12, 345});
  CHECK(testbed::owner_of(testbed::switch_name(name)) == testbed::Owner{12, 345});
  for (const char* other : {"", "simsync-", "simsync-12", "simsync-12-345", "simsync-12-345-", "simsync-a-1-0", "blue"})
    CHECK_FALSE(testbed::owner_of(other).has_value());
}

TEST_CASE("a missing tool is told with its package") {
  CHECK_THROWS_WITH(testbed::run_batch("ip-that-is-missing", "", {}),
                    "the testbed needs the program 'ip-that-is-missing' (Debian package iproute2)");
}
