#include "sim/engine/replay.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.hpp"
#include "sim/plan/random_order.hpp"

namespace simsync {

Prediction replay(const Plan& plan, const Cluster& cluster, const ReplayOptions& options) {
  return detail::Replay(plan, cluster, options).run();
}

namespace detail {
namespace {

/// Nodes whose links are needed: those simulated and those that host servers.
std::vector<int> nodes_needed(const Plan& plan, const Folding& folding) {
  std::set<int> nodes;
  for (const int node : folding.nodes) nodes.insert(plan.nodes[static_cast<std::size_t>(node)]);
  for (const Place& server : plan.servers) nodes.insert(server.node);
  return {nodes.begin(), nodes.end()};
}

std::shared_ptr<CollectiveAlone> times_of_collectives(const Plan& plan, const Cluster& cluster,
                                                      const ReplayOptions& options) {
  const bool is_kept = options.alone && options.alone->ranks() == plan.ranks;
  return is_kept ? options.alone : std::make_shared<CollectiveAlone>(cluster, plan.ranks);
}

}  // namespace

Replay::Replay(const Plan& plan, const Cluster& cluster, const ReplayOptions& options)
    : plan_(plan),
      options_(options),
      folding_(choose_folding(plan, cluster, options)),
      groups_(plan, folding_),
      topology_(cluster, nodes_needed(plan, folding_), gpus_in_use(plan.ranks)),
      borrowed_(options.solver),
      network_(*borrowed_),
      routes_(plan, groups_, topology_, network_),
      recorder_(options, plan, SimulatedRanks{groups_.places(), groups_.groupings()}, routes_.paths()),
      scene_{plan, cluster, groups_, topology_},
      agenda_(network_),
      transport_(scene_, routes_, network_, agenda_, recorder_),
      devices_(scene_, network_, agenda_),
      fills_(options.fills ? options.fills : std::make_shared<PipelineFills>()),
      alone_(folding_.collectives_alone ? times_of_collectives(plan, cluster, options) : nullptr),
      collectives_({scene_, folding_, routes_, agenda_, transport_, devices_, recorder_, *fills_, alone_.get()},
                   [this](const Instance& ended) { complete(ended); }),
      queues_(scene_, agenda_, [this](const Instance& instance, std::int32_t cause) { begin(instance, cause); }),
      countdown_(groups_.waits()),
      pace_(groups_.places().size()),
      enough_(options.steps_per_worker, longest_block(plan), plan.has_common_steps() ? 1 : groups_.places().size()),
      backup_workers_(plan, groups_) {}

Replay::Iteration& Replay::iteration(int k) {
  while (static_cast<int>(iterations_.size()) <= k) {
    iterations_.push_back(std::make_unique<Iteration>());
    iterations_.back()->left = groups_.to_complete();
  }
  return *iterations_[static_cast<std::size_t>(k)];
}

void Replay::release_roots() {
  for (std::size_t id = 0; id < plan_.ops.size(); ++id)
    for (int group = 0; group < groups_.count(plan_.ops[id].grouping); ++group) {
      const Instance instance{static_cast<OpId>(id), group, 0};
      if (countdown_.left(number(instance), 0) == 0) release(instance, -1);
    }
}

/// It is ready, as often as it is simulated.
void Replay::release(const Instance& instance, std::int32_t cause) {
  Instance each = instance;
  for (each.copy = 0; each.copy < groups_.copies(instance.op, instance.group); ++each.copy)
    ready_.push_back({each, cause});
}

/// One predecessor less.
void Replay::tell(const Instance& waiting, std::int32_t cause) {
  iteration(waiting.iteration);
  if (countdown_.tell(number(waiting), waiting.iteration)) release(waiting, cause);
}

void Replay::drain() {
  if (draining_) return;
  draining_ = true;
  while (!ready_.empty()) {
    const auto [instance, cause] = ready_.front();
    ready_.pop_front();
    if (stopped_) continue;
    recorder_.ready(instance, cause, network_.now());
    queues_.add(instance);
  }
  draining_ = false;
}

void Replay::begin(const Instance& instance, std::int32_t cause) {
  recorder_.start(instance, cause, network_.now());
  Seconds& begun = iteration(instance.iteration).begun;
  begun = std::min(begun, network_.now());
  const Op& op = op_of(instance);
  switch (op.kind()) {
    case OpKind::Compute:
      return devices_.start(instance);
    case OpKind::Transfer:
      return transport_.start(instance);
    case OpKind::Collective:
      return collectives_.start(instance);
    case OpKind::HostWork:
      return queues_.work(instance, is_late(instance) ? op.host().late : op.host().duration);
  }
}

void Replay::complete(const Instance& instance) {
  const std::int32_t span = recorder_.end(instance, network_.now());
  const Op& op = op_of(instance);
  if (op.queue >= 0) {
    const Seconds travel = transport_.acknowledge(instance);
    if (travel.value() > 0.0)
      agenda_.after(travel, {.event = Event::Acknowledged, .instance = instance, .cause = span});
    else
      queues_.leave(instance, span);
  }
  if (op.kind() == OpKind::Transfer) transport_.leave(instance, span);
  note_pace(instance);
  const int ended = catch_up(instance);
  find_released(instance, ended);
  draw_order(plan_, op, instance.group, ended, released_);
  for (const Instance& waiting : released_) {
    const Seconds travel = transport_.notify(instance, waiting.op, waiting.group);
    if (travel.value() > 0.0)
      agenda_.after(travel, {.event = Event::Notified, .instance = waiting, .cause = span});
    else
      tell(waiting, span);
  }
  ++completed_;
  count_off(instance.iteration, 1);
}

void Replay::find_released(const Instance& ended, int iteration) {
  // The last iteration that counts runs beside the next one, as every other.
  const int last_needed = plan_.steps_vary()            ? std::numeric_limits<int>::max()
                          : options_.max_iterations > 1 ? options_.max_iterations
                                                        : 0;
  released_.clear();
  for (const After& next : groups_.releases(ended.op)) {
    const int k = iteration + next.lag;
    if (k > last_needed || (plan_.steps_vary() && stopped_)) continue;
    const GroupingId waiting = plan_.ops[static_cast<std::size_t>(next.op)].grouping;
    for (const int group : groups_.sharing(op_of(ended).grouping, ended.group, waiting))
      released_.push_back({next.op, group, k});
  }
}

void Replay::note_pace(const Instance& ended) {
  if (ended.op == plan_.progress.step_end) pace_.note(static_cast<std::size_t>(ended.group), network_.now());
  if (ended.op == plan_.progress.global_step) {
    backup_workers_.step_ended();
    if (!stopped_) end_step();
  }
  if (!plan_.in_lock_step()) stop_when_enough();
  const bool counts =
      !stopped_ && iteration_end_.size() > BackupWorkers::warm_up(static_cast<std::size_t>(enough_.least()));
  if (counts && backup_workers_.counted_by(ended.op) >= 0) backup_workers_.count(op_of(ended).bytes(), is_late(ended));
}

void Replay::stop() {
  stopped_ = true;
  transport_.stop();
  queues_.stop();
}

void Replay::stop_when_enough() {
  if (stopped_) return;
  const std::size_t ends = plan_.has_common_steps() ? iteration_end_.size() : pace_.ends();
  if (enough_.due(ends) && enough_.reached(ends, step_error())) stop();
}

/// Of the mean step so far, where steps vary.
double Replay::step_error() const {
  if (!plan_.has_common_steps()) return pace_.step_error();
  const auto first = static_cast<std::ptrdiff_t>(BackupWorkers::warm_up(iteration_end_.size()));
  return relative_error({iteration_end_.begin() + first, iteration_end_.end()}, 1);
}

/// The iteration that a rank has ended: its own, or the newest, where it came too late. What it skips counts as
/// done.
int Replay::catch_up(const Instance& ended) {
  if (ended.op != plan_.progress.step_end || plan_.progress.global_step < 0) return ended.iteration;
  const int newest = backup_workers_.newest();
  if (newest == ended.iteration) return newest;
  for (int k = ended.iteration; k <= newest; ++k)
    count_off(k, backup_workers_.left_out(k > ended.iteration, k < newest));
  for (const After& next : backup_workers_.next_of_left_out()) tell({next.op, ended.group, newest + next.lag}, -1);
  return newest;
}

void Replay::count_off(int k, std::int64_t instances) {
  std::int64_t& left = iteration(k).left;
  left -= instances;
  if (left == 0 && instances > 0) finish_iteration(k);
}

/// Whether what waits for all but the latest of such instances has begun without this one.
bool Replay::is_late(const Instance& instance) {
  const OpId sum = backup_workers_.counted_by(instance.op);
  return sum >= 0 && countdown_.left(groups_.number(sum, 0), instance.iteration) <= 0;
}

void Replay::finish_iteration(int k) {
  if (stopped_) return;
  // Iterations end in order: every op of k + 1 has a way back to one of k.
  if (plan_.progress.global_step < 0) end_step();
  countdown_.forget(k);
  if (!plan_.in_lock_step()) return;
  if (plan_.steps_vary()) return stop_when_enough();
  steady_ = is_steady(k);
  if (steady_ || k + 1 >= options_.max_iterations) stop();
}

/// Whether later iterations take as long as this one, which has just ended.
bool Replay::is_steady(int k) const {
  const auto next = static_cast<std::size_t>(k) + 1;
  // Whatever began at this very instant began after it.
  const bool overlapped = next < iterations_.size() && iterations_[next]->begun < network_.now();
  // With nothing left behind, every iteration is the first again. A recording has one that follows another.
  if (k == 0)
    return options_.max_iterations > 1 && options_.convergence >= 0.0 && !overlapped && !transport_.leaves_traces() &&
           !recorder_.on();
  return repeats(k) && (k > 1 || !overlapped);
}

void Replay::end_step() {
  iteration_end_.push_back(network_.now());
  recorder_.step_ends(network_.now());
}

/// Whether iteration k took as long as the one before.
bool Replay::repeats(int k) const {
  if (k < 1) return false;
  const auto i = static_cast<std::size_t>(k);
  const double before = i > 1 ? iteration_end_[i - 2].value() : 0.0;
  const double last = (iteration_end_[i] - iteration_end_[i - 1]).value();
  const double change = last - (iteration_end_[i - 1].value() - before);
  return std::abs(change) <= options_.convergence * std::max(last, 1e-12);
}

/// At least so many in all.
int Replay::expected_iterations() const {
  const int next = static_cast<int>(iteration_end_.size()) + 1;
  return plan_.steps_vary() ? std::max(enough_.least(), next) : std::min(options_.max_iterations, std::max(2, next));
}

/// Calls back once in so many events that it costs nothing.
void Replay::report() {
  constexpr std::int64_t kEvery = 256;
  if (options_.progress == nullptr || ++events_ % kEvery != 0) return;
  options_.progress({.ops = groups_.to_complete(),
                     .completed = completed_,
                     .iterations = static_cast<int>(iteration_end_.size()),
                     .expected = expected_iterations(),
                     .flows = network_.flows_started()});
}

void Replay::handle(FlowNetwork::Token token) {
  report();
  // What has started is left to end, so that the network is empty for the next problem.
  given_up_ = given_up_ || (options_.most_work > 0 && network_.work() > options_.most_work);
  if (given_up_) return;
  const Pending event = agenda_.take(token);
  recorder_.flow_ends(event.flow, network_.now());
  if (event.path >= 0) transport_.flow_ended(event);
  dispatch(event);
  drain();
}

void Replay::dispatch(const Pending& event) {
  switch (event.event) {
    case Event::ComputeEnds:
      if (devices_.ended(event)) complete(event.instance);
      return;
    case Event::WorkEnds:
    case Event::FlowEnds:
      return complete(event.instance);
    case Event::Notified:
      return tell(event.instance, event.cause);
    case Event::Acknowledged:
      return queues_.leave(event.instance, event.cause);
    case Event::SliceEnds:
      return queues_.slice_ended(event.instance);
    case Event::SetupEnds:
      return transport_.setup_ended(event.instance);
    case Event::PortReached:
      return transport_.port_reached(event.instance);
    case Event::TurnEnds:
      return transport_.turn_ended(event.instance, event.bytes_left);
    case Event::CollectiveSetupEnds:
      return collectives_.setup_ended(event.run);
    case Event::HopStarts:
      return collectives_.start_hop(event.run, event.hop);
    case Event::MessageSent:
      return collectives_.message_sent(event.run, event.hop);
    case Event::MessageArrives:
      return collectives_.message_arrived(event.run, event.hop);
    case Event::CollectiveEnds:
      return collectives_.ended_alone(event.instance);
  }
}

void Replay::instant_over() {
  if (given_up_) return;
  while (queues_.serve_one()) drain();
  devices_.instant_over();
}

Prediction Replay::run() {
  iteration(0);
  release_roots();
  drain();
  instant_over();
  network_.run([this](FlowNetwork::Token token) { handle(token); }, [this] { instant_over(); });
  return result();
}

void Replay::find_step(Prediction& out) const {
  double before = 0.0;
  for (const Seconds end : iteration_end_) {
    out.steps.emplace_back(end.value() - before);
    before = end.value();
  }
  if (plan_.steps_vary()) return find_mean(out);
  SIMSYNC_ASSERT(!out.steps.empty());
  out.step = steady_ ? out.steps.back() : pace_of_ends(iteration_end_);
  out.steady = steady_;
}

void Replay::find_mean(Prediction& out) const {
  out.step_error = step_error();
  out.steps_per_worker = enough_.steps();
  out.steady = true;
  if (!plan_.in_lock_step()) out.rank_steps = pace_.step_of_each();
  if (!plan_.has_common_steps()) {
    out.step = pace_.step();
    out.staleness = pace_.staleness();
    return;
  }
  out.dropped = backup_workers_.dropped();
  const std::size_t first = BackupWorkers::warm_up(out.steps.size());
  const std::size_t last = out.steps.size() - 1;
  out.warm_up = static_cast<int>(std::min(first + 1, last));
  out.step = first == last ? out.steps.back()
                           : 1.0 / static_cast<double>(last - first) * (iteration_end_[last] - iteration_end_[first]);
}

Prediction Replay::result() {
  Prediction out;
  out.finished = !given_up_;
  out.work = network_.work();
  if (given_up_) return out;
  find_step(out);
  std::vector<double> compute(plan_.groupings.size(), 0.0);  // stages of a pipeline compute apart from one another
  for (const Op& op : plan_.ops)
    if (const auto* work = std::get_if<Compute>(&op.body))
      compute[static_cast<std::size_t>(op.grouping)] += work->duration.value();
  const Seconds most{*std::max_element(compute.begin(), compute.end())};
  out.compute = devices_.slowest_but(plan_.progress.backups) * (most - plan_.waiting);
  out.fidelity = folding_.fidelity;
  out.simulated_ranks = static_cast<int>(groups_.places().size());
  out.flows = network_.flows_started();
  out.collectives_alone = collectives_.timed_alone();
  out.recorded = recorder_.on();
  if (out.recorded) record_into(out);
  return out;
}

void Replay::record_into(Prediction& out) {
  out.spans = recorder_.take_spans();
  out.ranks = groups_.places();
  out.groupings = groups_.groupings();
  for (std::size_t i = 0; i < folding_.nodes.size(); ++i)
    out.stands_for[plan_.nodes[static_cast<std::size_t>(folding_.nodes[i])]] = folding_.stands_for[i];
  out.iteration_end = iteration_end_;
  out.traffic = {routes_.links(), routes_.paths(), recorder_.take_flows(), recorder_.rates(routes_.links())};
  out.links = link_use(out.traffic, network_.now());
}

}  // namespace detail
}  // namespace simsync
