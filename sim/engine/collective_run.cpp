#include "sim/engine/collective_run.hpp"

#include <algorithm>
#include <map>

#include "sim/plan/compile.hpp"

namespace simsync::detail {
namespace {

RoutedHop routed(const RouteContext& context, const Hop& hop, const ScheduleKey& key, int first_rank) {
  const CollectiveCosts costs = costs_of(context.cluster, key.protocol);
  const Place from = context.plan.ranks[static_cast<std::size_t>(first_rank + hop.from)];
  const Place to = context.plan.ranks[static_cast<std::size_t>(first_rank + hop.to)];
  const bool inter = from.node != to.node;
  const Path path = hop_path(context.topology, key.algorithm, from, to, context.folding.folded());
  RoutedHop out;
  out.inter = inter;
  out.overlap = !key.protocol.empty() && costs.protocols.at(key.protocol).overlap;
  out.alpha = path.latency + path.message_cost + (inter ? costs.per_step_inter : costs.per_step_intra);
  out.half = static_cast<double>(path.half_size.count);
  // Channels are streams of the network; inside a node a collective is one stream.
  out.cap = static_cast<double>(inter ? std::max(1, costs.channels) : 1) * path.stream_cap;
  double nominal = out.cap.value();
  for (const LinkId link : path.links)
    nominal = std::min(nominal, context.topology.links()[static_cast<std::size_t>(link)].bandwidth.value());
  out.nominal = BytesPerSecond{nominal};
  if (!path.links.empty()) out.path = context.path_of(path.links, out.cap);
  out.links = path.links;
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

RoutedSchedule route(const RouteContext& context, const ScheduleKey& key) {
  GroupShape group = group_shape(context.plan);
  int first_rank = 0;
  if (key.node >= 0) {
    const auto [begin, end] = context.plan.cell_ranks(Scope::Node, key.node);
    group = {.node_begin = {0, end - begin}};
    first_rank = begin;
  }
  RoutedSchedule out;
  std::map<LinkId, std::pair<double, double>> load;
  const auto append = [&](const CollectiveSchedule& schedule) {
    const int first_hop = static_cast<int>(out.hops.size());
    const int first_pipeline = static_cast<int>(out.pipelines.size());
    for (const Hop& hop : schedule.hops) {
      RoutedHop next = routed(context, hop, key, first_rank);
      next.pipeline += first_pipeline;
      for (int& id : next.needs) id += first_hop;
      for (int& id : next.after) id += first_hop;
      for (const LinkId link : next.links) {
        auto& [per_byte, fixed] = load[link];
        const double rate = context.topology.links()[static_cast<std::size_t>(link)].bandwidth.value();
        per_byte += next.bytes / next.rounds / rate;
        fixed += next.half / rate;
      }
      out.hops.push_back(std::move(next));
    }
    out.pipelines.insert(out.pipelines.end(), schedule.pipelines.begin(), schedule.pipelines.end());
  };
  const auto made = [&](int only_node) {
    return schedule_of(key.primitive, key.algorithm, group, key.chunks, only_node);
  };
  if (context.folding.folded() && key.node < 0) {
    for (const int cell : context.folding.cells) append(made(cell));
  } else {
    append(made(-1));
  }
  for (const auto& [link, both] : load) out.link_load.push_back(both);
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

double RoutedSchedule::through_start_up(int pipeline, double payload) const {
  // The first message passes its hops one after another; each later one follows when the busiest link has served
  // one message of every hop that crosses it. The flows account for all messages, the first one included.
  double alpha[2] = {0.0, 0.0};  // summed over hops inside and between nodes
  double message[2] = {0.0, 0.0};
  double count[2] = {0.0, 0.0};
  double period = 0.0;
  for (const int id : members[static_cast<std::size_t>(pipeline)]) {
    const RoutedHop& hop = hops[static_cast<std::size_t>(id)];
    const auto kind = static_cast<std::size_t>(hop.inter ? 1 : 0);
    alpha[kind] += hop.fixed(payload).value();
    message[kind] += hop.message_time(payload);
    count[kind] += 1.0;
    period = std::max(period, hop.message_time(payload));
  }
  for (const auto& [per_byte, fixed] : link_load) period = std::max(period, per_byte * payload + fixed);
  const Pipeline& line = pipelines[static_cast<std::size_t>(pipeline)];
  double first = 0.0;
  if (count[0] > 0.0) first += line.fill_intra * (alpha[0] + message[0]) / count[0];
  if (count[1] > 0.0) first += (line.fill_inter * alpha[1] + line.fill_shared * message[1]) / count[1];
  return std::max(0.0, first - period);
}

std::vector<Seconds> RoutedSchedule::start_up(int pipeline, double payload) const {
  const auto& ids = members[static_cast<std::size_t>(pipeline)];
  const Pipeline& line = pipelines[static_cast<std::size_t>(pipeline)];
  std::vector<Seconds> out;
  if (ids.empty()) return out;
  if (line.ring) return std::vector(ids.size(), Seconds{ring_start_up(ids, payload)});
  if (line.fill_intra + line.fill_inter > 0)
    return std::vector(ids.size(), Seconds{through_start_up(pipeline, payload)});
  for (const int id : ids) out.push_back(hops[static_cast<std::size_t>(id)].fixed(payload));  // a single round
  return out;
}

}  // namespace simsync::detail
