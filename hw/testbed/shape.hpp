// How one link of the testbed is shaped: the numbers given to `tc tbf` and to the network devices.
#pragma once
#include "base/units.hpp"

namespace simsync::testbed {

/// Bytes of an Ethernet frame's payload, as on real Ethernet.
inline constexpr int kMtu = 1500;

/// One direction of a link. The reasons for the numbers stand in hw/README.md.
struct LinkShape {
  BytesPerSecond rate;  ///< whole bytes per second, Ethernet headers included
  Bytes burst;          ///< passes at once after a pause; the bucket of tbf
  Bytes queue;          ///< waits at most in front of the bucket; what comes beyond is dropped
  Bytes segment;        ///< largest packet that TCP hands down before it is cut into frames: half of `burst`
};

LinkShape shape_of(BytesPerSecond rate);
/// Share of `rate` that TCP payload reaches: headers of Ethernet, IP, TCP and its timestamps in every frame.
double payload_share();

}  // namespace simsync::testbed
