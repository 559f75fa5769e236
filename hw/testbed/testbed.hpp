// A cluster made of network namespaces on this machine: real kernel TCP over links of a chosen rate.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/units.hpp"
#include "platforms/cluster.hpp"

namespace simsync {

/// What to build. Host k gets `rates[k]`; the last rate serves the hosts beyond the list.
struct TestbedRequest {
  int hosts = 2;
  std::vector<BytesPerSecond> rates;  ///< of each direction of a host's link
};

/// Owns namespaces, veth pairs and a bridge; the destructor removes them. Not copyable.
class Testbed {
public:
  /// Sweeps what a testbed of a dead process left, then builds. As an ordinary user, inside a user namespace that it
  /// enters first. @throws CapabilityError naming the missing right or tool, InputError for absurd numbers.
  explicit Testbed(const TestbedRequest& request);
  ~Testbed();
  Testbed(const Testbed&) = delete;
  Testbed& operator=(const Testbed&) = delete;

  [[nodiscard]] int hosts() const;
  [[nodiscard]] std::string address(int host) const;  ///< IPv4 address of a host inside the testbed
  /// Moves the calling process (a fresh child with a single thread) into a host. @throws CapabilityError.
  void enter(int host) const;
  /// The cluster file's content: what was built, with nominal numbers and one emulated device per host.
  [[nodiscard]] Cluster cluster() const;

private:
  struct State;
  State* state_;
};

}  // namespace simsync
