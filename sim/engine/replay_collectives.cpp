// Collectives of a replay, in whichever fidelity was chosen.
#include <algorithm>

#include "base/error.hpp"
#include "sim/engine/replay.hpp"
#include "sim/plan/compile.hpp"

namespace simsync::detail {

const RoutedSchedule& Replay::schedule_for(const Op& op, int simulated) {
  const Collective& all = op.collective();
  const int group = groups_.number_in_plan(op.grouping, simulated);
  const GroupShape shape = group_shape(plan_, plan_.grouping(op.grouping).ranks(group));
  const ScheduleKey key{.primitive = all.primitive,
                        .algorithm = all.algorithm,
                        .protocol = all.protocol,
                        .chunks = pipeline_chunks(all.algorithm, shape, all.bytes),
                        .grouping = op.grouping,
                        .group = group};
  auto& slot = schedules_[key];
  if (slot) return *slot;
  const RouteContext context{
      plan_,
      cluster_,
      topology_,
      folding_.nodes,
      folding_.folded(),
      [this](const std::vector<LinkId>& links, BytesPerSecond cap) { return ways_.path_along(links, cap); }};
  slot = std::make_unique<RoutedSchedule>(route(context, key));
  return *slot;
}

void Replay::start_collective(const Instance& instance) {
  const Op& op = op_of(instance);
  const RoutedSchedule& schedule = schedule_for(op, instance.group);
  if (free_active_.empty()) {
    free_active_.push_back(static_cast<int>(active_.size()));
    active_.push_back(std::make_unique<ActiveCollective>());
  }
  const int run = free_active_.back();
  free_active_.pop_back();
  ActiveCollective& collective = *active_[static_cast<std::size_t>(run)];
  collective.instance = instance;
  collective.schedule = &schedule;
  collective.payload = op.collective().bytes;
  collective.ratio = op.collective().ratio;
  collective.left = static_cast<int>(schedule.hops.size());
  collective.sent.assign(schedule.hops.size(), 0);
  collective.arrived.assign(schedule.hops.size(), 0);
  collective.busy.assign(schedule.hops.size(), 0);
  collective.start_up.resize(schedule.hops.size());
  collective.blocked.resize(schedule.hops.size());
  for (std::size_t hop = 0; hop < schedule.hops.size(); ++hop)
    collective.blocked[hop] = static_cast<std::int32_t>(schedule.hops[hop].after.size());
  occupy_devices(instance, +1);
  network_.after(op.collective().setup, token({.event = Event::CollectiveSetupEnds, .instance = instance, .run = run}));
}

void Replay::occupy_devices(const Instance& instance, int change) {
  if (cluster_.collective.interference <= 0.0) return;
  for (const int rank : groups_.ranks(op_of(instance).grouping, instance.group)) collective_on_device(rank, change);
}

void Replay::open_collective(int run) {
  ActiveCollective& collective = *active_[static_cast<std::size_t>(run)];
  const RoutedSchedule& schedule = *collective.schedule;
  if (collective.left == 0) return close_collective(run);
  if (folding_.fidelity == Fidelity::Steps) {
    for (std::size_t hop = 0; hop < schedule.hops.size(); ++hop) try_message(run, static_cast<int>(hop));
    return;
  }
  for (std::size_t line = 0; line < schedule.pipelines.size(); ++line) {
    const auto& members = schedule.members[line];
    const std::vector<Seconds> start_up = schedule.start_up(static_cast<int>(line), collective.payload);
    for (std::size_t i = 0; i < members.size(); ++i) {
      collective.start_up[static_cast<std::size_t>(members[i])] = collective.ratio * start_up[i];
      if (collective.blocked[static_cast<std::size_t>(members[i])] == 0) start_later(run, members[i]);
    }
  }
}

void Replay::start_later(int run, int hop) {
  network_.after(active_[static_cast<std::size_t>(run)]->start_up[static_cast<std::size_t>(hop)],
                 token({.event = Event::HopStarts, .run = run, .hop = hop}));
}

void Replay::start_hop(int run, int id) {
  ActiveCollective& collective = *active_[static_cast<std::size_t>(run)];
  const auto i = static_cast<std::size_t>(id);
  const RoutedHop& hop = collective.schedule->hops[i];
  collective.sent[i] = hop.rounds;
  Pending arrives{.event = Event::MessageArrives, .run = run, .hop = id};
  if (hop.path < 0) return network_.after(Seconds{0.0}, token(arrives));
  arrives.flow = note_hop(run, id, hop.rounds);
  start_flow(hop.path, collective.ratio * (hop.bytes * collective.payload + hop.rounds * hop.half), arrives);
}

void Replay::try_message(int run, int id) {
  ActiveCollective& collective = *active_[static_cast<std::size_t>(run)];
  const auto i = static_cast<std::size_t>(id);
  const RoutedHop& hop = collective.schedule->hops[i];
  const std::int32_t round = collective.sent[i];
  if (collective.busy[i] != 0 || round >= hop.rounds || collective.blocked[i] > 0) return;
  for (const int need : hop.needs)
    if (collective.arrived[static_cast<std::size_t>(need)] < round + 1 - hop.lag) return;
  collective.busy[i] = 1;
  Pending sent{.event = Event::MessageSent, .run = run, .hop = id};
  if (hop.path < 0) return network_.after(Seconds{0.0}, token(sent));
  sent.flow = note_hop(run, id, 1);
  start_flow(hop.path, collective.ratio * hop.message(collective.payload), sent);
}

void Replay::message_sent(int run, int id) {
  ActiveCollective& collective = *active_[static_cast<std::size_t>(run)];
  const auto i = static_cast<std::size_t>(id);
  collective.busy[i] = 0;
  ++collective.sent[i];
  // The link is free for the next message while this one is still under way.
  const Seconds fixed = collective.ratio * collective.schedule->hops[i].fixed(collective.payload);
  network_.after(fixed, token({.event = Event::MessageArrives, .run = run, .hop = id}));
  try_message(run, id);
}

void Replay::message_arrived(int run, int id) {
  ActiveCollective& collective = *active_[static_cast<std::size_t>(run)];
  const auto i = static_cast<std::size_t>(id);
  const RoutedHop& hop = collective.schedule->hops[i];
  if (folding_.fidelity != Fidelity::Steps) return hop_ended(run, id);
  ++collective.arrived[i];
  for (const int next : hop.unblocks) try_message(run, next);
  if (collective.arrived[i] == hop.rounds) hop_ended(run, id);
}

void Replay::hop_ended(int run, int id) {
  ActiveCollective& collective = *active_[static_cast<std::size_t>(run)];
  const RoutedSchedule& schedule = *collective.schedule;
  const RoutedHop& hop = schedule.hops[static_cast<std::size_t>(id)];
  for (const int next : hop.unblocks_after) {
    if (--collective.blocked[static_cast<std::size_t>(next)] > 0) continue;
    if (folding_.fidelity == Fidelity::Steps) {
      try_message(run, next);
      continue;
    }
    start_later(run, next);
  }
  if (--collective.left == 0) close_collective(run);
}

std::int32_t Replay::note_hop(int run, int id, int rounds) {
  const ActiveCollective& collective = *active_[static_cast<std::size_t>(run)];
  const RoutedHop& hop = collective.schedule->hops[static_cast<std::size_t>(id)];
  const Instance& whose = collective.instance;
  const double extra = collective.ratio * rounds * hop.half;
  return recorder_.flow({.op = whose.op,
                         .group = whose.group,
                         .iteration = whose.iteration,
                         .hop = id,
                         .pipeline = hop.pipeline,
                         .path = hop.path,
                         .ready = network_.now(),
                         .bytes = collective.ratio * hop.bytes * collective.payload * rounds / hop.rounds + extra,
                         .message_bytes = extra},
                        network_.now());
}

void Replay::close_collective(int run) {
  const Instance instance = active_[static_cast<std::size_t>(run)]->instance;
  free_active_.push_back(run);
  occupy_devices(instance, -1);
  complete(instance);
}

}  // namespace simsync::detail
