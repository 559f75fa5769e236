// The compute streams of the simulated ranks. Private to sim/engine.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/engine/agenda.hpp"
#include "sim/engine/scene.hpp"

namespace simsync::detail {

/// Compute that collectives beside it slow down (CollectiveCosts::interference), and that slows down links of its
/// device (Topology::links_beside_compute). All references must outlive it.
class Devices {
public:
  Devices(const Scene& scene, FlowNetwork& network, Agenda& agenda);

  void start(const Instance& compute);
  /// False: it ends at another time, because the device has become slower or faster since.
  bool ended(const Pending& event);
  /// All that happens at this instant has happened.
  void instant_over();
  /// A collective begins (+1) or ends (-1) on the device of a rank.
  void collective(int rank, int change);
  /// Slowdown of the device that `left_out` others do not exceed.
  [[nodiscard]] double slowest_but(int left_out) const;

private:
  struct Device {
    std::optional<Instance> running;
    double remaining = 0.0;  ///< seconds of it at full speed, at `since`
    double since = 0.0;
    std::uint32_t epoch = 0;  ///< grows when the end of `running` moves
    int collectives = 0;      ///< that run on the device now
    double slowdown = 1.0;
    /// Its own links whose rate falls while it computes, with the rate that is then left.
    std::vector<std::pair<int, BytesPerSecond>> links;
    bool holds_up_links = false;
  };
  [[nodiscard]] int rank_of(const Instance& compute) const;
  [[nodiscard]] Device& device(int rank) { return devices_[static_cast<std::size_t>(rank)]; }
  void arm(Device& device, const Instance& compute);
  /// Gives the device's links the rate that they have while it computes, or while it does not.
  void share_links(Device& device);

  Scene scene_;
  FlowNetwork& network_;
  Agenda& agenda_;
  double beside_collective_;  ///< speed, of 1
  std::vector<Device> devices_;
  std::vector<int> computed_;  ///< ranks whose compute ended at this instant
};

}  // namespace simsync::detail
