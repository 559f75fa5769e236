#include "hw/run/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/error.hpp"
#include "sim/plan/random_order.hpp"

namespace simsync {
namespace {

int server_threads(const Plan& plan) {
  int most = 1;
  for (const Op& op : plan.ops)
    if (op.kind() == OpKind::HostWork && op.concerns_server())
      most = std::max(most, plan.queues[static_cast<std::size_t>(op.queue)].slots);
  constexpr int kMostThreads = 16;
  return std::min(most, kMostThreads);
}

/// Of this process, all threads, user and system.
double processor_time_s() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  constexpr double kNano = 1e-9;
  return static_cast<double>(t.tv_sec) + kNano * static_cast<double>(t.tv_nsec);
}

}  // namespace

Executor::Executor(const Roles& roles, const ExecutorOptions& options, Inbox& inbox, Links& links, Buffers& buffers,
                   const DeviceOfRank& device)
    : roles_(roles),
      options_(options),
      inbox_(inbox),
      links_(links),
      buffers_(buffers),
      collectives_(device.collectives.get()),
      device_(device.device.get()),
      duties_(duties_of(roles, options.self)),
      queues_(roles.plan().queues.begin(), roles.plan().queues.end()),
      countdown_(duties_.waits()),
      ended_by_(static_cast<std::size_t>(roles.plan().rank_count()), -1) {
  if (roles.is_server(options.self)) server_ = std::make_unique<WorkerThreads>(server_threads(roles.plan()));
  if (device_ != nullptr) {
    compute_ = std::make_unique<WorkerThreads>(1);
    copies_ = std::make_unique<WorkerThreads>(1);
  }
  if (collectives_ == nullptr) return;
  for (std::size_t op = 0; op < roles.plan().ops.size(); ++op) {
    const Op& collective = roles.plan().ops[op];
    if (collective.kind() != OpKind::Collective) continue;
    if (roles.plan().grouping(collective.grouping).group_of(options.self) < 0) continue;
    collectives_->prepare(roles.plan().ops[op], static_cast<std::uint32_t>(op),
                          buffers.collective(static_cast<OpId>(op), 0, false));
  }
}

AgentRecord Executor::run() {
  const double begin = now_s();
  const double processor_before = processor_time_s();
  run_iterations();
  record_.elapsed = now_s() - begin;
  record_.processor_time = processor_time_s() - processor_before;
  return std::move(record_);
}

void Executor::run_iterations() {
  record_.iteration_start.assign(static_cast<std::size_t>(options_.iterations), -1.0);
  record_.iteration_end.assign(static_cast<std::size_t>(options_.iterations), 0.0);
  record_.timed.assign(static_cast<std::size_t>(options_.iterations), 0.0);
  if (duties_.tasks.empty() && duties_.ends + duties_.asked == 0) finished_ = options_.iterations;
  device_free_ = now_s();
  for (std::size_t task = 0; finished_ == 0 && task < duties_.tasks.size(); ++task)
    if (countdown_.left(task, 0) == 0) ready(static_cast<std::int32_t>(task), 0, device_free_);
  double heard = now_s();
  while (finished_ < options_.iterations) {
    const double limit = heard + options_.timeout_s;
    const double next = timers_.empty() ? limit : std::min(limit, timers_.top().at);
    if (const auto event = inbox_.pop_until(next)) {
      heard = now_s();
      handle(*event);
      continue;
    }
    if (timers_.empty() || timers_.top().at > now_s()) {
      if (now_s() >= limit)
        throw RunError(fmt::format("nothing happened for {} s in iteration {}: waiting for {}", options_.timeout_s,
                                   finished_, waiting_for()));
      continue;
    }
    const Timer timer = timers_.top();
    timers_.pop();
    heard = now_s();
    ended(timer.instance, timer.iteration, timer.at);
  }
}

std::string Executor::waiting_for() const {
  const Iteration& now = *iterations_[static_cast<std::size_t>(finished_)];
  std::string out;
  int listed = 0;
  for (std::size_t task = 0; task < duties_.tasks.size() && listed < 3; ++task) {
    const Instance& i = duties_.tasks[task].instance;
    if (now.done[task] != 0 || countdown_.left(task, finished_) > 0 || started_.contains({finished_, i})) continue;
    out += fmt::format("{}'{}'", listed++ > 0 ? ", " : "", title_of(roles_.plan(), op_of(i)));
  }
  for (const auto& [key, at] : started_)
    if (key.first == finished_ && listed++ < 3)
      out += fmt::format("{}the end of '{}'", out.empty() ? "" : ", ", title_of(roles_.plan(), op_of(key.second)));
  return out.empty() ? "other agents" : out;
}

Executor::Iteration& Executor::iteration(int k) {
  while (static_cast<int>(iterations_.size()) <= k) {
    auto next = std::make_unique<Iteration>();
    next->left = duties_.ends + duties_.asked + static_cast<std::int64_t>(duties_.tasks.size());
    next->done.assign(duties_.tasks.size(), 0);
    next->ready.assign(duties_.tasks.size(), 0.0);
    iterations_.push_back(std::move(next));
  }
  return *iterations_[static_cast<std::size_t>(k)];
}

void Executor::handle(const Event& event) {
  switch (event.kind) {
    case Event::Kind::Ended:
      return ended(event.instance, event.iteration, event.at);
    case Event::Kind::Arrived:
      if (!roles_.is_server(options_.self)) {
        buffers_.check_pull(event.instance, event.iteration, last(event.iteration));
        ++record_.checked;
      }
      return ended(event.instance, event.iteration, event.at);
    case Event::Kind::Notified:
      hear_of_step(event.instance, event.iteration);
      leave_queue(event.instance);
      return release(event.instance, event.iteration, event.at);
    case Event::Kind::Begin:
      return start_collective(event.instance, event.iteration);
    case Event::Kind::Ask:
      send_bytes(event.instance, event.iteration);
      return count_off(event.iteration);
    case Event::Kind::Lost:
      throw RunError(event.text);
    case Event::Kind::Failed:
      throw RunError(cause_of(event));
    case Event::Kind::Wrong:
      throw WrongResult(event.text);
  }
}

/// What a library says of a peer that is gone does not name it; the connection to it, or agent 0, does in a moment.
std::string Executor::cause_of(const Event& failure) {
  if (failure.from >= 0) return failure.text;
  constexpr double kPatience = 1.0;
  for (const double until = now_s() + kPatience; now_s() < until;) {
    const auto event = inbox_.pop_until(until);
    if (!event) break;
    const bool told = event->kind == Event::Kind::Failed && event->from >= 0;
    if (event->kind == Event::Kind::Lost || told) return event->text;
  }
  return failure.text;
}

void Executor::release(const Instance& ended, int k, double at) {
  const std::int32_t position = duties_.index_of(ended);
  if (position < 0) return;
  auto released = duties_.releases[static_cast<std::size_t>(position)];
  draw_order(roles_.plan(), op_of(ended), ended.group, k, released);
  for (const auto& next : released) {
    if (k + next.lag >= options_.iterations) continue;
    Iteration& target = iteration(k + next.lag);
    const auto task = static_cast<std::size_t>(next.task);
    target.ready[task] = std::max(target.ready[task], at);
    if (countdown_.tell(task, k + next.lag)) ready(next.task, k + next.lag, target.ready[task]);
  }
}

void Executor::ready(std::int32_t task, int k, double at) {
  const Instance& instance = duties_.tasks[static_cast<std::size_t>(task)].instance;
  const Op& op = op_of(instance);
  if (op.queue < 0) return start(instance, k, at);
  const Queue& queue = roles_.plan().queues[static_cast<std::size_t>(op.queue)];
  const int priority = queue.ordering == Ordering::Priority ? op.priority : 0;
  queues_[static_cast<std::size_t>(op.queue)].wait(priority, sequence_++, {task, k, at}, load_of(op));
  serve(op.queue);
}

/// A host's threads are the operating system's: of a queue's slots each takes one.
Executor::Service::Load Executor::load_of(const Op& op) {
  return {1.0, op.bytes()};
}

void Executor::serve(QueueId id) {
  while (const auto next = queues_[static_cast<std::size_t>(id)].next())
    start(duties_.tasks[static_cast<std::size_t>(next->task)].instance, next->iteration, next->ready);
}

void Executor::leave_queue(const Instance& instance) {
  const Op& op = op_of(instance);
  const std::int32_t position = duties_.index_of(instance);
  if (op.queue < 0 || position < 0 || duties_.task_of[static_cast<std::size_t>(position)] < 0) return;
  queues_[static_cast<std::size_t>(op.queue)].leave(load_of(op));
  serve(op.queue);
}

void Executor::note_start(const Instance& instance, int k, double at) {
  started_[{k, instance}] = at;
}

void Executor::start(const Instance& instance, int k, double at) {
  const Op& op = op_of(instance);
  if (double& first = record_.iteration_start[static_cast<std::size_t>(k)]; first < 0.0) first = now_s();
  count_off(k);
  switch (op.kind()) {
    case OpKind::Compute:
      return start_compute(instance, k, at);
    case OpKind::HostWork:
      return start_host_work(instance, k, at);
    case OpKind::Transfer:
      return start_transfer(instance, k);
    case OpKind::Collective:
      if (roles_.coordinated(op))
        for (int rank = 0; rank < roles_.plan().rank_count(); ++rank)
          if (rank != options_.self)
            links_.send(rank, {.kind = FrameKind::Begin, .op = instance.op, .group = instance.group, .iteration = k});
      return start_collective(instance, k);
  }
}

void Executor::work(WorkerThreads& threads, const Instance& instance, int k, std::function<void()> job) {
  note_start(instance, k, now_s());
  threads.post([this, instance, k, job = std::move(job)] {
    Event event{.kind = Event::Kind::Ended, .instance = instance, .iteration = k};
    try {
      job();
    } catch (const WrongResult& e) {
      event.kind = Event::Kind::Wrong;
      event.text = e.what();
    } catch (const std::exception& e) {
      event.kind = Event::Kind::Failed;
      event.text = fmt::format("{}: {}", title_of(roles_.plan(), op_of(instance)), e.what());
    }
    event.at = now_s();
    inbox_.push(std::move(event));
  });
}

void Executor::start_host_work(const Instance& instance, int k, double at) {
  const HostWork& host = op_of(instance).host();
  if (!host.at.is_server()) {
    note_start(instance, k, at);
    timers_.push({std::max(at, now_s()) + host.duration.value(), instance, k});
    return;
  }
  if (host.action == HostAction::Sum) return work(*server_, instance, k, [=, this] { buffers_.add(instance, k); });
  if (host.action == HostAction::Apply) return work(*server_, instance, k, [=, this] { buffers_.update(instance, k); });
  note_start(instance, k, now_s());
  timers_.push({now_s(), instance, k});  // serving a read is part of sending it
}

void Executor::start_compute(const Instance& instance, int k, double at) {
  const Seconds length = options_.slowdown * compute_time(roles_.plan(), op_of(instance), options_.self, k);
  if (device_ != nullptr) return work(*compute_, instance, k, [this, length] { device_->compute(length); });
  const double begin = std::max(at, device_free_);
  device_free_ = begin + length.value();
  note_start(instance, k, begin);
  timers_.push({device_free_, instance, k});
}

/// Between a device and its host.
void Executor::start_copy(const Instance& instance, int k) {
  if (device_ == nullptr) {  // their memory is one
    note_start(instance, k, now_s());
    timers_.push({now_s(), instance, k});
    return;
  }
  const Transfer& op = op_of(instance).transfer();
  const auto direction =
      op.from.kind == End::Kind::Device ? RankDevice::Direction::ToHost : RankDevice::Direction::ToDevice;
  const Bytes size{std::llround(op.bytes)};
  work(*copies_, instance, k, [this, size, direction] { device_->copy(size, direction); });
}

void Executor::start_transfer(const Instance& instance, int k) {
  const AgentId source = roles_.source(instance);
  const AgentId sink = roles_.sink(instance);
  if (source == sink) return start_copy(instance, k);
  if (source == options_.self) return send_bytes(instance, k);
  if (op_of(instance).timed) note_start(instance, k, now_s());
  links_.send(source, {.kind = FrameKind::Ask, .op = instance.op, .group = instance.group, .iteration = k});
}

void Executor::send_bytes(const Instance& instance, int k) {
  if (noted(k)) record_.spans.push_back({instance, k, now_s(), -1.0});
  links_.send_data(roles_.sink(instance), {.op = instance.op, .group = instance.group, .iteration = k},
                   buffers_.outgoing(instance, k), op_of(instance).transfer().messages);
}

void Executor::start_collective(const Instance& instance, int k) {
  const QueueId queue = op_of(instance).queue;
  auto& own = queue >= 0 ? streams_[queue] : concurrent_[instance.op];
  if (own == nullptr) own = std::make_unique<WorkerThreads>(1);
  work(*own, instance, k, [this, instance, k] {
    collectives_->run(op_of(instance), static_cast<std::uint32_t>(instance.op),
                      buffers_.collective(instance.op, k, last(k)), last(k));
    buffers_.check_collective(instance.op, k, last(k));
  });
}

void Executor::ended(const Instance& instance, int k, double at) {
  if (op_of(instance).kind() == OpKind::Collective) ++record_.checked;
  const auto start = started_.find({k, instance});
  if (noted(k)) record_.spans.push_back({instance, k, start == started_.end() ? -1.0 : start->second, at});
  if (start != started_.end()) {
    if (op_of(instance).timed) record_.timed[static_cast<std::size_t>(k)] += at - start->second;
    started_.erase(start);
  }
  leave_queue(instance);
  hear_of_step(instance, k);
  const int reached = catch_up(instance, k);
  release(instance, reached, at);
  const std::int32_t position = duties_.index_of(instance);
  for (const AgentId other : duties_.notify[static_cast<std::size_t>(position)])
    links_.send(other, {.kind = FrameKind::Ended, .op = instance.op, .group = instance.group, .iteration = reached});
  const std::int32_t task = duties_.task_of[static_cast<std::size_t>(position)];
  if (task >= 0) iteration(k).done[static_cast<std::size_t>(task)] = 1;
  if (instance.op == roles_.plan().progress.step_end) record_.step_ends.push_back(at);
  if (instance.op == roles_.plan().progress.global_step) record_.global_step_ends.push_back(at);
  auto& end = record_.iteration_end[static_cast<std::size_t>(k)];
  end = std::max(end, at);
  count_off(k);
}

void Executor::hear_of_step(const Instance& ended, int k) {
  const Plan& plan = roles_.plan();
  if (plan.progress.global_step < 0) return;
  if (ended.op == plan.progress.global_step) newest_ = std::max(newest_, k);
  if (ended.op != plan.progress.step_end || !roles_.is_server(options_.self)) return;
  int& before = ended_by_[static_cast<std::size_t>(ended.group)];
  leave_out(ended.group, before + 1, k);
  before = k;
}

int Executor::catch_up(const Instance& ended, int k) {
  if (ended.op != roles_.plan().progress.step_end || newest_ <= k) return k;
  leave_out(ended.group, k, newest_);
  for (const auto& next : duties_.next_of_left_out) {
    if (newest_ + next.lag >= options_.iterations) continue;
    countdown_.tell(static_cast<std::size_t>(next.task), newest_ + next.lag);
  }
  return newest_;
}

void Executor::leave_out(int rank, int from, int newest) {
  const auto& parts = duties_.left_out[static_cast<std::size_t>(rank)];
  for (int k = from; k <= newest; ++k)
    count_off(k, (k > from ? parts.until_end : 0) + (k < newest ? parts.after_end : 0));
}

void Executor::count_off(int k, std::int64_t parts) {
  iteration(k).left -= parts;
  while (finished_ < static_cast<int>(iterations_.size()) &&
         iterations_[static_cast<std::size_t>(finished_)]->left == 0) {
    countdown_.forget(finished_);
    *iterations_[static_cast<std::size_t>(finished_++)] = {};
  }
}

}  // namespace simsync
