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

}  // namespace

Replay::Replay(const Plan& plan, const Cluster& cluster, const ReplayOptions& options)
    : plan_(plan),
      cluster_(cluster),
      options_(options),
      folding_(choose_folding(plan, cluster, options.fidelity)),
      groups_(plan, folding_),
      topology_(cluster, nodes_needed(plan, folding_), gpus_in_use(plan.ranks)),
      borrowed_(options.solver),
      network_(*borrowed_),
      ways_(plan, groups_, topology_, network_),
      ports_(network_, ways_),
      buckets_(network_, ways_),
      sends_(cluster, network_, ways_),
      telling_(plan, groups_, topology_, ports_, sends_),
      recorder_(options, plan, SimulatedRanks{groups_.places(), groups_.groupings()}, ways_.paths()),
      pace_(groups_.places().size()),
      enough_(options.steps_per_worker, longest_block(plan), plan.has_common_steps() ? 1 : groups_.places().size()),
      left_behind_(plan, groups_),
      devices_(groups_.places().size()) {
  for (std::size_t r = 0; r < devices_.size(); ++r) {
    devices_[r].slowdown = cluster_.group_of(groups_.places()[r].node).compute_slowdown;
    devices_[r].links = topology_.links_beside_compute(groups_.places()[r]);
  }
  for (const Queue& queue : plan_.queues) queues_.emplace_back(static_cast<std::size_t>(groups_.count(queue.grouping)));
}

Replay::Iteration& Replay::iteration(int k) {
  while (static_cast<int>(iterations_.size()) <= k) {
    auto next = std::make_unique<Iteration>();
    next->left = static_cast<std::int64_t>(groups_.instances());
    next->pending = groups_.waits_in(static_cast<int>(iterations_.size()));
    iterations_.push_back(std::move(next));
  }
  return *iterations_[static_cast<std::size_t>(k)];
}

void Replay::release_roots() {
  for (std::size_t id = 0; id < plan_.ops.size(); ++id)
    for (int group = 0; group < groups_.count(plan_.ops[id].grouping); ++group)
      if (groups_.waits_now()[groups_.number(static_cast<OpId>(id), group)] == 0)
        ready_.push_back({{static_cast<OpId>(id), group, 0}, -1});
}

void Replay::complete(const Instance& instance) {
  const std::int32_t span = recorder_.end(instance, network_.now());
  const Op& op = op_of(instance);
  if (op.queue >= 0) {
    const Seconds answer = telling_.answer(instance);
    if (answer.value() > 0.0)
      network_.after(answer, token({.event = Event::Answered, .instance = instance, .cause = span}));
    else
      leave_queue(instance, span);
  }
  leave_connection(instance, span);
  note_pace(instance);
  const int ended = catch_up(instance);
  // The last iteration that counts has the next one in its way, as every other.
  const int last_needed = plan_.steps_vary()            ? std::numeric_limits<int>::max()
                          : options_.max_iterations > 1 ? options_.max_iterations
                                                        : 0;
  std::vector<Instance> released;
  for (const After& next : groups_.releases(instance.op)) {
    const int k = ended + next.lag;
    if (k > last_needed || (plan_.steps_vary() && stopped_)) continue;
    const GroupingId waiting = plan_.ops[static_cast<std::size_t>(next.op)].grouping;
    for (const int group : groups_.sharing(op.grouping, instance.group, waiting))
      released.push_back({next.op, group, k});
  }
  draw_order(plan_, op, instance.group, ended, released);
  for (const Instance& waiting : released) {
    const Seconds word = telling_.word(instance, waiting.op, waiting.group);
    if (word.value() > 0.0)
      network_.after(word, token({.event = Event::Told, .instance = waiting, .cause = span}));
    else
      tell(waiting, span);
  }
  ++completed_;
  count_off(instance.iteration, 1);
}

void Replay::note_pace(const Instance& ended) {
  if (ended.op == plan_.step_end) pace_.note(static_cast<std::size_t>(ended.group), network_.now());
  if (ended.op == plan_.global_step) {
    left_behind_.step_ended();
    if (!stopped_) end_step();
  }
  if (!plan_.in_lock_step()) stop_when_enough();
  const bool counts =
      !stopped_ && iteration_end_.size() > LeftBehind::warm_up(static_cast<std::size_t>(enough_.least()));
  if (counts && left_behind_.counted_by(ended.op) >= 0) left_behind_.count(op_of(ended).bytes(), is_late(ended));
}

void Replay::stop_when_enough() {
  const std::size_t ends = plan_.has_common_steps() ? iteration_end_.size() : pace_.ends();
  stopped_ = stopped_ || (enough_.due(ends) && enough_.reached(ends, step_error()));
}

/// Of the mean step so far, where steps vary.
double Replay::step_error() const {
  if (!plan_.has_common_steps()) return pace_.step_error();
  const auto first = static_cast<std::ptrdiff_t>(LeftBehind::warm_up(iteration_end_.size()));
  return relative_error({iteration_end_.begin() + first, iteration_end_.end()}, 1);
}

/// The iteration that a rank has ended: its own, or the newest, where it was left behind. What it leaves out counts as
/// done.
int Replay::catch_up(const Instance& ended) {
  if (ended.op != plan_.step_end || plan_.global_step < 0) return ended.iteration;
  const int newest = left_behind_.newest();
  if (newest == ended.iteration) return newest;
  for (int k = ended.iteration; k <= newest; ++k) count_off(k, left_behind_.left_out(k > ended.iteration, k < newest));
  for (const After& next : left_behind_.next_of_left_out()) tell({next.op, ended.group, newest + next.lag}, -1);
  return newest;
}

void Replay::count_off(int k, std::int64_t instances) {
  std::int64_t& left = iteration(k).left;
  left -= instances;
  if (left == 0 && instances > 0) finish_iteration(k);
}

/// Whether what waits for all but the latest of such instances has begun without this one.
bool Replay::is_late(const Instance& instance) {
  const OpId sum = left_behind_.counted_by(instance.op);
  return sum >= 0 && iteration(instance.iteration).pending[groups_.number(sum, 0)] <= 0;
}

/// One predecessor less.
void Replay::tell(const Instance& waiting, std::int32_t cause) {
  if (--iteration(waiting.iteration).pending[groups_.number(waiting.op, waiting.group)] == 0)
    ready_.push_back({waiting, cause});
}

void Replay::finish_iteration(int k) {
  if (stopped_) return;
  // Iterations end in order: every op of k + 1 has a way back to one of k.
  if (plan_.global_step < 0) end_step();
  iterations_[static_cast<std::size_t>(k)]->pending = {};
  if (!plan_.in_lock_step()) return;
  if (plan_.steps_vary()) return stop_when_enough();
  const auto next = static_cast<std::size_t>(k) + 1;
  // Whatever began at this very instant began after it.
  const bool overlapped = next < iterations_.size() && iterations_[next]->begun < network_.now();
  steady_ = repeats(k) && (k > 1 || !overlapped);
  stopped_ = steady_ || k + 1 >= options_.max_iterations;
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

void Replay::drain() {
  if (draining_) return;
  draining_ = true;
  while (!ready_.empty()) {
    const auto [instance, cause] = ready_.front();
    ready_.pop_front();
    if (!stopped_) become_ready(instance, cause);
  }
  draining_ = false;
}

FlowNetwork::Token Replay::token(Pending pending) {
  if (free_pendings_.empty()) {
    free_pendings_.push_back(static_cast<std::uint32_t>(pendings_.size()));
    pendings_.emplace_back();
  }
  const std::uint32_t slot = free_pendings_.back();
  free_pendings_.pop_back();
  pendings_[slot] = pending;
  return slot;
}

/// `end` happens when the last of `bytes` has arrived.
void Replay::start_flow(int path, double bytes, Pending end) {
  end.path = path;
  end.bytes = bytes;
  network_.start_flow(path, buckets_.left_of(path, bytes), token(end));
}

void Replay::flow_ended(const Pending& end) {
  buckets_.ended(end.path);
  if (end.event != Event::FlowEnds && end.event != Event::TurnEnds) return;
  const Way& way = ways_.way_of(end.instance);
  if (way.connection.from_node >= 0) sends_.end(way.connection, end.bytes);
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
  options_.progress({.ops = static_cast<std::int64_t>(groups_.instances()),
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
  const Pending p = pendings_[token];
  free_pendings_.push_back(static_cast<std::uint32_t>(token));
  recorder_.flow_ends(p.flow, network_.now());
  if (p.path >= 0) flow_ended(p);
  switch (p.event) {
    case Event::ComputeEnds: {
      Device& device = devices_[static_cast<std::size_t>(p.instance.group)];
      if (device.epoch != p.epoch) break;
      device.running.reset();
      computed_.push_back(p.instance.group);
      complete(p.instance);
      break;
    }
    case Event::WorkEnds:
    case Event::FlowEnds:
      complete(p.instance);
      break;
    case Event::Told:
      tell(p.instance, p.cause);
      break;
    case Event::Answered:
      leave_queue(p.instance, p.cause);
      break;
    case Event::SliceEnds:
      end_slice(p.instance);
      break;
    case Event::SetupEnds:
      enter_connection(p.instance);
      break;
    case Event::PortReached:
      start_first_turn(p.instance);
      break;
    case Event::TurnEnds:
      end_turn(p.instance, p.bytes_left);
      break;
    case Event::CollectiveSetupEnds:
      open_collective(p.run);
      break;
    case Event::HopStarts:
      start_hop(p.run, p.hop);
      break;
    case Event::MessageSent:
      message_sent(p.run, p.hop);
      break;
    case Event::MessageArrives:
      message_arrived(p.run, p.hop);
      break;
  }
  drain();
}

/// A queue chooses when all that becomes ready at an instant waits for it: its order decides, not that of the events.
void Replay::instant_over() {
  if (given_up_) return;
  while (!to_serve_.empty()) {
    const ToServe next = to_serve_.front();
    to_serve_.pop_front();
    if (!stopped_) serve(next.queue, *next.state, next.cause);
    drain();
  }
  for (const int rank : computed_) share_links(devices_[static_cast<std::size_t>(rank)]);
  computed_.clear();
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
  // Without convergence the mean of the later half is the best estimate of a step that keeps changing.
  const std::size_t half = steady_ ? out.steps.size() - 1 : out.steps.size() / 2;
  double sum = 0.0;
  for (std::size_t i = half; i < out.steps.size(); ++i) sum += out.steps[i].value();
  out.step = Seconds{sum / static_cast<double>(out.steps.size() - half)};
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
  out.dropped = left_behind_.dropped();
  const std::size_t first = LeftBehind::warm_up(out.steps.size());
  const std::size_t last = out.steps.size() - 1;
  out.warm_up = static_cast<int>(std::min(first + 1, last));
  out.step = first == last ? out.steps.back()
                           : 1.0 / static_cast<double>(last - first) * (iteration_end_[last] - iteration_end_[first]);
}

/// Of the ranks that every step waits for.
double Replay::slowest_needed() const {
  std::vector<double> slowdowns;
  for (const Device& device : devices_) slowdowns.push_back(device.slowdown);
  const auto needed = slowdowns.end() - 1 - plan_.backups;
  std::nth_element(slowdowns.begin(), needed, slowdowns.end());
  return *needed;
}

Prediction Replay::result() {
  Prediction out;
  out.finished = !given_up_;
  out.work = network_.work();
  if (given_up_) return out;
  find_step(out);
  double compute = 0.0;
  for (const Op& op : plan_.ops)
    if (const auto* work = std::get_if<Compute>(&op.body)) compute += work->duration.value();
  out.compute = slowest_needed() * (Seconds{compute} - plan_.waiting);
  out.fidelity = folding_.fidelity;
  out.simulated_ranks = static_cast<int>(groups_.places().size());
  out.flows = network_.flows_started();
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
  out.traffic = {ways_.links(), ways_.paths(), recorder_.take_flows(), recorder_.rates(ways_.links())};
  out.links = link_use(out.traffic, network_.now());
}

}  // namespace detail
}  // namespace simsync
