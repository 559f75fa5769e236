// How one link of the testbed is shaped: the numbers given to `tc tbf` and to the network devices.
#pragma once
#include "base/units.hpp"

namespace simsync::testbed {

/// Bytes of an Ethernet frame's payload, as on real Ethernet.
inline constexpr int kMtu = 1500;

/// How a port serves what waits in it.
enum class Queues {
  Fifo,  ///< in the order of its arrival
  Fair,  ///< the other hosts in turn, `peak_burst` of each
};
const char* name_of(Queues queues);

/// One direction of a link. The reasons for the numbers stand in hw/README.md.
struct LinkShape {
  BytesPerSecond rate;  ///< whole bytes per second, Ethernet headers included
  BytesPerSecond peak;  ///< never exceeded for longer than `peak_burst` lasts
  Bytes burst;          ///< may be sent faster than `rate`, after a pause; the first bucket of tbf
  Bytes peak_burst;     ///< passes at once; the second bucket of tbf
  Bytes queue;          ///< waits at most in a queue in front of the bucket; what comes beyond is dropped
  Bytes segment;        ///< largest packet that TCP hands down before it is cut into frames: fits `peak_burst`
  Queues queues = Queues::Fifo;
};

LinkShape shape_of(BytesPerSecond rate, Queues queues = Queues::Fifo);
/// Share of `rate` that TCP payload reaches: headers of Ethernet, IP, TCP and its timestamps in every frame.
double payload_share();

}  // namespace simsync::testbed
