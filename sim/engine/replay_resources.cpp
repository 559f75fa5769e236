// Queues, devices and transfers of a replay.
#include <algorithm>

#include "base/error.hpp"
#include "sim/engine/replay.hpp"

namespace simsync::detail {
namespace {

/// Whether the bytes of a transfer lie where it is started, and so are handed to its connection at once: not those that
/// another host is asked for, nor those that have to be packed first.
bool is_there(const Transfer& op) {
  return !op.asks_host() && op.packing.value() <= 0.0;
}

/// A thread that has slept until somebody reads a variable runs before those that work through updates, and after a
/// while instead of one: schedulers favor who has used little, and TensorFlow and ps-lite answer reads on threads that
/// only do so.
bool goes_first(const Op& op) {
  const auto* work = std::get_if<HostWork>(&op.body);
  return work != nullptr && work->action == HostAction::Serve;
}

bool takes_turns(const Op& op) {
  const auto* work = std::get_if<HostWork>(&op.body);
  return work != nullptr && work->one_at_a_time;
}

}  // namespace

QueueState& Replay::queue_state(QueueId queue, const Instance& instance) {
  const Queue& q = plan_.queues[static_cast<std::size_t>(queue)];
  const Op& op = op_of(instance);
  std::vector<QueueState>& states = queues_[static_cast<std::size_t>(queue)];
  const auto* work = std::get_if<HostWork>(&op.body);
  if (work != nullptr && work->at.kind == End::Kind::Fixed && q.grouping == kEachNode)
    return states[static_cast<std::size_t>(groups_.group_of_node(work->at.place.node))];
  const auto groups = groups_.sharing(op.grouping, instance.group, q.grouping);
  SIMSYNC_ASSERT(groups.size() == 1);  // an op never spans several queues
  return states[static_cast<std::size_t>(groups.front())];
}

bool Replay::admits(const Queue& queue, const QueueState& state, const Op& op) {
  if (state.in_service == 0) return true;
  constexpr double kRounding = 1e-9;
  if (queue.slots > 0 && state.in_use + op.threads() > queue.slots + kRounding) return false;
  if (queue.credit <= 0.0) return true;
  return queue.strict ? state.in_flight + op.bytes() <= queue.credit : state.in_flight < queue.credit;
}

void Replay::become_ready(const Instance& instance, std::int32_t cause) {
  recorder_.ready(instance, cause, network_.now());
  const Op& op = op_of(instance);
  if (op.queue < 0) return start(instance, -1);
  QueueState& state = queue_state(op.queue, instance);
  if (takes_turns(op)) {
    const auto [turn, first] = state.behind.try_emplace(instance.op);
    if (!first) return turn->second.push_back(instance);
  }
  wait_in(state, instance);
  to_serve_.push_back({op.queue, &state, -1});
}

void Replay::wait_in(QueueState& state, const Instance& instance) {
  const Op& op = op_of(instance);
  const bool by_priority = plan_.queues[static_cast<std::size_t>(op.queue)].ordering == Ordering::Priority;
  const bool begun = set_aside_.contains(key_of(instance));
  const int in_order = goes_first(op) || begun ? -1 : 0;
  state.waiting.insert({by_priority ? op.priority : in_order, sequence_++, instance});
}

void Replay::serve(QueueId id, QueueState& state, std::int32_t cause) {
  const Queue& queue = plan_.queues[static_cast<std::size_t>(id)];
  for (auto next = state.waiting.begin(); next != state.waiting.end();) {
    const Instance instance = next->instance;
    const Op& op = op_of(instance);
    if (!admits(queue, state, op)) {
      if (!queue.strict || (queue.slots > 0 && state.in_use >= queue.slots)) return;
      ++next;
      continue;
    }
    next = state.waiting.erase(next);
    state.admit(op);
    if (!go_on(instance)) start(instance, cause);
  }
}

void Replay::leave_queue(const Instance& instance, std::int32_t cause) {
  const Op& op = op_of(instance);
  QueueState& state = queue_state(op.queue, instance);
  state.leave(op);
  if (takes_turns(op)) {
    const auto turn = state.behind.find(instance.op);
    if (turn->second.empty()) {
      state.behind.erase(turn);
    } else {
      wait_in(state, turn->second.front());
      turn->second.pop_front();
    }
  }
  to_serve_.push_back({op.queue, &state, cause});
}

void Replay::start(const Instance& instance, std::int32_t cause) {
  recorder_.start(instance, cause, network_.now());
  Seconds& begun = iteration(instance.iteration).begun;
  begun = std::min(begun, network_.now());
  const Op& op = op_of(instance);
  switch (op.kind()) {
    case OpKind::Compute:
      return start_compute(instance);
    case OpKind::Transfer:
      return start_transfer(instance);
    case OpKind::Collective:
      return start_collective(instance);
    case OpKind::HostWork:
      return start_slice(instance, is_late(instance) ? op.host().late : op.host().duration);
  }
}

void Replay::start_slice(const Instance& instance, Seconds left) {
  constexpr Seconds kSlice{10e-3};
  constexpr double kMostPart = 0.01;        // of what is left: works of hours come to an end, too
  constexpr double kRounding = 1.0 + 1e-9;  // what it leaves is no turn of its own
  const Seconds slice = std::max(kSlice, kMostPart * left);
  if (op_of(instance).queue < 0 || left <= kRounding * slice)
    return network_.after(left, token({.event = Event::WorkEnds, .instance = instance}));
  set_aside_[key_of(instance)] = left - slice;
  network_.after(slice, token({.event = Event::SliceEnds, .instance = instance}));
}

/// The thread goes to those that go first; what is left of the work comes next.
void Replay::end_slice(const Instance& instance) {
  const Op& op = op_of(instance);
  QueueState& state = queue_state(op.queue, instance);
  if (state.waiting.empty() || !goes_first(op_of(state.waiting.begin()->instance))) {
    go_on(instance);
    return;
  }
  state.leave(op);
  wait_in(state, instance);
  to_serve_.push_back({op.queue, &state, -1});
}

bool Replay::go_on(const Instance& instance) {
  const auto left = set_aside_.extract(key_of(instance));
  if (left.empty()) return false;
  start_slice(instance, left.mapped());
  return true;
}

void Replay::start_compute(const Instance& instance) {
  Device& device = devices_[static_cast<std::size_t>(instance.group)];
  device.running = instance;
  device.remaining = compute_time(plan_, op_of(instance), instance.group, instance.iteration).value() * device.slowdown;
  device.since = network_.now().value();
  arm_compute(device, instance);
  share_links(device);
}

void Replay::share_links(Device& device) {
  if (device.running.has_value() == device.holds_up_links) return;
  device.holds_up_links = device.running.has_value();
  for (const auto& [link, left] : device.links)
    network_.set_bandwidth(link,
                           device.holds_up_links ? left : topology_.links()[static_cast<std::size_t>(link)].bandwidth);
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

void Replay::start_transfer(const Instance& instance) {
  const Way& way = ways_.way_of(instance);
  const Event next = way.path < 0 ? Event::WorkEnds : Event::SetupEnds;
  const Transfer& op = op_of(instance).transfer();
  if (way.connection.from_node >= 0 && is_there(op))
    sends_.hand_over(way.connection, way.path, op.bytes + way.extra_bytes);
  network_.after(op.setup + telling_.ask(instance) + way.delay, token({.event = next, .instance = instance}));
}

void Replay::enter_connection(const Instance& instance) {
  const Way& way = ways_.way_of(instance);
  const Transfer& op = op_of(instance).transfer();
  const double bytes = op.bytes + way.extra_bytes;
  if (way.connection.from_node >= 0) {
    if (!is_there(op)) sends_.hand_over(way.connection, way.path, bytes);
    Connection& connection = connections_[way.connection];
    if (connection.in_service >= op.streams)
      return wait_behind(connection, {instance, network_.now(), bytes, op.first_turn});
    ++connection.in_service;
  }
  const Seconds wait = ports_.first_byte(way.path, bytes);
  if (wait.value() <= 0.0) return start_first_turn(instance);
  network_.after(wait, token({.event = Event::PortReached, .instance = instance}));
}

/// The stream of its connection, if it has one, is its own.
void Replay::start_first_turn(const Instance& instance) {
  const Way& way = ways_.way_of(instance);
  const Transfer& op = op_of(instance).transfer();
  const Connection::Waiting all{instance, network_.now(), op.bytes + way.extra_bytes, op.first_turn};
  if (way.connection.from_node >= 0) return start_turn(all, -1);
  start_bytes(all, all.bytes, {.event = Event::FlowEnds, .instance = instance}, -1);
}

void Replay::wait_behind(Connection& connection, const Connection::Waiting& last) {
  connection.waiting.push_back(last);
  ports_.behind(ways_.way_of(last.instance).path, last.bytes);
}

/// The transfer has a stream of its connection.
void Replay::start_turn(const Connection::Waiting& next, std::int32_t cause) {
  const double bytes = std::min(next.bytes, next.turn);
  Pending end{.event = Event::FlowEnds, .instance = next.instance};
  if (bytes < next.bytes) {
    end.event = Event::TurnEnds;
    end.bytes_left = next.bytes - bytes;
  }
  start_bytes(next, bytes, end, cause);
}

/// Its stream goes to whoever has waited longest.
void Replay::end_turn(const Instance& instance, double bytes_left) {
  wait_behind(connections_[ways_.way_of(instance).connection],
              {instance, network_.now(), bytes_left, op_of(instance).transfer().later_turn});
  leave_connection(instance, -1);
}

void Replay::leave_connection(const Instance& instance, std::int32_t cause) {
  if (op_of(instance).kind() != OpKind::Transfer) return;
  const Way& way = ways_.way_of(instance);
  if (way.connection.from_node < 0) return;
  Connection& connection = connections_[way.connection];
  --connection.in_service;
  if (connection.waiting.empty() || stopped_) return;
  const Connection::Waiting next = connection.waiting.front();
  connection.waiting.pop_front();
  ports_.behind(ways_.way_of(next.instance).path, -next.bytes);
  ++connection.in_service;
  start_turn(next, cause);
}

void Replay::start_bytes(const Connection::Waiting& next, double bytes, Pending end, std::int32_t cause) {
  const Way& way = ways_.way_of(next.instance);
  const bool first = next.bytes == op_of(next.instance).bytes() + way.extra_bytes;
  end.flow = recorder_.flow({.op = next.instance.op,
                             .group = next.instance.group,
                             .iteration = next.instance.iteration,
                             .path = way.path,
                             .ready = next.since,
                             .bytes = bytes,
                             .message_bytes = first ? std::min(bytes, way.extra_bytes) : 0.0,
                             .cause = cause},
                            network_.now());
  if (way.connection.from_node >= 0) sends_.start(way.connection, bytes);
  start_flow(way.path, bytes, end);
}

}  // namespace simsync::detail
