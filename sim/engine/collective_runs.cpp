#include "sim/engine/collective_runs.hpp"

#include "sim/engine/rank_orbits.hpp"
#include "sim/plan/compile.hpp"

namespace simsync::detail {

const RoutedSchedule& CollectiveRuns::schedule_for(const Op& op, int simulated) {
  const Collective& all = op.collective();
  const int group = parts_.scene.groups.number_in_plan(op.grouping, simulated);
  const GroupShape shape = group_shape(parts_.scene.plan, parts_.scene.plan.grouping(op.grouping).ranks(group));
  const CollectiveKind kind = all.kind();
  const ScheduleKey key{.kind = kind,
                        .protocol = all.protocol,
                        .chunks = pipeline_chunks(kind, shape, all.bytes),
                        .grouping = op.grouping,
                        .group = group};
  auto& slot = schedules_[key];
  if (slot) return *slot;
  const RouteContext context{
      parts_.scene.plan,
      parts_.scene.cluster,
      parts_.scene.topology,
      parts_.folding.nodes,
      parts_.folding.by_node,
      [this](const std::vector<LinkId>& links, BytesPerSecond cap) { return parts_.routes.path_along(links, cap); },
      parts_.fills};
  slot = std::make_unique<RoutedSchedule>(route(context, key));
  if (!parts_.folding.orbits.empty()) merge_alike_hops(context, key, parts_.folding.orbits, *slot);
  return *slot;
}

void CollectiveRuns::start(const Instance& instance) {
  if (parts_.alone != nullptr) return start_alone(instance);
  const Op& op = parts_.scene.op_of(instance);
  const RoutedSchedule& schedule = schedule_for(op, instance.group);
  if (free_.empty()) {
    free_.push_back(static_cast<int>(runs_.size()));
    runs_.push_back(std::make_unique<Run>());
  }
  const int run = free_.back();
  free_.pop_back();
  Run& collective = at(run);
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
  parts_.agenda.after(op.collective().setup, {.event = Event::CollectiveSetupEnds, .instance = instance, .run = run});
}

void CollectiveRuns::start_alone(const Instance& instance) {
  const Collective& all = parts_.scene.op_of(instance).collective();
  const Seconds length = parts_.alone->on_links(all.kind(), all.protocol, all.bytes, all.ratio);
  if (length.value() > 0.0) ++timed_alone_;
  occupy_devices(instance, +1);
  parts_.agenda.after(all.setup + length, {.event = Event::CollectiveEnds, .instance = instance});
}

void CollectiveRuns::ended_alone(const Instance& instance) {
  occupy_devices(instance, -1);
  done_(instance);
}

void CollectiveRuns::occupy_devices(const Instance& instance, int change) {
  for (const int rank : parts_.scene.groups.ranks(parts_.scene.op_of(instance).grouping, instance.group))
    parts_.devices.collective(rank, change);
}

void CollectiveRuns::setup_ended(int run) {
  Run& collective = at(run);
  const RoutedSchedule& schedule = *collective.schedule;
  if (collective.left == 0) return close(run);
  if (by_message()) {
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

void CollectiveRuns::start_later(int run, int hop) {
  parts_.agenda.after(at(run).start_up[static_cast<std::size_t>(hop)],
                      {.event = Event::HopStarts, .run = run, .hop = hop});
}

void CollectiveRuns::start_hop(int run, int id) {
  Run& collective = at(run);
  const auto i = static_cast<std::size_t>(id);
  const RoutedHop& hop = collective.schedule->hops[i];
  collective.sent[i] = hop.rounds;
  Pending arrives{.event = Event::MessageArrives, .run = run, .hop = id};
  if (hop.path < 0) return parts_.agenda.after(Seconds{0.0}, arrives);
  arrives.flow = note_hop(run, id, hop.rounds);
  parts_.transport.start_flow(hop.path, collective.ratio * (hop.bytes * collective.payload + hop.rounds * hop.half),
                              arrives);
}

void CollectiveRuns::try_message(int run, int id) {
  Run& collective = at(run);
  const auto i = static_cast<std::size_t>(id);
  const RoutedHop& hop = collective.schedule->hops[i];
  const std::int32_t round = collective.sent[i];
  if (collective.busy[i] != 0 || round >= hop.rounds || collective.blocked[i] > 0) return;
  for (const int need : hop.needs)
    if (collective.arrived[static_cast<std::size_t>(need)] < round + 1 - hop.lag) return;
  collective.busy[i] = 1;
  Pending sent{.event = Event::MessageSent, .run = run, .hop = id};
  if (hop.path < 0) return parts_.agenda.after(Seconds{0.0}, sent);
  sent.flow = note_hop(run, id, 1);
  parts_.transport.start_flow(hop.path, collective.ratio * hop.message(collective.payload), sent);
}

void CollectiveRuns::message_sent(int run, int id) {
  Run& collective = at(run);
  const auto i = static_cast<std::size_t>(id);
  collective.busy[i] = 0;
  ++collective.sent[i];
  // The link is free for the next message while this one is still under way.
  const Seconds fixed = collective.ratio * collective.schedule->hops[i].fixed(collective.payload);
  parts_.agenda.after(fixed, {.event = Event::MessageArrives, .run = run, .hop = id});
  try_message(run, id);
}

void CollectiveRuns::message_arrived(int run, int id) {
  Run& collective = at(run);
  const auto i = static_cast<std::size_t>(id);
  const RoutedHop& hop = collective.schedule->hops[i];
  if (!by_message()) return hop_ended(run, id);
  ++collective.arrived[i];
  for (const int next : hop.unblocks) try_message(run, next);
  if (collective.arrived[i] == hop.rounds) hop_ended(run, id);
}

void CollectiveRuns::hop_ended(int run, int id) {
  Run& collective = at(run);
  const RoutedSchedule& schedule = *collective.schedule;
  const RoutedHop& hop = schedule.hops[static_cast<std::size_t>(id)];
  for (const int next : hop.unblocks_after) {
    if (--collective.blocked[static_cast<std::size_t>(next)] > 0) continue;
    if (by_message()) {
      try_message(run, next);
      continue;
    }
    start_later(run, next);
  }
  if (--collective.left == 0) close(run);
}

std::int32_t CollectiveRuns::note_hop(int run, int id, int rounds) {
  const Run& collective = at(run);
  const RoutedHop& hop = collective.schedule->hops[static_cast<std::size_t>(id)];
  const Instance& whose = collective.instance;
  const double extra = collective.ratio * rounds * hop.half;
  return parts_.recorder.flow({.op = whose.op,
                               .group = whose.group,
                               .iteration = whose.iteration,
                               .hop = id,
                               .pipeline = hop.pipeline,
                               .path = hop.path,
                               .ready = parts_.agenda.now(),
                               .bytes = collective.ratio * hop.bytes * collective.payload * rounds / hop.rounds + extra,
                               .message_bytes = extra},
                              parts_.agenda.now());
}

void CollectiveRuns::close(int run) {
  const Instance instance = at(run).instance;
  free_.push_back(run);
  occupy_devices(instance, -1);
  done_(instance);
}

}  // namespace simsync::detail
