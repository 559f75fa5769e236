#include "sim/engine/devices.hpp"

#include <algorithm>

namespace simsync::detail {

Devices::Devices(const Scene& scene, FlowNetwork& network, Agenda& agenda)
    : scene_(scene),
      network_(network),
      agenda_(agenda),
      beside_collective_(1.0 - scene.cluster.collective.interference),
      devices_(scene.groups.places().size()) {
  for (std::size_t r = 0; r < devices_.size(); ++r) {
    const Place& place = scene.groups.places()[r];
    devices_[r].slowdown = scene.cluster.group_of(place.node).compute_slowdown;
    devices_[r].links = scene.topology.links_beside_compute(place);
  }
}

void Devices::start(const Instance& compute) {
  const int rank = rank_of(compute);
  Device& own = device(rank);
  own.running = compute;
  own.remaining = own.slowdown * compute_time(scene_.plan, scene_.op_of(compute), rank, compute.iteration).value();
  own.since = agenda_.now().value();
  arm(own, compute);
  share_links(own);
}

bool Devices::ended(const Pending& event) {
  const int rank = rank_of(event.instance);
  Device& own = device(rank);
  if (own.epoch != event.epoch) return false;
  own.running.reset();
  computed_.push_back(rank);
  return true;
}

/// Simulated ranks are numbered anew, and so are the groups of ranks that compute apart from others.
int Devices::rank_of(const Instance& compute) const {
  return scene_.groups.ranks(scene_.op_of(compute).grouping, compute.group).front();
}

void Devices::instant_over() {
  for (const int rank : computed_) share_links(device(rank));
  computed_.clear();
}

void Devices::share_links(Device& device) {
  if (device.running.has_value() == device.holds_up_links) return;
  device.holds_up_links = device.running.has_value();
  for (const auto& [link, left] : device.links)
    network_.set_bandwidth(
        link, device.holds_up_links ? left : scene_.topology.links()[static_cast<std::size_t>(link)].bandwidth);
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
