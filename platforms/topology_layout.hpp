// How Topology keeps the links of nodes that are alike. For its own implementation.
#pragma once
#include <limits>
#include <optional>

#include "base/units.hpp"
#include "platforms/gpu_mesh.hpp"

namespace simsync::detail {

/// What crossing a link adds to a Path besides the link.
struct LinkCosts {
  Seconds latency;
  Seconds message_cost;
  Bytes half_size;
  BytesPerSecond cap{std::numeric_limits<double>::infinity()};
};

/// The links of one kind in a node: `first` belongs to unit 0 (GPU, switch or socket) and counts from the node's
/// first link; every unit has `step` of them, out before in. first = -1: the node has none.
struct LinkRow {
  int first = -1;
  int step = 0;
  LinkCosts costs;
  PortService service;
  double rate_beside_compute = 1.0;  ///< LinkClass::rate_beside_compute
  [[nodiscard]] bool exists() const { return first >= 0; }
  [[nodiscard]] int out(int unit) const { return first + unit * step; }
  [[nodiscard]] int in(int unit) const { return first + unit * step + step - 1; }
};

/// One node of a group.
struct NodeLayout {
  int gpus = 0;
  int gpus_per_switch = 0;
  int switches_per_socket = 0;
  bool peer_to_peer = true;
  bool nic_below_switch = false;  ///< GPUDirect traffic reaches a NIC without the switch uplink
  bool gpu_direct = false;
  int rails = 0;  ///< 0: GPUs use all NICs alike
  std::optional<GpuMesh> mesh;
  LinkRow nic, rail, memory, port, pcie, uplink, socket;
  int count = 0;  ///< links of the node

  /// The NIC that a GPU uses, or the NICs where it has several: the nearest.
  [[nodiscard]] int rail_of(int gpu) const { return gpu * rails / gpus; }

  [[nodiscard]] int switch_of(int gpu) const { return gpus_per_switch > 0 ? gpu / gpus_per_switch : gpu; }
  [[nodiscard]] int socket_of(int gpu) const {
    return switches_per_socket > 0 ? switch_of(gpu) / switches_per_socket : 0;
  }
};

}  // namespace simsync::detail
