// What ports pass beyond their rate after a pause.
#include "platforms/reader.hpp"
#include "sim/plan/compile.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"
#include "tests/support/transfers.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr double kRate = 1e6;  ///< bytes per second

/// Ports of 1 MB/s that pass 10 kB after a pause.
Cluster shaped() {
  Cluster cluster = lab_cluster(4, 1, {.nic = kRate});
  cluster.links["nic"].service.burst = Bytes{10'000};
  return cluster;
}

}  // namespace

TEST_CASE("after a pause a bucket passes its bytes at once", "[engine][burst]") {
  CHECK_THAT(arrivals(shaped(), {{0, 1, 30e3}})[0], WithinRel(0.020, 1e-6));
  CHECK_THAT(arrivals(shaped(), {{0, 1, 8e3, 1.0}})[0], WithinRel(1.0, 1e-6));
}

TEST_CASE("a bucket fills at the rate while nothing passes", "[engine][burst]") {
  // The first ends at 20 ms. What follows at once takes its full 30 ms; after 4 ms it finds 4 kB; after a second, 10.
  CHECK_THAT(arrivals(shaped(), {{0, 1, 30e3, 0.0, 1}, {0, 1, 30e3, 0.0, 1}})[1], WithinRel(0.050, 1e-6));
  CHECK_THAT(arrivals(shaped(), {{0, 1, 30e3}, {0, 1, 30e3, 0.024}})[1], WithinRel(0.024 + 0.026, 1e-6));
  CHECK_THAT(arrivals(shaped(), {{0, 1, 30e3}, {0, 1, 30e3, 1.020}})[1], WithinRel(1.020 + 0.020, 1e-6));
  // What one of 6 kB leaves is there for the next one at the same moment.
  CHECK_THAT(arrivals(shaped(), {{0, 1, 6e3, 1.0}, {0, 1, 6e3, 1.0}})[1], WithinRel(1.002, 1e-6));
}

TEST_CASE("a port in use has nothing to spare", "[engine][burst]") {
  // Node 2's port is filled by node 0 until 90 ms; at 50 ms node 1 gets half of it.
  CHECK_THAT(arrivals(shaped(), {{0, 2, 100e3}, {1, 2, 10e3, 0.050}})[1], WithinRel(0.070, 1e-6));
  // It is free from 100 ms on: 1 ms later it has 1 kB.
  CHECK_THAT(arrivals(shaped(), {{0, 2, 100e3}, {1, 2, 10e3, 0.050}, {3, 2, 30e3, 0.101}})[2],
             WithinRel(0.101 + 0.029, 1e-6));
}

TEST_CASE("every port on the way has to have tokens", "[engine][burst]") {
  CHECK_THAT(arrivals(shaped(), {{0, 1, 30e3}, {0, 2, 30e3, 0.021}})[1], WithinRel(0.021 + 0.029, 1e-6));
}

TEST_CASE("a bucket with a peak rate passes the rest of its bytes at that", "[engine][burst]") {
  Cluster cluster = shaped();
  cluster.links["nic"].service.burst_at_once = Bytes{5'000};
  cluster.links["nic"].service.burst_speed = 1.25;
  CHECK_THAT(arrivals(cluster, {{0, 1, 4e3, 1.0}})[0], WithinRel(1.0, 1e-6));
  // 15 of 20 kB at 1.25 MB/s; of 60 kB the bucket of 10 kB is what counts.
  CHECK_THAT(arrivals(cluster, {{0, 1, 20e3}})[0], WithinRel(0.012, 1e-6));
  CHECK_THAT(arrivals(cluster, {{0, 1, 60e3}})[0], WithinRel(0.050, 1e-6));
  // 8 kB end at 2.4 ms, with nothing left to pass at once and 0.5 kB of it 0.4 ms later; 1.5 of 2 kB at 1.25 MB/s.
  CHECK_THAT(arrivals(cluster, {{0, 1, 8e3}, {0, 1, 2e3, 0.0028}})[1], WithinRel(0.0028 + 0.0012, 1e-6));
}

TEST_CASE("the buckets of several NICs add up", "[engine][burst]") {
  Cluster cluster = shaped();
  for (NodeGroup& group : cluster.groups) group.nics = 2;
  CHECK_THAT(arrivals(cluster, {{0, 1, 30e3, 0.0, 0, -1}})[0], WithinRel(0.010, 1e-6));
}
