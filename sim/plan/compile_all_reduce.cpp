#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/fusion.hpp"
#include "sim/plan/plan_writer.hpp"
#include "strategies/names.hpp"

namespace simsync::detail {
namespace {

/// All-reduced shards in backward order.
struct Reduced {
  std::vector<Gradient> gradients;
  std::vector<CollectiveAlgorithm> algorithm;  ///< by gradient
  std::vector<Seconds> encoding;               ///< by gradient
};

/// What `auto` means with this cluster's library. @throws PlanError for a word that is no algorithm.
CollectiveAlgorithm algorithm_of_library(const Cluster& cluster) {
  std::vector<std::string> known;
  for (const auto& [word, algorithm] : collective_algorithm_words()) {
    if (word == cluster.collective.algorithm) return algorithm;
    known.push_back(word);
  }
  throw PlanError(fmt::format("collective.algorithm of cluster '{}' is '{}': expected one of {}", cluster.name,
                              cluster.collective.algorithm, fmt::join(known, ", ")));
}

/// All-reduces are negotiated among all ranks: a gradient is there when the slowest device has it.
double slowest_device(const PlanWriter& writer) {
  double slowest = 0.0;
  for (const int node : writer.plan.nodes) slowest = std::max(slowest, writer.cluster.group_of(node).compute_slowdown);
  return slowest;
}

Reduced collect(const PlanWriter& writer) {
  Reduced out;
  const CollectiveAlgorithm library = algorithm_of_library(writer.cluster);
  std::vector<Seconds> ready(writer.model.layer_count());  // after the start of backward
  const double slowdown = slowest_device(writer);
  Seconds elapsed;
  for (LayerId layer = writer.model.layer_count(); layer-- > 0;) {
    elapsed += slowdown * writer.profile.layers[layer].backward;
    ready[layer] = elapsed;
  }
  for (const VariableId id : writer.model.backward_order()) {
    const VariableStrategy& how = writer.strategy.variables[id];
    const Variable& variable = writer.model.variable(id);
    for (const Shard& shard : how.shards) {
      const auto* reduce = std::get_if<AllReduceSynchronizer>(&shard.synchronizer);
      if (reduce == nullptr) continue;
      // A sum of sparse gradients is not sparse: a collective moves the table that they would be added to.
      VariableStrategy dense = how;
      dense.sparse_as_dense = true;
      const double bytes = wire_bytes(variable, dense, shard.elements, writer.profile.batch);
      out.gradients.push_back(
          {.variable = id,
           .bytes = bytes,
           .ready = writer.strategy.graph.overlap == Overlap::WaitFree ? ready[variable.layer] : elapsed,
           .group = reduce->group,
           .priority = how.priority});
      const CollectiveAlgorithm asked =
          reduce->algorithm == CollectiveAlgorithm::Auto ? writer.strategy.graph.algorithm : reduce->algorithm;
      out.algorithm.push_back(asked == CollectiveAlgorithm::Auto ? library : asked);
      out.encoding.push_back(compression_time(how, bytes, writer.device()));
    }
  }
  return out;
}

/// The op after which the last member of a bucket is final: the one that backward reaches last.
OpId ready_op(const PlanWriter& writer, const Reduced& reduced, const Bucket& bucket) {
  LayerId lowest = writer.model.variable(reduced.gradients[bucket.members.front()].variable).layer;
  for (const std::size_t member : bucket.members)
    lowest = std::min(lowest, writer.model.variable(reduced.gradients[member].variable).layer);
  return writer.gradient_ready(lowest);
}

/// The framework's wait between the last gradient of a bucket and its launch.
OpId add_wait(PlanWriter& writer, const Bucket& bucket, const std::string& label, OpId ready) {
  Op wait;
  wait.kind = OpKind::HostWork;
  wait.scope = Scope::Job;
  wait.duration = bucket.wait;
  wait.from = {.kind = End::Kind::Fixed, .place = {writer.plan.ranks.front().node, -1}};
  wait.after = {{ready, 0}};
  wait.reason = {Phase::Start, -1, "wait of " + label};
  return writer.add(std::move(wait));
}

/// Says that what was asked for cannot run on these nodes, when it cannot.
void note_replaced(PlanWriter& writer, const Reduced& reduced, const GroupShape& group) {
  const auto asked = std::find(reduced.algorithm.begin(), reduced.algorithm.end(), CollectiveAlgorithm::Hierarchical);
  if (asked == reduced.algorithm.end() || group.alike()) return;
  writer.plan.notes.emplace_back(
      "a hierarchical all-reduce needs equal numbers of ranks on all nodes: it runs as a ring here");
}

}  // namespace

void write_all_reduce(PlanWriter& writer) {
  const Reduced reduced = collect(writer);
  if (reduced.gradients.empty()) return;
  const GraphStrategy& graph = writer.strategy.graph;
  const GroupShape group = group_shape(writer.plan);
  note_replaced(writer, reduced, group);
  const auto protocols = link_rates(writer.cluster, writer.plan.ranks);
  const auto choice = [&](CollectiveAlgorithm algorithm, double bytes) {
    return choose(CollectivePrimitive::AllReduce, algorithm, group, bytes, protocols);
  };
  const auto setup_of = [&](double bytes) {
    return collective_setup(writer.cluster.collective, bytes) + graph.per_operation_cost;
  };
  const auto cost = [&](double bytes) { return setup_of(bytes) + choice(reduced.algorithm.front(), bytes).time; };
  const auto buckets = fuse(graph.fusion, reduced.gradients, cost);
  OpId previous = -1;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const Bucket& bucket = buckets[b];
    OpId ready = ready_op(writer, reduced, bucket);
    const std::string label = bucket.members.size() == 1
                                  ? writer.model.variable(reduced.gradients[bucket.members.front()].variable).name
                                  : fmt::format("bucket {}", b);
    if (bucket.wait.value() > 0.0) ready = add_wait(writer, bucket, label, ready);
    Seconds packing;
    for (const std::size_t member : bucket.members) packing += reduced.encoding[member];
    if (graph.fusion.copies && bucket.members.size() > 1)
      packing += Seconds{4.0 * bucket.bytes / writer.device().memory_bandwidth.value()};  // in and out, read and write
    const auto limit = static_cast<double>(graph.scheduling.partition.count);
    const int pieces = pieces_of(bucket.bytes, limit);
    OpId last = -1;
    for (int piece = 0; piece < pieces; ++piece) {
      Op op;
      op.kind = OpKind::Collective;
      op.scope = Scope::Job;
      op.queue = writer.communication;
      op.priority = bucket.priority;
      op.reason = {
          Phase::Synchronize,
          static_cast<std::int32_t>(writer.model.variable(reduced.gradients[bucket.members.back()].variable).layer),
          pieces > 1 ? fmt::format("{} piece {}", label, piece) : label};
      op.bytes = bucket.bytes / pieces;
      op.duration = setup_of(op.bytes) + packing;
      op.primitive = CollectivePrimitive::AllReduce;
      const auto chosen = choice(reduced.algorithm[bucket.members.front()], op.bytes);
      op.algorithm = chosen.algorithm;
      op.protocol = chosen.protocol;
      op.after = {{ready, 0}};
      // One stream serves in launch order: a later bucket never overtakes an earlier one that is not ready yet.
      const bool in_order = graph.serial_collectives && graph.scheduling.ordering == Ordering::Fifo;
      if (in_order && previous >= 0) op.after.push_back({previous, 0});
      last = previous = writer.add(std::move(op));
      for (const std::size_t member : bucket.members)
        writer.to_update.emplace_back(reduced.gradients[member].variable, last);
    }
  }
}

}  // namespace simsync::detail
