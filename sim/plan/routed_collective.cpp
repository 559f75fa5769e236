#include "sim/plan/routed_collective.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace simsync::detail {
namespace {

constexpr int kMeanBits = 40;  ///< of a mean message's cost that are kept: 1e-12

RoutedHop routed(const RouteContext& context, const Hop& hop, const ScheduleKey& key, const GroupMembers& group) {
  const CollectiveCosts costs = costs_of(context.cluster, key.protocol);
  const bool inter = group.shape.node_of(hop.from) != group.shape.node_of(hop.to);
  const auto [path, rate] = group.path(context.topology, costs, key.kind.algorithm, hop, context.folded);
  RoutedHop out;
  out.from = hop.from;
  out.to = hop.to;
  out.inter = inter;
  out.overlap = !key.protocol.empty() && costs.protocols.at(key.protocol).overlap;
  out.alpha = path.latency + path.message_cost + (inter ? costs.per_step_inter : costs.per_step_intra);
  out.half = static_cast<double>(path.half_size.count);
  out.cap = rate;
  double narrow = std::numeric_limits<double>::infinity();
  for (const LinkId link : path.links)
    narrow = std::min(narrow, context.topology.links()[static_cast<std::size_t>(link)].bandwidth.value());
  out.narrow = BytesPerSecond{narrow};
  out.nominal = BytesPerSecond{std::min(narrow, out.cap.value())};
  if (!path.links.empty()) out.path = context.path_of(path.links, out.cap);
  out.links = path.links;
  out.bytes = hop.bytes / costs.efficiency;
  out.rounds = hop.rounds;
  out.pipeline = hop.pipeline;
  out.lag = hop.lag;
  out.needs = hop.needs;
  out.after = hop.after;
  return out;
}

/// Position of a node among those that have these ranks; -1: it has none of them.
int place_in_group(const Plan& plan, std::span<const int> ranks, int node) {
  const Grouping& nodes = plan.grouping(kEachNode);
  int place = -1;
  int last = -1;
  for (const int rank : ranks) {
    if (nodes.group_of(rank) != last) ++place;
    last = nodes.group_of(rank);
    if (last == node) return place;
  }
  return -1;
}

}  // namespace

GroupMembers::GroupMembers(const Plan& plan, std::span<const int> all) : ranks(all), shape(group_shape(plan, all)) {
  for (const int rank : all) places.push_back(plan.ranks[static_cast<std::size_t>(rank)]);
  for (std::size_t node = 0; node + 1 < shape.node_begin.size(); ++node) {
    auto& here = gpus.emplace_back();
    for (int i = shape.node_begin[node]; i < shape.node_begin[node + 1]; ++i)
      here.push_back(places[static_cast<std::size_t>(i)].gpu);
  }
}

HopPath GroupMembers::path(const Topology& topology, const CollectiveCosts& costs, CollectiveAlgorithm algorithm,
                           const Hop& hop, bool loop) const {
  const HopEnds ends{places[static_cast<std::size_t>(hop.from)], places[static_cast<std::size_t>(hop.to)],
                     gpus[static_cast<std::size_t>(shape.node_of(hop.from))], loop};
  return hop_path(topology, costs, algorithm, ends);
}

RoutedSchedule route(const RouteContext& context, const ScheduleKey& key) {
  const std::span<const int> ranks = context.plan.grouping(key.grouping).ranks(key.group);
  const GroupMembers members(context.plan, ranks);
  const GroupShape& group = members.shape;
  RoutedSchedule out;
  const auto append = [&](const CollectiveSchedule& schedule) {
    const int first_hop = static_cast<int>(out.hops.size());
    const int first_pipeline = static_cast<int>(out.pipelines.size());
    for (const Hop& hop : schedule.hops) {
      RoutedHop next = routed(context, hop, key, members);
      next.pipeline += first_pipeline;
      for (int& id : next.needs) id += first_hop;
      for (int& id : next.after) id += first_hop;
      out.hops.push_back(std::move(next));
    }
    out.pipelines.insert(out.pipelines.end(), schedule.pipelines.begin(), schedule.pipelines.end());
  };
  const auto made = [&](int only_node) { return schedule_of(key.kind, group, key.chunks, only_node); };
  if (context.folded && group.nodes() > 1) {
    for (const int node : context.nodes)
      if (const int place = place_in_group(context.plan, ranks, node); place >= 0) append(made(place));
  } else {
    append(made(-1));
  }
  const auto flows_through = [](const Pipeline& line) { return line.fill_intra + line.fill_inter > 0; };
  if (!out.pipelines.empty() && flows_through(out.pipelines.front()))
    out.fill = &context.fills.of(key.kind, group, key.chunks, out.pipelines.front());
  out.members.resize(out.pipelines.size());
  for (std::size_t id = 0; id < out.hops.size(); ++id) {
    out.members[static_cast<std::size_t>(out.hops[id].pipeline)].push_back(static_cast<int>(id));
    for (const int need : out.hops[id].needs)
      out.hops[static_cast<std::size_t>(need)].unblocks.push_back(static_cast<int>(id));
    for (const int before : out.hops[id].after)
      out.hops[static_cast<std::size_t>(before)].unblocks_after.push_back(static_cast<int>(id));
  }
  return out;
}

double RoutedSchedule::chain_start_up(const std::vector<int>& chain, double payload) const {
  // The first message passes every hop; the others follow at the pace of the slowest one, whose messages the flow has.
  double first = 0.0;
  double slowest = 0.0;
  for (const int id : chain) {
    const RoutedHop& hop = hops[static_cast<std::size_t>(id)];
    first += hop.fixed(payload).value() + hop.message_time(payload);
    slowest = std::max(slowest, hop.message_time(payload));
  }
  return first - slowest;
}

double RoutedSchedule::ring_start_up(const std::vector<int>& ring, double payload) const {
  // Without contention the end is the longest way through (hop, round): from round to round it goes on to the next
  // hop, for that hop's message and latency, or stays at the slowest link, for one message of it. The best stretch of
  // hops before the slowest link and the best one behind it are found apart.
  const int rounds = hops[static_cast<std::size_t>(ring.front())].rounds;
  const auto length = static_cast<int>(ring.size());
  const auto hop_at = [&](int i) -> const RoutedHop& {
    return hops[static_cast<std::size_t>(ring[static_cast<std::size_t>(((i % length) + length) % length)])];
  };
  int slowest = 0;
  for (int i = 1; i < length; ++i) {
    const double now = hop_at(i).message_time(payload);
    const double most = hop_at(slowest).message_time(payload);
    if (now > most || (now == most && hop_at(i).fixed(payload) > hop_at(slowest).fixed(payload))) slowest = i;
  }
  const double stay = hop_at(slowest).message_time(payload);
  const auto gain = [&](int i) { return hop_at(i).fixed(payload).value() + hop_at(i).message_time(payload) - stay; };
  std::vector<double> before{0.0};  // best stretch of at most so many hops up to the slowest
  double sum = 0.0;
  for (int i = 1; i < rounds; ++i) before.push_back(std::max(before.back(), sum += gain(slowest - i)));
  double best = before.back();
  sum = 0.0;
  for (int i = 1; i < rounds; ++i)
    best = std::max(best, (sum += gain(slowest + i)) + before[static_cast<std::size_t>(rounds - 1 - i)]);
  return gain(slowest) + best;
}

MessageCost RoutedSchedule::mean_message(bool inter, double payload) const {
  MessageCost sum;
  double count = 0.0;
  for (const RoutedHop& hop : hops) {
    if (hop.inter != inter) continue;
    sum.latency += hop.fixed(payload).value();
    sum.alone += hop.message_time(payload);
    sum.link += hop.message(payload) / hop.narrow.value();
    count += 1.0;
  }
  if (count == 0.0) return {};
  // Where two messages would come at one instant, the last bits of the mean decide which comes first, and they depend
  // on the order of the hops, which a representative has another of than the job. So they are rounded away.
  const auto mean = [&](double all) {
    int exponent = 0;
    const double mantissa = std::frexp(all / count, &exponent);
    return std::ldexp(std::round(std::ldexp(mantissa, kMeanBits)), exponent - kMeanBits);
  };
  return {mean(sum.latency), mean(sum.alone), mean(sum.link)};
}

Seconds RoutedSchedule::through_start_up(double payload) const {
  return fill->time(mean_message(false, payload), mean_message(true, payload));
}

std::vector<Seconds> RoutedSchedule::start_up(int pipeline, double payload) const {
  const auto& ids = members[static_cast<std::size_t>(pipeline)];
  std::vector<Seconds> out;
  if (ids.empty()) return out;
  if (pipelines[static_cast<std::size_t>(pipeline)].ring)
    return std::vector(ids.size(), Seconds{ring_start_up(ids, payload)});
  if (pipelines[static_cast<std::size_t>(pipeline)].chain)
    return std::vector(ids.size(), Seconds{chain_start_up(ids, payload)});
  if (fill != nullptr) return std::vector(ids.size(), through_start_up(payload));
  for (const int id : ids) out.push_back(hops[static_cast<std::size_t>(id)].fixed(payload));  // a single round
  return out;
}

}  // namespace simsync::detail
