#include "hw/testbed/shape.hpp"

#include <algorithm>
#include <cmath>

namespace simsync::testbed {
namespace {

constexpr int kEthernetHeader = 14;  // tbf counts neither preamble nor checksum
constexpr int kIpTcpHeaders = 20 + 20 + 12;
constexpr Seconds kBurstTime{500e-6};
constexpr Seconds kQueueTime{10e-3};
constexpr std::int64_t kLeastBurst = 4 * (kMtu + kEthernetHeader);
constexpr std::int64_t kLeastQueue = 64 * (kMtu + kEthernetHeader);
constexpr std::int64_t kMostSegment = 65536;

Bytes within(BytesPerSecond rate, Seconds time) {
  return Bytes{std::llround(rate.value() * time.value())};
}

}  // namespace

LinkShape shape_of(BytesPerSecond rate) {
  LinkShape shape;
  shape.rate = BytesPerSecond{std::round(rate.value())};
  shape.burst = std::max(within(rate, kBurstTime), Bytes{kLeastBurst});
  shape.queue = std::max(within(rate, kQueueTime), Bytes{kLeastQueue});
  shape.segment = std::min(Bytes{shape.burst.count / 2}, Bytes{kMostSegment});
  return shape;
}

double payload_share() {
  return static_cast<double>(kMtu - kIpTcpHeaders) / (kMtu + kEthernetHeader);
}

}  // namespace simsync::testbed
