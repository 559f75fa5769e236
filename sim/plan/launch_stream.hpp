// What the host of each rank launches for its device. Private to sim/plan.
#pragma once
#include "sim/plan/plan_writer.hpp"

namespace simsync::detail {

/// Host work of the ranks of PlanWriter::each, one after another, as HostCosts say. It is written in as few ops as what
/// waits for it allows: what was added since the last flush is one op.
class LaunchStream {
public:
  explicit LaunchStream(PlanWriter& writer);

  [[nodiscard]] bool on() const { return costs_.any(); }
  void add_layer() { pending_ += costs_.launch; }
  void add_collective(int ranks) { pending_ += static_cast<double>(ranks) * costs_.check; }
  /// The op at whose end all that was added is launched.
  OpId flush();
  /// The op at whose end the host has sent what announces a transfer of what `device`, an op of the device, gives.
  OpId announce(OpId device);
  /// The first of the next step waits for the last of this one, and with HostCosts::waits for the device
  /// (PlanWriter::first_launch).
  void repeat();

private:
  PlanWriter& w_;
  HostCosts costs_;
  QueueId queue_ = -1;
  Seconds pending_{0};
  OpId first_ = -1;
  OpId previous_ = -1;
};

}  // namespace simsync::detail
