#include "sim/engine/collective_run.hpp"

#include <algorithm>

#include "sim/plan/compile.hpp"

namespace simsync::detail {
namespace {

RoutedHop routed(const RouteContext& context, const Hop& hop, CollectiveAlgorithm algorithm, int first_rank) {
  const CollectiveCosts& costs = context.cluster.collective;
  const Place from = context.plan.ranks[static_cast<std::size_t>(first_rank + hop.from)];
  const Place to = context.plan.ranks[static_cast<std::size_t>(first_rank + hop.to)];
  const bool inter = from.node != to.node;
  const Path path = hop_path(context.topology, algorithm, from, to, context.folding.folded());
  RoutedHop out;
  out.inter = inter;
  out.alpha = path.latency + path.message_cost + (inter ? costs.per_step_inter : costs.per_step_intra);
  out.half = static_cast<double>(path.half_size.count);
  // Channels are streams of the network; inside a node a collective is one stream.
  out.cap = static_cast<double>(inter ? std::max(1, costs.channels) : 1) * path.stream_cap;
  double nominal = out.cap.value();
  for (const LinkId link : path.links) nominal = std::min(nominal, context.topology.links()[static_cast<std::size_t>(link)].bandwidth.value());
  out.nominal = BytesPerSecond{nominal};
  if (!path.links.empty()) out.path = context.path_of(path.links, out.cap);
  out.bytes = hop.bytes / costs.efficiency;
  out.half /= costs.efficiency;
  out.rounds = hop.rounds;
  out.pipeline = hop.pipeline;
  out.lag = hop.lag;
  out.needs = hop.needs;
  out.after = hop.after;
  return out;
}

}  // namespace

RoutedSchedule route(const RouteContext& context, CollectivePrimitive primitive, CollectiveAlgorithm algorithm, int chunks, int node) {
  GroupShape group = group_shape(context.plan);
  int first_rank = 0;
  if (node >= 0) {
    const auto [begin, end] = context.plan.cell_ranks(Scope::Node, node);
    group = {.node_begin = {0, end - begin}};
    first_rank = begin;
  }
  RoutedSchedule out;
  const auto append = [&](const CollectiveSchedule& schedule) {
    const int first_hop = static_cast<int>(out.hops.size());
    const int first_pipeline = static_cast<int>(out.pipelines.size());
    for (const Hop& hop : schedule.hops) {
      RoutedHop next = routed(context, hop, algorithm, first_rank);
      next.pipeline += first_pipeline;
      for (int& id : next.needs) id += first_hop;
      for (int& id : next.after) id += first_hop;
      out.hops.push_back(std::move(next));
    }
    out.pipelines.insert(out.pipelines.end(), schedule.pipelines.begin(), schedule.pipelines.end());
  };
  if (context.folding.folded() && node < 0) {
    for (const int cell : context.folding.cells) append(schedule_of(primitive, algorithm, group, chunks, cell));
  } else {
    append(schedule_of(primitive, algorithm, group, chunks));
  }
  out.members.resize(out.pipelines.size());
  for (std::size_t id = 0; id < out.hops.size(); ++id) {
    out.members[static_cast<std::size_t>(out.hops[id].pipeline)].push_back(static_cast<int>(id));
    for (const int need : out.hops[id].needs) out.hops[static_cast<std::size_t>(need)].unblocks.push_back(static_cast<int>(id));
    for (const int before : out.hops[id].after) out.hops[static_cast<std::size_t>(before)].unblocks_after.push_back(static_cast<int>(id));
  }
  return out;
}

Seconds RoutedSchedule::start_up(int pipeline, double payload) const {
  double alpha[2] = {0.0, 0.0};     // summed over hops inside and between nodes
  double message[2] = {0.0, 0.0};   // time of one message without contention
  double count[2] = {0.0, 0.0};
  double slowest = 0.0;
  int rounds = 0;
  for (const int id : members[static_cast<std::size_t>(pipeline)]) {
    const RoutedHop& hop = hops[static_cast<std::size_t>(id)];
    const auto kind = static_cast<std::size_t>(hop.inter ? 1 : 0);
    const double time = (hop.bytes * payload / hop.rounds + hop.half) / hop.nominal.value();
    alpha[kind] += hop.alpha.value();
    message[kind] += time;
    count[kind] += 1.0;
    slowest = std::max(slowest, time);
    rounds = hop.rounds;
  }
  const double total = count[0] + count[1];
  if (total == 0.0) return Seconds{0.0};
  const Pipeline& line = pipelines[static_cast<std::size_t>(pipeline)];
  if (line.ring) {
    // Rounds follow each other at the pace of the slowest link or of the way round, whichever is longer.
    const double way_round = (alpha[0] + alpha[1] + message[0] + message[1]) / total;
    return Seconds{rounds * std::max(0.0, way_round - slowest)};
  }
  const double passed[2] = {static_cast<double>(line.fill_intra), static_cast<double>(line.fill_inter)};
  double fill = 0.0;
  for (std::size_t kind = 0; kind < 2; ++kind)
    if (count[kind] > 0.0) fill += passed[kind] * (alpha[kind] + message[kind]) / count[kind];
  // The last hop's own message is part of its flow.
  return Seconds{passed[0] + passed[1] > 0.0 ? fill - slowest : (alpha[0] + alpha[1]) / total};
}

}  // namespace simsync::detail
