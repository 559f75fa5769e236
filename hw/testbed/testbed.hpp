// A cluster made of network namespaces on this machine: real kernel TCP over links of a chosen rate.
#pragma once
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hw/testbed/shape.hpp"
#include "platforms/cluster.hpp"

namespace simsync {

inline constexpr int kMaxTestbedHosts = 64;

/// What to build. Host k gets `rates[k]`; the last rate serves the hosts beyond the list.
struct TestbedRequest {
  int hosts = 2;                      ///< workers, one emulated device each
  std::vector<BytesPerSecond> rates;  ///< of each direction of a host's link, Ethernet headers included
  int server_hosts = 0;               ///< hosts without a device, for parameter servers; numbered after the workers
  testbed::Queues queues = testbed::Queues::Fifo;  ///< of every port: a host's own, and the switch's towards it
};

/// The value of `--rate`: `1Gbps` for all hosts, or one per host as in `1Gbps,500Mbps`. @throws InputError.
std::vector<BytesPerSecond> parse_rates(const std::string& text);
/// The value of `--queues`, `fifo` or `fair`. @throws InputError.
testbed::Queues parse_queues(const std::string& text);

/// The cluster that a testbed of this request would be; builds nothing. @throws InputError for absurd numbers.
Cluster described_testbed(const TestbedRequest& request);

/// Owns namespaces, veth pairs and a bridge. The destructor removes them and ends whoever is still inside; a small
/// keeper process does so when this process ends without it, by a signal or otherwise. Not copyable.
class Testbed {
public:
  /// Sweeps what a testbed of a dead process left, then builds. As an ordinary user, inside a user namespace that the
  /// process enters first and does not leave again; this must come before the process starts a thread.
  /// @throws CapabilityError naming the missing right or tool, InputError for absurd numbers.
  explicit Testbed(const TestbedRequest& request);
  ~Testbed();
  Testbed(const Testbed&) = delete;
  Testbed& operator=(const Testbed&) = delete;

  [[nodiscard]] int hosts() const;                           ///< workers and servers
  [[nodiscard]] std::string address(int host) const;         ///< IPv4 address of a host inside the testbed
  [[nodiscard]] std::string namespace_name(int host) const;  ///< as `ip netns` shows it
  /// Moves the calling process (a fresh child with a single thread) into a host. @throws CapabilityError.
  void enter(int host) const;
  /// The cluster file's content: what was built, with nominal numbers, one group per host and one emulated device per
  /// worker.
  [[nodiscard]] Cluster cluster() const;

private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace simsync
