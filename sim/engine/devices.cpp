#include "sim/engine/devices.hpp"

#include <algorithm>

namespace simsync::detail {

Devices::Devices(const Plan& plan, const Cluster& cluster, const Groups& groups, const Topology& topology,
                 FlowNetwork& network, Agenda& agenda)
    : plan_(plan),
      topology_(topology),
      network_(network),
      agenda_(agenda),
      beside_collective_(1.0 - cluster.collective.interference),
      devices_(groups.places().size()) {
  for (std::size_t r = 0; r < devices_.size(); ++r) {
    devices_[r].slowdown = cluster.group_of(groups.places()[r].node).compute_slowdown;
    devices_[r].links = topology.links_beside_compute(groups.places()[r]);
  }
}

void Devices::start(const Instance& compute) {
  Device& own = device(compute.group);
  const Op& op = plan_.ops[static_cast<std::size_t>(compute.op)];
  own.running = compute;
  own.remaining = compute_time(plan_, op, compute.group, compute.iteration).value() * own.slowdown;
  own.since = agenda_.now().value();
  arm(own, compute);
  share_links(own);
}

bool Devices::ended(const Pending& event) {
  Device& own = device(event.instance.group);
  if (own.epoch != event.epoch) return false;
  own.running.reset();
  computed_.push_back(event.instance.group);
  return true;
}

void Devices::instant_over() {
  for (const int rank : computed_) share_links(device(rank));
  computed_.clear();
}

void Devices::share_links(Device& device) {
  if (device.running.has_value() == device.holds_up_links) return;
  device.holds_up_links = device.running.has_value();
  for (const auto& [link, left] : device.links)
    network_.set_bandwidth(link,
                           device.holds_up_links ? left : topology_.links()[static_cast<std::size_t>(link)].bandwidth);
}

void Devices::arm(Device& device, const Instance& compute) {
  const double speed = device.collectives > 0 ? beside_collective_ : 1.0;
  ++device.epoch;
  agenda_.after(Seconds{device.remaining / speed},
                {.event = Event::ComputeEnds, .instance = compute, .epoch = device.epoch});
}

void Devices::collective(int rank, int change) {
  if (beside_collective_ >= 1.0) return;
  Device& own = device(rank);
  const bool slowed = own.collectives > 0;
  own.collectives += change;
  if (slowed == (own.collectives > 0) || !own.running) return;
  const double now = agenda_.now().value();
  own.remaining = std::max(0.0, own.remaining - (now - own.since) * (slowed ? beside_collective_ : 1.0));
  own.since = now;
  arm(own, *own.running);
}

double Devices::slowest_but(int left_out) const {
  std::vector<double> slowdowns;
  for (const Device& device : devices_) slowdowns.push_back(device.slowdown);
  const auto needed = slowdowns.end() - 1 - left_out;
  std::nth_element(slowdowns.begin(), needed, slowdowns.end());
  return *needed;
}

}  // namespace simsync::detail
