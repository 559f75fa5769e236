// What a rank's device does for real. Without one, compute is a deadline and copies to the host are nothing.
#pragma once
#include <functional>
#include <memory>

#include "base/units.hpp"
#include "hw/run/collectives.hpp"

namespace simsync {

class RankDevice {
public:
  enum class Direction { ToHost, ToDevice };

  virtual ~RankDevice() = default;
  /// Keeps the device busy; returns when it has ended. Called from one thread. @throws std::runtime_error.
  virtual void compute(Seconds length) = 0;
  /// Moves bytes between the device and its host; returns when they are there. Called from one thread, which may be
  /// another than that of `compute`. @throws std::runtime_error.
  virtual void copy(Bytes size, Direction direction) = 0;
};

/// A device, and the collectives between the devices of all ranks; null where the plan has none.
struct DeviceOfRank {
  std::unique_ptr<RankDevice> device;
  std::unique_ptr<CollectiveBackend> collectives;
};

/// What a rank makes its device with: `gpu` is its number on the node as the plan has it; `collectives` whether the
/// plan has any.
struct DeviceRequest {
  CollectiveRequest group;
  int gpu = 0;
  bool collectives = false;
};
using DeviceFactory = std::function<DeviceOfRank(const DeviceRequest& request, KeyValueStore& store)>;

/// A GPU: kernels of the length of each compute op, NCCL, copies over PCIe. A rank takes the GPU of its number, or the
/// only one that it is shown (as srun and mpirun can bind them). @throws CapabilityError when this build has no CUDA or
/// this host no such GPU.
DeviceOfRank make_gpu(const DeviceRequest& request, KeyValueStore& store);

}  // namespace simsync
