#include "sim/plan/closed_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.hpp"
#include "platforms/topology.hpp"

namespace simsync {
namespace {

/// Adds up what the first rank's round takes where.
class Demands {
public:
  Demands(const Plan& plan, const Cluster& cluster)
      : plan_(plan), cluster_(cluster), topology_(cluster, nodes_of(plan), gpus_in_use(plan.ranks)) {}

  ClosedNetwork sum() {
    if (plan_.progress.backups > 0) throw PlanError("the closed form knows no backup workers");
    for (const Op& op : plan_.ops) add(op);
    ClosedNetwork out{.delay = delay_, .stations = {}};
    for (const auto& [name, demand] : stations_)
      if (demand.value() > 0.0) out.stations.push_back({name, demand});
    return out;
  }

private:
  static std::vector<int> nodes_of(const Plan& plan) {
    if (plan.rank_count() > static_cast<int>(plan.nodes.size()))
      throw PlanError("several workers share a node: the closed form needs each on one of its own");
    std::vector<int> nodes{plan.nodes.front()};
    for (const Place& server : plan.servers) {
      if (std::find(plan.nodes.begin(), plan.nodes.end(), server.node) != plan.nodes.end())
        throw PlanError(name_of(server) + " is a worker, too: the closed form needs servers of their own");
      nodes.push_back(server.node);
    }
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
  }

  void add(const Op& op) {
    switch (op.kind()) {
      case OpKind::Compute:
        delay_ += cluster_.group_of(plan_.ranks.front().node).compute_slowdown * op.compute().duration;
        return;
      case OpKind::Transfer:
        return transfer(op.transfer());
      case OpKind::HostWork:
        return work(op);
      case OpKind::Collective:
        throw PlanError("the closed form knows no collectives");
    }
  }

  [[nodiscard]] Place place_of(const End& end) const {
    if (end.is_fixed()) return end.place;
    const Place rank = plan_.ranks.front();
    return end.kind == End::Kind::Device ? rank : Place{rank.node, -1};
  }

  /// The request before a read and the answer to a push take the latency once more.
  void transfer(const Transfer& op) {
    const Place from = place_of(op.from);
    const Place to = place_of(op.to);
    const Path path = topology_.path(from, to);
    const double bytes = op.bytes + static_cast<double>(op.messages) * static_cast<double>(path.half_size.count);
    delay_ += op.setup + path.latency + static_cast<double>(op.messages) * path.message_cost;
    if (from.node != to.node) delay_ += path.latency;
    if (op.asks_host()) delay_ += cluster_.group_of(from.node).cpu.dispatch_latency;
    double slowest = path.stream_cap.value();
    Seconds shared;
    const std::string nic = fmt::format("node{}/nic", (op.to.is_server() ? to : from).node);
    for (const LinkId id : path.links) {
      const Link& link = topology_.links()[static_cast<std::size_t>(id)];
      slowest = std::min(slowest, link.bandwidth.value());
      if (from.node == to.node || !link.name.starts_with(nic)) continue;
      shared = Seconds{bytes / link.bandwidth.value()};
      stations_[link.name] += shared;
    }
    // The worker's own links and a stream's cap hold up nobody else.
    delay_ += std::max(Seconds{0.0}, Seconds{bytes / slowest} - shared);
  }

  void work(const Op& op) {
    const HostWork& host = op.host();
    if (!host.at.is_server() || op.queue < 0) {
      delay_ += host.duration;
      return;
    }
    // What is done once for all workers is a part of each one's round.
    const auto rounds = static_cast<double>(plan_.grouping(op.grouping).ranks(0).size());
    const int threads = std::max(1, plan_.queues[static_cast<std::size_t>(op.queue)].slots);
    const Seconds demand = (host.threads / (threads * rounds)) * host.duration;
    stations_[name_of(host.at.place) + " threads"] += demand;
    delay_ += host.duration - demand;
  }

  const Plan& plan_;
  const Cluster& cluster_;
  Topology topology_;
  Seconds delay_;
  std::map<std::string, Seconds> stations_;
};

}  // namespace

Seconds ClosedNetwork::round() const {
  Seconds sum = delay;
  for (const Station& station : stations) sum += station.demand;
  return sum;
}

const Station* ClosedNetwork::bottleneck() const {
  const auto most = std::max_element(stations.begin(), stations.end(),
                                     [](const Station& a, const Station& b) { return a.demand < b.demand; });
  return most == stations.end() ? nullptr : &*most;
}

std::vector<double> throughput(const ClosedNetwork& network, int workers) {
  std::vector<double> queue(network.stations.size(), 0.0);
  std::vector<double> out;
  for (int n = 1; n <= workers; ++n) {
    std::vector<double> response;
    double round = network.delay.value();
    for (std::size_t j = 0; j < queue.size(); ++j) {
      response.push_back(network.stations[j].demand.value() * (1.0 + queue[j]));
      round += response.back();
    }
    out.push_back(n / round);
    for (std::size_t j = 0; j < queue.size(); ++j) queue[j] = out.back() * response[j];
  }
  return out;
}

double throughput_bound(const ClosedNetwork& network, int workers) {
  const double alone = workers / network.round().value();
  const Station* most = network.bottleneck();
  return most == nullptr ? alone : std::min(alone, 1.0 / most->demand.value());
}

double saturation(const ClosedNetwork& network, Seconds alone) {
  const Station* most = network.bottleneck();
  return most == nullptr ? std::numeric_limits<double>::infinity() : alone / most->demand;
}

ClosedNetwork closed_network(const Plan& plan, const Cluster& cluster) {
  return Demands(plan, cluster).sum();
}

}  // namespace simsync
