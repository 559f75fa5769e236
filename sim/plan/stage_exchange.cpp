#include "sim/plan/stage_exchange.hpp"

#include <algorithm>

#include "sim/plan/fusion.hpp"
#include "strategies/wire_bytes.hpp"

namespace simsync::detail {
StageExchange::StageExchange(const StageTimes& times, const ModelMesh& mesh, const StageModel& part,
                             const Strategy& whole, const Profile& profile)
    : times_(times),
      mesh_(mesh),
      part_(part),
      graph_(whole.graph),
      profile_(profile),
      strategy_(stage_strategy(whole, part)),
      sharded_(has_sharded(whole)) {
  if (sharded_) units_ = units_of(part.model, strategy_, &part);
}

double StageExchange::updated_share() const {
  double all = 0.0;
  double updated = 0.0;
  for (VariableId id = 0; id < part_.gradient_sum.size(); ++id) {
    const auto elements = static_cast<double>(part_.model.variable(id).elements());
    all += elements;
    updated += elements / shares(part_.gradient_sum[id]);
  }
  return all > 0.0 ? updated / all : 1.0;
}

double StageExchange::sent_bytes_of(VariableId id) const {
  const Variable& variable = part_.model.variable(id);
  return wire_bytes(variable, strategy_.variables[id], variable.elements(), gradients_of(profile_));
}

double StageExchange::table_bytes() const {
  return part_.shared_copy ? tied_table_bytes(part_, strategy_, profile_) : 0.0;
}

/// With experts' collectives after the others: they have a stream of their own, on the same links.
UnitTimes StageExchange::times_of(const Unit& unit) {
  const Sharding& sharding = graph_.sharding;
  UnitTimes out{.root = unit.root};
  for (const GradientSum sum : {GradientSum::Replicas, GradientSum::Experts}) {
    const std::vector<VariableId> variables = shared_among(sum, unit.variables, part_);
    const int ranks = shares(sum);
    const int stride = sum == GradientSum::Experts ? mesh_.experts() : 1;
    const double reduced = reduced_bytes(part_.model, variables, sharding, profile_);
    if (ranks > 1) {
      const double gathered = gathered_bytes(part_.model, variables, sharding, profile_) / ranks;
      const MeshGroups::Question shard{.kind = MeshGroupKind::Shard, .size = ranks, .stride = stride};
      out.gather += times_.collective(shard, automatic(CollectivePrimitive::AllGather), gathered);
      out.reduce += times_.collective(shard, automatic(CollectivePrimitive::ReduceScatter), reduced);
    }
    if (ranks < summing_ranks(graph_, sum))
      out.replicas += times_.collective({.kind = MeshGroupKind::ShardReplicas, .size = ranks, .stride = stride},
                                        {.primitive = CollectivePrimitive::AllReduce, .algorithm = graph_.algorithm},
                                        reduced / ranks);
  }
  return out;
}

MeshGroups::Question StageExchange::ranks_that_sum(GradientSum sum) const {
  switch (sum) {
    case GradientSum::Replicas:
      return {.kind = MeshGroupKind::Replicas};
    case GradientSum::Stage:
      return {.kind = MeshGroupKind::Stage};
    case GradientSum::Experts:
      break;
  }
  return {.kind = MeshGroupKind::Shard, .size = summing_ranks(graph_, sum), .stride = mesh_.experts()};
}

/// Of variables whose gradients these ranks sum.
std::vector<StageExchange::Message> StageExchange::reduced_messages(const std::vector<double>& ready, GradientSum sum) {
  std::vector<Gradient> dense;
  for (const VariableId id : part_.model.backward_order())
    if (part_.gradient_sum[id] == sum)
      dense.push_back(
          {.variable = id, .bytes = sent_bytes_of(id), .ready = Seconds{ready[part_.model.variable(id).layer]}});
  const CollectiveKind kind{.primitive = CollectivePrimitive::AllReduce, .algorithm = graph_.algorithm};
  const auto time = [&](double bytes) { return times_.collective(ranks_that_sum(sum), kind, bytes); };
  std::vector<Message> out;
  for (const Bucket& bucket : fuse(graph_.fusion, dense, [&](double bytes) { return Seconds{time(bytes)}; })) {
    Message message{.ready = 0.0, .time = time(bucket.bytes) + bucket.wait.value()};
    for (const std::size_t member : bucket.members)
      message.ready = std::max(message.ready, dense[member].ready.value());
    out.push_back(message);
  }
  return out;
}

std::vector<StageExchange::Message> StageExchange::sharded_messages(const std::vector<double>& ready) {
  std::vector<Message> out;
  for (std::size_t u = units_.size(); u-- > 0;) {
    const UnitTimes times = times_of(units_[u]);
    out.push_back({.ready = ready[units_[u].first], .time = times.reduce, .replicas = times.replicas});
  }
  return out;
}

/// Of the shares of gradients of which tensor-parallel ranks have parts, at the end of a step.
double StageExchange::sum_of_partial_shares() {
  std::vector<VariableId> partial;
  for (VariableId id = 0; id < part_.gradient_sum.size(); ++id)
    if (part_.gradient_sum[id] == GradientSum::Stage) partial.push_back(id);
  return times_.collective({.kind = MeshGroupKind::Tensor}, automatic(CollectivePrimitive::AllReduce),
                           reduced_bytes(part_.model, partial, graph_.sharding, profile_) / shares(GradientSum::Stage));
}

/// When messages that leave in this order on one stream have arrived.
double StageExchange::arrival(const std::vector<Message>& messages, double computed) {
  Resource stream;
  Resource replicas;
  double end = computed;
  for (const Message& message : messages) {
    const double from = graph_.overlap == Overlap::None ? computed : message.ready;
    const double through = stream.serve(from, message.time);
    end = std::max({end, through, replicas.serve(through, message.replicas)});
  }
  busy_ = stream.busy;
  return end;
}

double StageExchange::summed(const std::vector<double>& ready, double computed) {
  if (sharded_) {
    std::vector<Message> messages = sharded_messages(ready);
    // What was reduced in every pass is through but for the last.
    if (graph_.sharding.reduces_early() && !messages.empty()) messages.erase(messages.begin(), messages.end() - 1);
    return arrival(messages, computed) + sum_of_partial_shares();
  }
  // Sums among replicas, among all ranks of the stage and of experts are streams on the same links: one after the other
  // takes as long as all at a part of the rate.
  std::vector<Message> messages;
  for (const GradientSum sum : {GradientSum::Replicas, GradientSum::Stage, GradientSum::Experts}) {
    const std::vector<Message> of = reduced_messages(ready, sum);
    messages.insert(messages.end(), of.begin(), of.end());
  }
  std::stable_sort(messages.begin(), messages.end(),
                   [](const Message& a, const Message& b) { return a.ready < b.ready; });
  return arrival(messages, computed);
}

}  // namespace simsync::detail
