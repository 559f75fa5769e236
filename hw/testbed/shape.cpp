#include "hw/testbed/shape.hpp"

#include <algorithm>
#include <cmath>

namespace simsync::testbed {
namespace {

constexpr int kEthernetHeader = 14;  // tbf counts neither preamble nor checksum
constexpr int kIpTcpHeaders = 20 + 20 + 12;
constexpr double kPeakOverRate = 1.25;
constexpr Seconds kBurstTime{500e-6};
constexpr Seconds kPeakBurstTime{125e-6};
constexpr Seconds kQueueTime{10e-3};
constexpr std::int64_t kLeastPeakBurst = std::int64_t{5} * (kMtu + kEthernetHeader);
constexpr std::int64_t kLeastQueue = std::int64_t{64} * (kMtu + kEthernetHeader);
constexpr std::int64_t kMostSegment = 65536;

Bytes within(BytesPerSecond rate, Seconds time) {
  return Bytes{std::llround(rate.value() * time.value())};
}

}  // namespace

const char* name_of(Queues queues) {
  return queues == Queues::Fifo ? "fifo" : "fair";
}

LinkShape shape_of(BytesPerSecond rate, Queues queues) {
  LinkShape shape;
  shape.rate = BytesPerSecond{std::round(rate.value())};
  shape.peak = BytesPerSecond{std::round(kPeakOverRate * rate.value())};
  shape.peak_burst = std::max(within(rate, kPeakBurstTime), Bytes{kLeastPeakBurst});
  shape.burst = std::max(within(rate, kBurstTime), Bytes{2 * shape.peak_burst.count});
  shape.queue = std::max(within(rate, kQueueTime), Bytes{kLeastQueue});
  // tbf counts the headers of every frame, which are not part of a packet yet: 66 bytes for each 1448.
  shape.segment = std::min(Bytes{shape.peak_burst.count * 15 / 16}, Bytes{kMostSegment});
  shape.queues = queues;
  return shape;
}

double payload_share() {
  return static_cast<double>(kMtu - kIpTcpHeaders) / (kMtu + kEthernetHeader);
}

}  // namespace simsync::testbed
