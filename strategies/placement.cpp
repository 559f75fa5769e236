#include "strategies/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace simsync {

std::vector<Place> Hosts::all() const {
  std::vector<Place> merged;
  merged.reserve(workers.size() + cpu_only.size());
  std::merge(workers.begin(), workers.end(), cpu_only.begin(), cpu_only.end(), std::back_inserter(merged));
  return merged;
}

Hosts hosts_of(const Cluster& cluster, int workers) {
  Hosts hosts;
  for (const Place& worker : cluster.workers(workers)) {
    if (hosts.workers.empty() || hosts.workers.back().node != worker.node) hosts.workers.push_back({worker.node, -1});
  }
  int node = 0;
  for (const auto& group : cluster.groups) {
    for (int k = 0; k < group.count; ++k, ++node) {
      if (group.gpus == 0) hosts.cpu_only.push_back({node, -1});
    }
  }
  return hosts;
}

Placement::Placement(std::vector<Place> servers, std::vector<double> weights)
    : servers_(std::move(servers)), shares_(std::move(weights)), loads_(servers_.size(), 0.0) {
  if (servers_.empty()) throw PlanError("no host can serve parameters: the list of servers is empty");
  if (shares_.empty()) shares_.assign(servers_.size(), 1.0);
  SIMSYNC_ASSERT(shares_.size() == servers_.size());
  const double sum = std::accumulate(shares_.begin(), shares_.end(), 0.0);
  SIMSYNC_ASSERT(sum > 0.0);
  for (auto& share : shares_) share /= sum;
}

Place Placement::least_loaded(double bytes) {
  const auto least = std::min_element(loads_.begin(), loads_.end());
  *least += bytes;
  total_ += bytes;
  return servers_[static_cast<std::size_t>(least - loads_.begin())];
}

Place Placement::next_in_turn() {
  const Place server = servers_[turn_];
  turn_ = (turn_ + 1) % servers_.size();
  return server;
}

std::vector<Place> Placement::deal(std::size_t shards, double bytes) {
  std::vector<std::size_t> order(servers_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return loads_[a] < loads_[b]; });
  std::vector<Place> places;
  places.reserve(shards);
  for (std::size_t k = 0; k < shards; ++k) {
    const std::size_t server = order[k % order.size()];
    places.push_back(servers_[server]);
    loads_[server] += bytes / static_cast<double>(shards);
  }
  total_ += bytes;
  return places;
}

Place Placement::largest_deficit(double bytes) {
  total_ += bytes;
  std::size_t best = servers_.size();
  double best_deficit = 0.0;
  for (std::size_t s = 0; s < servers_.size(); ++s) {
    if (shares_[s] <= 0.0) continue;
    const double deficit = total_ * shares_[s] - loads_[s];
    if (best == servers_.size() || deficit > best_deficit) {
      best = s;
      best_deficit = deficit;
    }
  }
  loads_[best] += bytes;
  return servers_[best];
}

std::vector<double> nic_bandwidths(const Cluster& cluster, const std::vector<Place>& servers) {
  std::vector<double> bandwidths;
  bandwidths.reserve(servers.size());
  for (const Place& server : servers) {
    const NodeGroup& group = cluster.group_of(server.node);
    const auto link = cluster.links.find(group.nic_link);
    if (link == cluster.links.end())
      throw PlanError(fmt::format("node group '{}' names the link class '{}', which the cluster lacks", group.name,
                                  group.nic_link));
    bandwidths.push_back(link->second.bandwidth.value() * group.nics / group.nic_slowdown);
  }
  return bandwidths;
}

}  // namespace simsync
