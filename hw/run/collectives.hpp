// Collectives between the ranks of a run, behind one interface: Gloo on CPUs, NCCL on GPUs.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

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

/// Memory of one collective of one rank, the same in every step; collective_results.hpp says what belongs where. Parts
/// of a payload or contributions to it lie in the order of the group's ranks.
struct CollectiveBuffers {
  std::span<float> in;
  std::span<float> out;
  std::vector<std::size_t> changing;   ///< positions of `in` that differ from step to step
  std::vector<std::size_t> looked_at;  ///< positions of `out` that are compared in every step
};

/// One rank's end of all collectives. Calls with different tags may run at the same time, from different threads.
class CollectiveBackend {
public:
  virtual ~CollectiveBackend() = default;
  /// Makes what a later run() of this collective needs. All ranks call it in the same order. @throws CapabilityError
  /// when the backend lacks the algorithm.
  virtual void prepare(const Op& op, std::uint32_t tag, const CollectiveBuffers& buffers) = 0;
  /// Returns when `out` of this rank is complete: with `whole` all of it, else at least the positions that are looked
  /// at, because the result lies on a device. @throws std::runtime_error when a peer is gone.
  virtual void run(const Op& op, std::uint32_t tag, const CollectiveBuffers& buffers, bool whole) = 0;
};

struct CollectiveRequest {
  int rank = 0;
  int ranks = 1;
  std::string address;  ///< own IP address: the interface to use
  double timeout_s = 30.0;
  /// By GroupingId: the ranks of the group that `rank` is in, ascending. kWholeJob needs no entry.
  std::vector<std::vector<int>> groups = {};
};

/// Connects all ranks with each other. @throws CapabilityError when that fails.
std::unique_ptr<CollectiveBackend> make_gloo(const CollectiveRequest& request, KeyValueStore& store);

}  // namespace simsync
