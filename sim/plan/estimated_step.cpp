// One strategy, iteration by iteration, on the resources of one worker and of the servers.
#include <cmath>
#include <utility>

#include "models/precision.hpp"
#include "sim/plan/estimated_servers.hpp"
#include "sim/plan/estimated_sharding.hpp"
#include "sim/plan/fusion.hpp"
#include "sim/plan/plan_writer.hpp"
#include "sim/plan/units.hpp"

namespace simsync::detail {
namespace {

/// A message of a collective, of one or several variables.
struct Message {
  std::vector<VariableId> variables;
  LayerId ready_layer = 0;  ///< the last of its gradients that backward reaches
  double wait = 0.0;        ///< before its launch
  double time = 0.0;
  int priority = 0;
  double from = 0.0;     ///< in this step: it may be launched
  double arrives = 0.0;  ///< everywhere
};

class EstimatedStep {
public:
  EstimatedStep(const EstimateContext& context, const Strategy& strategy)
      : c_(context), strategy_(strategy), graph_(strategy.graph), servers_(context, strategy) {
    for (std::size_t layer = 0; layer < c_.forward.size(); ++layer) {
      pass_ += c_.backward[layer];
      ahead_ += c_.forward[layer];
    }
    gates_.resize(c_.forward.size(), 0.0);
    update_ = c_.update * updated_share();
    collect_messages();
    if (!messages_.empty()) servers_.beside_collectives();
  }

  Evaluation run() {
    const bool overlaps = graph_.gate == Gate::PerVariable || (graph_.pull_at_step_start && !messages_.empty());
    constexpr int kIterations = 6;
    constexpr double kSame = 1e-3;  // as ReplayOptions::convergence
    double end = iterate();
    double step = end;
    for (iterations_ = 1; overlaps && iterations_ < kIterations; ++iterations_) {
      const double last = std::exchange(step, -end + iterate());
      end += step;
      if (iterations_ > 1 && std::abs(step - last) <= kSame * step) {
        ++iterations_;
        break;
      }
    }
    Evaluation out{.step = Seconds{step}, .bound = {}, .loads = loads()};
    for (const Seconds busy : {out.loads.compute, out.loads.collectives, out.loads.copies, out.loads.worker_link,
                               out.loads.server_link, out.loads.host_threads, out.loads.server_threads})
      out.bound = std::max(out.bound, busy);
    out.step = std::max(out.step, out.bound);
    return out;
  }

private:
  void collect_messages();
  void add_fused(const std::vector<Gradient>& dense, CollectiveAlgorithm algorithm);
  void add_message(VariableId variable, double time, double wait);

  /// The device works until all of a pass is done, slower beside a collective. Its end.
  [[nodiscard]] double compute(double from, double length) const {
    const double beside = 1.0 - c_.cluster.collective.interference;
    const double shared = std::clamp(stream_.free - from, 0.0, length / beside);
    return from + shared + (length - beside * shared);
  }
  /// When a gradient may leave of which a `share` of the backward pass may run beside communication.
  [[nodiscard]] double leaves(double ready, double begin, double end, double share) const {
    if (graph_.overlap == Overlap::None || share <= 0.0) return end;
    return std::max(ready, begin + (1.0 - share) * pass_);
  }
  /// Compute of one step.
  struct Pass {
    std::vector<double> ready{};  ///< by layer: its gradient
    double backward = 0.0;        ///< the (last) backward pass begins
    double end = 0.0;
  };
  double iterate();
  Pass forward_and_backward();
  void finish_messages();
  void order_by_priority();
  void note_arrival(const Message& message, std::vector<double>& arrived) const;
  double use_servers(const Pass& pass, std::vector<double>& arrived);
  [[nodiscard]] double updated_share() const;
  [[nodiscard]] StepLoads loads() const;

  const EstimateContext& c_;
  const Strategy& strategy_;
  const GraphStrategy& graph_;
  EstimatedServers servers_;
  std::vector<Message> messages_;  ///< in launch order
  double rebuild_ = 0.0;           ///< from sufficient factors
  double pass_ = 0.0;              ///< one backward pass
  double ahead_ = 0.0;             ///< one forward pass
  double update_ = 0.0;            ///< of what workers apply the optimizer to
  Resource stream_;
  double stream_before_ = 0.0;  ///< when the stream was free of the step before
  double last_update_ = 0.0;    ///< of the step before, after its collectives
  double device_free_ = 0.0;
  double start_ = 0.0;         ///< reads of the next step begin
  std::vector<double> gates_;  ///< by layer: its variables are there for the next iteration
  int iterations_ = 0;
};

void EstimatedStep::add_message(VariableId variable, double time, double wait) {
  messages_.push_back({.variables = {variable},
                       .ready_layer = c_.model.variable(variable).layer,
                       .wait = wait,
                       .time = time + graph_.per_operation_cost.value(),
                       .priority = strategy_.variables[variable].priority});
}

void EstimatedStep::collect_messages() {
  std::map<CollectiveAlgorithm, std::vector<Gradient>> dense;
  const StepGradients step = gradients_of(c_.profile);
  std::vector<double> ready(c_.backward.size());
  double elapsed = 0.0;
  for (std::size_t layer = ready.size(); layer-- > 0;) ready[layer] = elapsed += c_.backward[layer];
  for (const VariableId id : c_.backward_order) {
    const VariableStrategy& how = strategy_.variables[id];
    const Variable& variable = c_.model.variable(id);
    for (const Shard& shard : how.shards) {
      if (std::holds_alternative<SfbSynchronizer>(shard.synchronizer)) {
        const double rows =
            static_cast<double>(step.samples) * std::max(1.0, c_.model.layer(variable.layer).dense_rows);
        const auto m = static_cast<double>(variable.shape.front());
        const double k = static_cast<double>(variable.elements()) / m;
        const double bytes = rows * (m + k) * weight_width(variable, c_.profile.precision);
        add_message(id, c_.collective(c_.all, CollectivePrimitive::AllGather, CollectiveAlgorithm::Auto, bytes), 0.0);
        rebuild_ += rebuild_time(c_.cluster.devices.at(c_.cluster.group_of(c_.nodes.front()).device),
                                 c_.profile.precision, 2.0 * rows * m * k * (static_cast<double>(c_.ranks.size()) - 1))
                        .value();
      }
      const auto* reduce = std::get_if<AllReduceSynchronizer>(&shard.synchronizer);
      if (reduce == nullptr) continue;
      const double bytes = wire_bytes(variable, how, shard.elements, step);
      if (travels_sparse(variable, how)) {
        add_message(id, c_.collective(c_.all, CollectivePrimitive::AllGather, CollectiveAlgorithm::Auto, bytes), 0.0);
        continue;
      }
      const CollectiveAlgorithm asked =
          reduce->algorithm == CollectiveAlgorithm::Auto ? graph_.algorithm : reduce->algorithm;
      dense[asked == CollectiveAlgorithm::Auto ? c_.library : asked].push_back(
          {.variable = id,
           .bytes = bytes,
           .ready = Seconds{graph_.overlap == Overlap::WaitFree ? ready[variable.layer] : elapsed},
           .group = reduce->group,
           .priority = how.priority});
    }
  }
  for (const auto& [algorithm, gradients] : dense) add_fused(gradients, algorithm);
  std::stable_sort(messages_.begin(), messages_.end(),
                   [](const Message& a, const Message& b) { return a.ready_layer > b.ready_layer; });
}

void EstimatedStep::add_fused(const std::vector<Gradient>& dense, CollectiveAlgorithm algorithm) {
  const double operation = graph_.per_operation_cost.value();
  const auto time = [&](double bytes) {
    return c_.collective(c_.all, CollectivePrimitive::AllReduce, algorithm, bytes) + operation;
  };
  const DeviceClass& device = c_.cluster.devices.at(c_.cluster.group_of(c_.nodes.front()).device);
  const auto limit = static_cast<double>(graph_.scheduling.partition.count);
  for (const Bucket& bucket : fuse(graph_.fusion, dense, [&](double bytes) { return Seconds{time(bytes)}; })) {
    Message message{.variables = {}, .wait = bucket.wait.value(), .priority = bucket.priority};
    message.ready_layer = c_.model.layer_count();
    for (const std::size_t member : bucket.members) {
      const VariableId id = dense[member].variable;
      message.variables.push_back(id);
      message.ready_layer = std::min(message.ready_layer, c_.model.variable(id).layer);
      message.time +=
          compression_time(strategy_.variables[id], dense[member].bytes, gradients_of(c_.profile), device).value();
    }
    if (graph_.fusion.copies && bucket.members.size() > 1)
      message.time += two_passes(device, bucket.bytes).value();
    const int pieces = pieces_of(bucket.bytes, limit);
    message.time += pieces * time(bucket.bytes / pieces);
    messages_.push_back(std::move(message));
  }
}

/// Collectives again, now that it is known when servers use the links that they need. Each ends with the hop that had
/// to share its link for longest.
void EstimatedStep::finish_messages() {
  const std::vector<SharedWires> shared = servers_.take_shared_wires();
  if (messages_.empty() || shared.empty()) return;
  double free = stream_before_;
  for (Message& message : messages_) {
    const double begin = std::max(free, message.from + message.wait);
    for (const SharedWires& link : shared) free = std::max(free, end_beside(link, begin, message.time));
    message.arrives = free;
  }
  stream_.free = free;
  if (graph_.scheduling.ordering != Ordering::Fifo) order_by_priority();
}

/// One step. When its backward pass has ended, or all of it where the next one waits for all.
double EstimatedStep::iterate() {
  if (graph_.pull_at_step_start) {
    servers_.pull_all(start_, gates_);
    // What the step before had still to send meets these reads.
    finish_messages();
    for (const Message& message : messages_) gates_.front() = std::max(gates_.front(), message.arrives + last_update_);
  }
  const Pass pass = forward_and_backward();
  std::vector<double> arrived(c_.forward.size(), 0.0);
  const double returned = use_servers(pass, arrived);
  if (!graph_.pull_at_step_start) finish_messages();
  for (const Message& message : messages_) note_arrival(message, arrived);
  const double all = *std::max_element(arrived.begin(), arrived.end());
  device_free_ = pass.end + rebuild_;
  std::fill(gates_.begin(), gates_.end(), 0.0);
  if (graph_.gate == Gate::PerVariable) {
    // Updates of layers stand on the device before their forward passes.
    device_free_ += update_;
    gates_ = arrived;
    return device_free_;
  }
  if (!graph_.pull_at_step_start) return device_free_ = std::max(pass.end, all) + update_ + rebuild_;
  // Reads begin when the servers are through; what collectives bring has until the first layer of the next step.
  start_ = std::max(pass.end, returned);
  if (messages_.empty()) return start_;
  gates_.front() = pass.end + update_;
  last_update_ = update_;
  return device_free_;
}

/// Compute, and the collectives that are launched meanwhile.
EstimatedStep::Pass EstimatedStep::forward_and_backward() {
  const std::size_t layers = c_.forward.size();
  Pass pass{.ready = std::vector<double>(layers)};
  double now = device_free_;
  for (std::size_t layer = 0; layer < layers; ++layer) now = compute(std::max(now, gates_[layer]), c_.forward[layer]);
  now += (c_.profile.micro_steps - 1) * (ahead_ + pass_);
  pass.backward = now;
  const OverlapShares& shares = graph_.collectives_overlap;
  const double share = c_.node_count() > 1 ? shares.between_nodes : shares.in_node;
  const bool in_order = graph_.scheduling.ordering == Ordering::Fifo;
  const bool beside = graph_.overlap == Overlap::WaitFree && share > 0.0 && in_order;
  auto next = messages_.begin();
  stream_before_ = stream_.free;
  for (std::size_t layer = layers; layer-- > 0;) {
    now = pass.ready[layer] = compute(now, c_.backward[layer]);
    for (; beside && next != messages_.end() && next->ready_layer >= layer; ++next) {
      next->from = leaves(now, pass.backward, now, share);
      next->arrives = stream_.serve(next->from + next->wait, next->time);
    }
  }
  pass.end = now;
  for (; next != messages_.end(); ++next) {
    const double from = leaves(pass.ready[next->ready_layer], pass.backward, pass.end, share);
    next->arrives = stream_.serve(from + next->wait, next->time);
    next->from = from;
  }
  if (!in_order) order_by_priority();
  return pass;
}

/// The stream is busy for as long as in the order of launches. Of all that is there the most urgent goes first, so the
/// least urgent ends last, and each before those that are less urgent.
void EstimatedStep::order_by_priority() {
  std::vector<Message*> order;
  for (Message& message : messages_) order.push_back(&message);
  std::stable_sort(order.begin(), order.end(),
                   [](const Message* a, const Message* b) { return a->priority > b->priority; });
  double behind = 0.0;
  for (Message* message : order) {
    message->arrives = std::max(message->from + message->wait + message->time, stream_.free - behind);
    behind += message->time;
  }
}

void EstimatedStep::note_arrival(const Message& message, std::vector<double>& arrived) const {
  for (const VariableId id : message.variables) {
    double& layer = arrived[c_.model.variable(id).layer];
    layer = std::max(layer, message.arrives);
  }
}

/// Pushes, and pulls that follow them at once. When all servers have applied all.
double EstimatedStep::use_servers(const Pass& pass, std::vector<double>& arrived) {
  if (servers_.empty()) return 0.0;
  const OverlapShares& shares = graph_.servers_overlap;
  const double share = std::min(shares.in_node, c_.node_count() > 1 ? shares.between_nodes : 1.0);
  std::vector<double> ready;
  for (const double at : pass.ready) ready.push_back(leaves(at, pass.backward, pass.end, share));
  servers_.push_all(ready);
  double returned = 0.0;
  for (const Served& one : servers_.served()) returned = std::max(returned, one.updated.last);
  if (!graph_.pull_at_step_start) servers_.pull_all(0.0, arrived);
  return returned;
}

/// Of the bytes of all variables.
double EstimatedStep::updated_share() const {
  double all = 0.0;
  double here = 0.0;
  for (const VariableStrategy& how : strategy_.variables) {
    const auto bytes = static_cast<double>(c_.model.variable(how.variable).bytes().count);
    all += bytes;
    here += bytes * updated_by_workers(how, graph_);
  }
  return all > 0.0 ? here / all : 0.0;
}

StepLoads EstimatedStep::loads() const {
  StepLoads out;
  servers_.count(out);
  const double times = 1.0 / iterations_;
  for (Seconds* kind : {&out.copies, &out.worker_link, &out.server_link, &out.host_threads, &out.server_threads})
    *kind *= times;
  out.collectives = Seconds{times * stream_.busy};
  out.compute = Seconds{c_.profile.micro_steps * (ahead_ + pass_) + update_};
  return out;
}

}  // namespace

Evaluation estimate_step(const EstimateContext& context, const Strategy& strategy) {
  if (has_sharded(strategy)) return estimate_sharded(context, strategy);
  return EstimatedStep(context, strategy).run();
}

}  // namespace simsync::detail
