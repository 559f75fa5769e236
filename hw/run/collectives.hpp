// Collectives between the ranks of a run, behind one interface: Gloo on CPUs, NCCL on GPUs.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "sim/plan/plan.hpp"

namespace simsync {

/// A table that all ranks share while they find each other.
class KeyValueStore {
public:
  virtual ~KeyValueStore() = default;
  virtual void set(const std::string& key, const std::string& value) = 0;
  /// Waits until the key is set. @throws std::runtime_error after the run's timeout.
  virtual std::string get(const std::string& key) = 0;
};

/// One rank's end of all collectives. Calls with different tags may run at the same time, from different threads.
class CollectiveBackend {
public:
  virtual ~CollectiveBackend() = default;
  /// Makes what a later run() of this size needs. All ranks call it in the same order. @throws CapabilityError when the
  /// backend lacks the algorithm.
  virtual void prepare(const Op& op, std::uint32_t tag, std::span<float> in, std::span<float> out) = 0;
  /// Returns when `out` of this rank is complete. AllReduce: in and out of equal size; AllGather: `out` has the
  /// contributions of all ranks in order. @throws std::runtime_error when a peer is gone.
  virtual void run(const Op& op, std::uint32_t tag, std::span<float> in, std::span<float> out) = 0;
};

struct CollectiveRequest {
  int rank = 0;
  int ranks = 1;
  std::string address;  ///< own IP address: the interface to use
  double timeout_s = 30.0;
};

/// Connects all ranks with each other. @throws CapabilityError when that fails.
std::unique_ptr<CollectiveBackend> make_gloo(const CollectiveRequest& request, KeyValueStore& store);

}  // namespace simsync
