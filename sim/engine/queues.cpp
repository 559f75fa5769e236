#include "sim/engine/queues.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace simsync::detail {
namespace {

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

Queues::Queues(const Scene& scene, Agenda& agenda, Begin begin)
    : scene_(scene), agenda_(agenda), begin_(std::move(begin)), state_of_(scene.groups.instances()) {
  for (const Queue& queue : scene.plan.queues)
    states_.emplace_back(static_cast<std::size_t>(scene.groups.count(queue.grouping)), State{Service(queue), {}});
}

Queues::State& Queues::state_of(const Instance& instance) {
  State*& known = state_of_[scene_.groups.number(instance.op, instance.group)];
  if (known == nullptr) known = &find_state(instance);
  return *known;
}

Queues::State& Queues::find_state(const Instance& instance) {
  const Op& op = scene_.op_of(instance);
  const GroupingId grouping = scene_.plan.queues[static_cast<std::size_t>(op.queue)].grouping;
  std::vector<State>& states = states_[static_cast<std::size_t>(op.queue)];
  const auto* work = std::get_if<HostWork>(&op.body);
  if (work != nullptr && work->at.is_server() && grouping == kEachNode)
    return states[static_cast<std::size_t>(scene_.groups.group_of_node(work->at.place.node))];
  const auto groups = scene_.groups.sharing(op.grouping, instance.group, grouping);
  SIMSYNC_ASSERT(groups.size() == 1);  // an op never spans several queues
  return states[static_cast<std::size_t>(groups.front())];
}

void Queues::add(const Instance& instance) {
  const Op& op = scene_.op_of(instance);
  if (op.queue < 0) return begin_(instance, -1);
  State& state = state_of(instance);
  if (takes_turns(op)) {
    const auto [turn, first] = state.behind.try_emplace(instance.op);
    if (!first) return turn->second.push_back(instance);
  }
  wait_in(state, instance);
  to_serve_.push_back({&state, -1});
}

void Queues::wait_in(State& state, const Instance& instance) {
  const Op& op = scene_.op_of(instance);
  const bool by_priority = scene_.plan.queues[static_cast<std::size_t>(op.queue)].ordering == Ordering::Priority;
  const bool goes_on = !preempted_.empty() && preempted_.contains(key_of(instance));
  const int in_order = goes_first(op) || goes_on ? -1 : 0;
  state.service.wait(by_priority ? op.priority : in_order, sequence_++, instance, Service::load_of(op));
}

bool Queues::serve_one() {
  if (to_serve_.empty()) return false;
  const ToServe next = to_serve_.front();
  to_serve_.pop_front();
  if (stopped_) return true;
  while (const auto instance = next.state->service.next())
    if (!resume(*instance)) begin_(*instance, next.cause);
  return true;
}

void Queues::leave(const Instance& instance, std::int32_t cause) {
  const Op& op = scene_.op_of(instance);
  if (op.queue < 0) return;
  State& state = state_of(instance);
  state.service.leave(Service::load_of(op));
  if (takes_turns(op)) {
    const auto turn = state.behind.find(instance.op);
    if (turn->second.empty()) {
      state.behind.erase(turn);
    } else {
      wait_in(state, turn->second.front());
      turn->second.pop_front();
    }
  }
  to_serve_.push_back({&state, cause});
}

void Queues::work(const Instance& instance, Seconds length) {
  constexpr double kMostPart = 0.01;        // of what is left: works of hours come to an end, too
  constexpr double kRounding = 1.0 + 1e-9;  // what it leaves is no turn of its own
  const Op& op = scene_.op_of(instance);
  const End& at = op.host().at;
  const int node = at.is_fixed() ? at.place.node : scene_.groups.first_place(op.grouping, instance.group).node;
  const Seconds slice = std::max(scene_.cluster.group_of(node).cpu.time_slice, kMostPart * length);
  if (op.queue < 0 || length <= kRounding * slice)
    return agenda_.after(length, {.event = Event::WorkEnds, .instance = instance});
  preempted_[key_of(instance)] = length - slice;
  agenda_.after(slice, {.event = Event::SliceEnds, .instance = instance});
}

void Queues::slice_ended(const Instance& instance) {
  State& state = state_of(instance);
  const Instance* first = state.service.first();
  if (first == nullptr || !goes_first(scene_.op_of(*first))) {
    resume(instance);
    return;
  }
  state.service.leave(Service::load_of(scene_.op_of(instance)));
  wait_in(state, instance);
  to_serve_.push_back({&state, -1});
}

bool Queues::resume(const Instance& instance) {
  if (preempted_.empty()) return false;
  const auto left = preempted_.extract(key_of(instance));
  if (left.empty()) return false;
  work(instance, left.mapped());
  return true;
}

}  // namespace simsync::detail
