// Queues, devices and transfers of a replay.
#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "sim/engine/replay.hpp"

namespace simsync::detail {

Replay::QueueState& Replay::queue_state(QueueId queue, const Instance& instance) {
  const Queue& q = plan_.queues[static_cast<std::size_t>(queue)];
  const auto [cell, end] = related(op_of(instance).scope, instance.cell, q.scope);
  SIMSYNC_ASSERT(end == cell + 1);  // an op never spans several queues
  return queues_[static_cast<std::size_t>(queue)][static_cast<std::size_t>(cell)];
}

bool Replay::admits(const Queue& queue, const QueueState& state, double bytes) {
  if (queue.slots > 0 && state.in_service >= queue.slots) return false;
  if (queue.credit <= 0.0 || state.in_service == 0) return true;
  return queue.strict ? state.in_flight + bytes <= queue.credit : state.in_flight < queue.credit;
}

void Replay::become_ready(const Instance& instance, std::int32_t cause) {
  note_ready(instance, cause);
  const Op& op = op_of(instance);
  if (op.queue < 0) return start(instance, -1);
  QueueState& state = queue_state(op.queue, instance);
  if (op.one_at_a_time) {
    const auto [turn, first] = state.behind.try_emplace(instance.op);
    if (!first) return turn->second.push_back(instance);
  }
  wait_in(state, instance);
  to_serve_.push_back({op.queue, &state, -1});
}

void Replay::wait_in(QueueState& state, const Instance& instance) {
  const Op& op = op_of(instance);
  const bool by_priority = plan_.queues[static_cast<std::size_t>(op.queue)].ordering == Ordering::Priority;
  state.waiting.insert({by_priority ? op.priority : 0, sequence_++, instance});
}

void Replay::serve(QueueId id, QueueState& state, std::int32_t cause) {
  const Queue& queue = plan_.queues[static_cast<std::size_t>(id)];
  for (auto next = state.waiting.begin(); next != state.waiting.end();) {
    const Instance instance = next->instance;
    const double bytes = op_of(instance).bytes;
    if (!admits(queue, state, bytes)) {
      if (!queue.strict || (queue.slots > 0 && state.in_service >= queue.slots)) return;
      ++next;
      continue;
    }
    next = state.waiting.erase(next);
    ++state.in_service;
    state.in_flight += bytes;
    start(instance, cause);
  }
}

void Replay::leave_queue(const Instance& instance) {
  const Op& op = op_of(instance);
  if (op.queue < 0) return;
  QueueState& state = queue_state(op.queue, instance);
  --state.in_service;
  state.in_flight -= op.bytes;
  if (op.one_at_a_time) {
    const auto turn = state.behind.find(instance.op);
    if (turn->second.empty()) {
      state.behind.erase(turn);
    } else {
      wait_in(state, turn->second.front());
      turn->second.pop_front();
    }
  }
  to_serve_.push_back({op.queue, &state, static_cast<std::int32_t>(spans_.size()) - 1});
}

void Replay::start(const Instance& instance, std::int32_t cause) {
  note_start(instance, cause);
  const Op& op = op_of(instance);
  switch (op.kind) {
    case OpKind::Compute:
      return start_compute(instance);
    case OpKind::Transfer:
      return start_transfer(instance);
    case OpKind::Collective:
      return start_collective(instance);
    case OpKind::HostWork:
      network_.after(op.duration, token({.event = Event::WorkEnds, .instance = instance}));
      return;
  }
}

void Replay::start_compute(const Instance& instance) {
  Device& device = devices_[static_cast<std::size_t>(instance.cell)];
  device.running = instance;
  device.remaining = op_of(instance).duration.value() * device.slowdown;
  device.since = network_.now().value();
  arm_compute(device, instance);
}

void Replay::arm_compute(Device& device, const Instance& instance) {
  const double speed = device.collectives > 0 ? 1.0 - cluster_.collective.interference : 1.0;
  ++device.epoch;
  network_.after(Seconds{device.remaining / speed},
                 token({.event = Event::ComputeEnds, .instance = instance, .epoch = device.epoch}));
}

void Replay::collective_on_device(int rank, int change) {
  Device& device = devices_[static_cast<std::size_t>(rank)];
  const bool slowed = device.collectives > 0;
  device.collectives += change;
  if (slowed == (device.collectives > 0) || !device.running) return;
  const double now = network_.now().value();
  const double speed = slowed ? 1.0 - cluster_.collective.interference : 1.0;
  device.remaining = std::max(0.0, device.remaining - (now - device.since) * speed);
  device.since = now;
  arm_compute(device, *device.running);
}

Place Replay::place_of(const End& end, const Op& op, int cell) const {
  if (end.kind == End::Kind::Fixed) return end.place;
  const auto [rank, last] = related(op.scope, cell, Scope::Rank);
  const Place device = plan_.ranks[static_cast<std::size_t>(ranks_[static_cast<std::size_t>(rank)])];
  return end.kind == End::Kind::Device ? device : Place{device.node, -1};
}

int Replay::connection_link(int from_node, int to_node, double capacity) {
  Connection& connection = connections_[{from_node, to_node}];
  if (connection.link >= 0) return connection.link;
  connection.link = network_.add_link(BytesPerSecond{capacity});
  // The network numbers links that cap single paths too; those have no name here.
  const auto id = static_cast<std::size_t>(connection.link);
  link_rate_.resize(id + 1, capacity);
  link_name_.resize(id + 1);
  link_name_[id] = "node" + std::to_string(from_node) + " to node" + std::to_string(to_node) + " connection";
  return connection.link;
}

void Replay::enter_connection(const Instance& instance) {
  const Way& way = way_of(instance);
  if (way.connection.first < 0) return start_bytes(instance);
  // HTTP/2 gives the whole rest of a message its turn at once, so messages on a connection hardly interleave.
  Connection& connection = connections_[way.connection];
  if (connection.in_service >= op_of(instance).streams) {
    connection.waiting.push_back(instance);
    return;
  }
  ++connection.in_service;
  start_bytes(instance);
}

void Replay::leave_connection(const Instance& instance) {
  if (op_of(instance).kind != OpKind::Transfer) return;
  const Way& way = way_of(instance);
  if (way.connection.first < 0) return;
  Connection& connection = connections_[way.connection];
  --connection.in_service;
  if (connection.waiting.empty() || stopped_) return;
  const Instance next = connection.waiting.front();
  connection.waiting.pop_front();
  ++connection.in_service;
  start_bytes(next);
}

void Replay::start_bytes(const Instance& instance) {
  const Way& way = way_of(instance);
  const double bytes = op_of(instance).bytes + way.extra_bytes;
  const std::int32_t flow = note_flow({.op = instance.op,
                                       .cell = instance.cell,
                                       .iteration = instance.iteration,
                                       .path = way.path,
                                       .bytes = bytes,
                                       .message_bytes = way.extra_bytes});
  network_.start_flow(way.path, bytes, token({.event = Event::FlowEnds, .instance = instance, .flow = flow}));
}

const Replay::Way& Replay::way_of(const Instance& instance) {
  auto& slot = ways_[number(instance.op, instance.cell)];
  if (slot) return *slot;
  slot = std::make_unique<Way>();
  const Op& op = op_of(instance);
  const Place from = place_of(op.from, op, instance.cell);
  const Place to = place_of(op.to, op, instance.cell);
  const Path path = topology_.path(from, to);
  slot->delay = path.latency + static_cast<double>(op.messages) * path.message_cost;
  slot->extra_bytes = static_cast<double>(op.messages) * static_cast<double>(path.half_size.count);
  slot->cap = path.stream_cap;
  slot->links.assign(path.links.begin(), path.links.end());
  if (from.node != to.node && op.streams > 0) {
    slot->connection = {from.node, to.node};
    if (path.stream_cap.value() < std::numeric_limits<double>::infinity()) {
      slot->links.push_back(connection_link(from.node, to.node, op.streams * path.stream_cap.value()));
      slot->cap = BytesPerSecond{std::numeric_limits<double>::infinity()};
    }
  }
  if (slot->links.empty()) return *slot;
  slot->path = path_along(slot->links, slot->cap);
  return *slot;
}

int Replay::path_along(const std::vector<int>& links, BytesPerSecond cap) {
  const auto [known, fresh] = paths_.try_emplace({links, cap.value()}, -1);
  if (!fresh) return known->second;
  known->second = network_.add_path(links, cap);
  flow_paths_.push_back({links, cap});  // the network numbers paths from zero
  return known->second;
}

void Replay::start_transfer(const Instance& instance) {
  const Way& way = way_of(instance);
  const Event next = way.path < 0 ? Event::FlowEnds : Event::SetupEnds;
  network_.after(op_of(instance).duration + way.delay, token({.event = next, .instance = instance}));
}

}  // namespace simsync::detail
