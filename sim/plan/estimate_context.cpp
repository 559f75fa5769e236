#include "sim/plan/estimate_context.hpp"

#include "platforms/topology.hpp"
#include "sim/plan/plan_writer.hpp"

namespace simsync {
namespace detail {
namespace {

Wire wire_along(const Topology& topology, const Path& path) {
  Wire out;
  for (const LinkId link : path.links)
    out.rate = std::min(out.rate, topology.links()[static_cast<std::size_t>(link)].bandwidth.value());
  out.cap = path.stream_cap.value();
  out.latency = path.latency.value();
  out.message = path.message_cost.value();
  out.half = static_cast<double>(path.half_size.count);
  return out;
}

/// Ranks of the node that has the most of them.
std::vector<Place> fullest_node(const std::vector<Place>& ranks, int per_node) {
  for (auto begin = ranks.begin(); begin != ranks.end();) {
    const auto end = std::find_if(begin, ranks.end(), [&](const Place& rank) { return rank.node != begin->node; });
    if (end - begin == per_node) return {begin, end};
    begin = end;
  }
  return ranks;
}

}  // namespace

EstimateContext::EstimateContext(const Model& m, const Profile& p, const Cluster& c, int workers)
    : model(m), profile(p), cluster(c), ranks(c.workers(workers)), backward_order(m.backward_order()), collectives_(c) {
  Plan shape;
  shape.set_ranks(ranks);
  nodes = shape.nodes;
  for (int node = 0; node < node_count(); ++node)
    per_node = std::max(per_node, static_cast<int>(shape.grouping(kEachNode).ranks(node).size()));
  double variation = 0.0;
  host = c.group_of(nodes.front()).cpu;
  double slowest = 0.0;
  for (const int node : nodes) {
    const NodeGroup& group = c.group_of(node);
    slowest = std::max(slowest, group.compute_slowdown);
    variation = std::max(variation, c.devices.at(group.device).compute_variation);
    host.threads = std::min(host.threads, group.cpu.threads);
    host.sum_rate = std::min(host.sum_rate, group.cpu.sum_rate);
    if (group.cpu.memory_bandwidth && (!host.memory_bandwidth || *group.cpu.memory_bandwidth < *host.memory_bandwidth))
      host.memory_bandwidth = group.cpu.memory_bandwidth;
  }
  if (p.variation <= 0.0) slowest *= 1.0 + variation * expected_largest(workers);
  slowdown = slowest;
  variables_of.resize(m.layer_count());
  for (const VariableId id : backward_order) variables_of[m.variable(id).layer].push_back(id);
  for (LayerId layer = 0; layer < m.layer_count(); ++layer) {
    const bool again = !p.recomputed.empty() && p.recomputed[layer];
    const double ahead = p.layers[layer].forward.value();
    forward.push_back(slowdown * ahead);
    backward.push_back(slowdown * (p.layers[layer].backward.value() + (again ? ahead : 0.0)));
  }
  update = p.update.value();
  library = library_algorithm(c);
  all = group_costs(c, ranks);
  inside = group_costs(c, fullest_node(ranks, per_node));
  const Topology topology(c, c.node_count());
  copy = wire_along(topology, topology.path(ranks.front(), {ranks.front().node, -1}));
  for (int node = 0; node < c.node_count(); ++node) {
    const int other = node == ranks.front().node ? (node + 1) % c.node_count() : ranks.front().node;
    const bool has_network = other != node && !c.group_of(node).nic_link.empty();
    const Wire wire = has_network ? wire_along(topology, topology.path({other, -1}, {node, -1})) : Wire{};
    link_rate.push_back(wire.rate);
    if (node == nodes.back()) between = wire;
  }
}

const GroupCosts& EstimateContext::shard_group(int size) const {
  if (size == static_cast<int>(ranks.size())) return all;
  const auto found = shard_groups_.find(size);
  if (found != shard_groups_.end()) return found->second;
  return shard_groups_.emplace(size, group_costs(cluster, {ranks.begin(), ranks.begin() + size})).first->second;
}

const GroupCosts& EstimateContext::replica_group(int distance) const {
  const auto found = replica_groups_.find(distance);
  if (found != replica_groups_.end()) return found->second;
  std::vector<Place> members;
  for (std::size_t rank = 0; rank < ranks.size(); rank += static_cast<std::size_t>(distance))
    members.push_back(ranks[rank]);
  return replica_groups_.emplace(distance, group_costs(cluster, members)).first->second;
}

}  // namespace detail

StepEstimator::StepEstimator(const Model& model, const Profile& profile, const Cluster& cluster, int workers)
    : context_(std::make_unique<detail::EstimateContext>(model, profile, cluster, workers)) {}

StepEstimator::~StepEstimator() = default;
StepEstimator::StepEstimator(StepEstimator&&) noexcept = default;

Evaluation StepEstimator::estimate(const Strategy& strategy) const {
  return detail::estimate_step(*context_, strategy);
}

}  // namespace simsync
