// What waits in ports: a word or a first byte behind the bytes of other transfers.
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"
#include "tests/support/transfers.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr double kRate = 1e6;  ///< bytes per second

Cluster ports(double queueing_delay, double passing_delay) {
  Cluster cluster = lab_cluster(4, 1, {.nic = kRate});
  cluster.links["nic"].service.queueing_delay = Seconds{queueing_delay};
  cluster.links["nic"].service.passing_delay = Seconds{passing_delay};
  return cluster;
}

/// Node 3 sends 1 kB to node 2 at 1 s, while nodes 0 and 1 send `bytes` each to node 2 from the start.
double after_two_others(const Cluster& cluster, double bytes) {
  return arrivals(cluster, {{0, 2, bytes}, {1, 2, bytes}, {3, 2, 1e3, 1.0}})[2];
}

}  // namespace

TEST_CASE("a first byte waits behind a full port's queue", "[engine][ports]") {
  CHECK_THAT(after_two_others(ports(0.0, 0.0), 5e6), WithinRel(1.003, 1e-6));
  // 2 s, of which sharing the port with two others costs its 1 kB 2 ms anyway; then 3 ms for a third of the rate.
  CHECK_THAT(after_two_others(ports(2.0, 0.0), 5e6), WithinRel(1.0 + 2.0 - 0.002 + 0.003, 1e-6));
}

TEST_CASE("no longer than what is queued takes", "[engine][ports]") {
  // 0.2 MB of the others are left at 1 s.
  CHECK_THAT(after_two_others(ports(2.0, 0.0), 0.6e6), WithinAbs(1.2, 0.003));
  // Half of 4 MB waits its turn on the connections of the others.
  const auto turns =
      arrivals(ports(9.0, 0.0), {{0, 2, 1e6, 0.0, 1}, {0, 2, 1e6, 0.0, 1}, {1, 2, 2e6}, {3, 2, 1e3, 1.0}});
  CHECK_THAT(turns[3], WithinAbs(4.0, 0.003));
}

TEST_CASE("what is held up elsewhere passes a port in bursts", "[engine][ports]") {
  const auto passing = [](double delay) {
    // Node 0's own link holds up what it sends to nodes 1 and 2, so that node 2's is half empty.
    return arrivals(ports(2.0, delay), {{0, 1, 5e6}, {0, 2, 5e6}, {3, 2, 1e3, 1.0}})[2];
  };
  CHECK_THAT(passing(0.0), WithinRel(1.002, 1e-6));
  CHECK_THAT(passing(0.1), WithinRel(1.102, 1e-6));
}

TEST_CASE("fair queues: a first byte waits for a turn of every other node, whatever the delays", "[engine][ports]") {
  Cluster cluster = ports(2.0, 1.0);
  cluster.links["nic"].service.turn = Bytes{10'000};
  // Two turns of 10 ms, of which sharing the port with two others costs its 1 kB 2 ms anyway; then 3 ms.
  CHECK_THAT(after_two_others(cluster, 5e6), WithinRel(1.0 + 0.020 - 0.002 + 0.003, 1e-6));
  // What is longer than a turn pays for those of others by its share.
  CHECK_THAT(arrivals(cluster, {{0, 2, 5e6}, {1, 2, 5e6}, {3, 2, 1e5, 1.0}})[2], WithinRel(1.3, 1e-6));
  // An eleventh turn is half as long, and those of the others before it are not.
  CHECK_THAT(arrivals(cluster, {{0, 2, 5e6}, {1, 2, 5e6}, {3, 2, 1.05e5, 1.0}})[2], WithinRel(1.315 + 0.010, 1e-6));
  // Two transfers of one node have one turn.
  const auto one_node = arrivals(cluster, {{0, 2, 5e6}, {0, 2, 5e6}, {3, 2, 1e3, 1.0}});
  CHECK_THAT(one_node[2], WithinRel(1.0 + 0.010 - 0.002 + 0.003, 1e-6));
  // Its own node's transfer to the same one is not another node's.
  CHECK_THAT(arrivals(cluster, {{3, 2, 5e6}, {3, 2, 1e3, 1.0}})[1], WithinRel(1.002, 1e-6));
  // In the port of the sender, it is the nodes sent to that take turns.
  CHECK_THAT(arrivals(cluster, {{3, 1, 5e6}, {3, 2, 1e3, 1.0}})[1], WithinRel(1.0 + 0.010 - 0.001 + 0.002, 1e-6));
  // 0.2 MB of the others are left at 1 s, less than two turns.
  cluster.links["nic"].service.turn = Bytes{200'000};
  CHECK_THAT(after_two_others(cluster, 0.6e6), WithinAbs(1.2, 0.003));
}

TEST_CASE("bytes that follow others on their connection have waited with them", "[engine][ports]") {
  const std::vector<TimedTransfer> two{{0, 2, 1e6, 0.0, 1}, {0, 2, 1e6, 0.0, 1}};
  CHECK_THAT(arrivals(ports(2.0, 1.0), two)[1], WithinRel(2.0, 1e-6));
}

TEST_CASE("what has left a connection is not queued any more", "[engine][ports]") {
  // Two GPUs of node 0 take turns on one connection until 2 s; later 0.09 MB are left when the host begins to send.
  Cluster cluster = lab_cluster(4, 2, {.nic = kRate});
  cluster.links["nic"].service.queueing_delay = Seconds{2.0};
  const auto ends =
      arrivals(cluster, {{0, 2, 1e6, 0.0, 1, 0}, {0, 2, 1e6, 0.0, 1, 1}, {0, 2, 1e5, 3.0, 1, 1}, {0, 1, 1e3, 3.01}});
  CHECK_THAT(ends[3], WithinAbs(3.1, 0.003));
}

TEST_CASE("nothing is queued behind a stream whose own cap holds it up", "[engine][ports]") {
  Cluster cluster = ports(2.0, 0.0);
  cluster.links["nic"].per_flow_cap = BytesPerSecond{0.2 * kRate};
  CHECK_THAT(arrivals(cluster, {{0, 2, 1e6}, {3, 2, 1e3, 1.0}})[1], WithinRel(1.005, 1e-6));
}
