#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/fusion.hpp"
#include "sim/plan/plan_writer.hpp"
#include "strategies/names.hpp"

namespace simsync::detail {
namespace {

/// A shard on a collective, in backward order.
struct Sent {
  Gradient gradient;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Ring;
  Seconds encoding;
  bool sparse = false;   ///< all-gathered as rows: `gradient.bytes` is what one rank contributes
  double indices = 0.0;  ///< the part of these bytes that is indices
};

/// All-reduces are negotiated among all ranks: a gradient is there when the slowest device has it.
double slowest_device(const PlanWriter& writer) {
  double slowest = 0.0;
  for (const int node : writer.plan.nodes) slowest = std::max(slowest, writer.cluster.group_of(node).compute_slowdown);
  return slowest;
}

/// Of variables whose gradients these ranks sum.
std::vector<Sent> collect(const PlanWriter& writer, GradientSum sum) {
  std::vector<Sent> out;
  const CollectiveAlgorithm library = library_algorithm(writer.cluster);
  std::vector<Seconds> ready(writer.model.layer_count());  // after the start of backward
  const double slowdown = slowest_device(writer);
  const StepGradients gradients = writer.gradients();
  Seconds elapsed;
  for (LayerId layer = writer.model.layer_count(); layer-- > 0;) {
    elapsed += slowdown * writer.profile.layers[layer].backward;
    ready[layer] = elapsed;
  }
  for (const VariableId id : writer.model.backward_order()) {
    if (writer.sum_of(id) != sum) continue;
    const VariableStrategy& how = writer.strategy.variables[id];
    const Variable& variable = writer.model.variable(id);
    for (const Shard& shard : how.shards) {
      const auto* reduce = std::get_if<AllReduceSynchronizer>(&shard.synchronizer);
      if (reduce == nullptr) continue;
      Sent sent;
      const double bytes = wire_bytes(variable, how, shard.elements, gradients);
      sent.gradient = {.variable = id,
                       .bytes = bytes,
                       .ready = writer.strategy.graph.overlap == Overlap::WaitFree ? ready[variable.layer] : elapsed,
                       .group = reduce->group,
                       .priority = how.priority};
      const CollectiveAlgorithm asked =
          reduce->algorithm == CollectiveAlgorithm::Auto ? writer.strategy.graph.algorithm : reduce->algorithm;
      sent.algorithm = asked == CollectiveAlgorithm::Auto ? library : asked;
      sent.sparse = travels_sparse(variable, how);
      sent.indices = index_bytes(variable, how, shard.elements, gradients.samples);
      if (!sent.sparse) sent.encoding = compression_time(how, bytes, gradients, writer.device());
      out.push_back(sent);
    }
  }
  return out;
}

/// The framework's wait between the last gradient of a bucket and its launch.
OpId add_wait(PlanWriter& writer, GroupingId grouping, const Bucket& bucket, const std::string& label, OpId ready) {
  Op wait;
  wait.grouping = grouping;
  wait.body = HostWork{.action = HostAction::Wait,
                       .at = {.kind = End::Kind::Fixed, .place = {writer.places(grouping).front().node, -1}},
                       .duration = bucket.wait};
  wait.after = {{ready, 0}};
  wait.reason = {Phase::Start, -1, "wait of " + label};
  return writer.add(std::move(wait));
}

/// Says what the framework itself would refuse.
void note_refused(PlanWriter& writer, const std::vector<Sent>& sent) {
  const bool autodist = writer.strategy.graph.fusion.kind == FusionKind::Groups;
  if (autodist && writer.spans_nodes() &&
      std::any_of(sent.begin(), sent.end(), [](const Sent& one) { return one.sparse; }))
    writer.note(
        "rows of sparse variables are all-gathered; AutoDist refuses that over several nodes "
        "(sparse_as_dense=true all-reduces the tables)");
}

/// Writes the collectives of one job, in launch order.
class Collectives {
public:
  Collectives(PlanWriter& writer, const SumGroup& group, const std::vector<Sent>& sent)
      : w_(writer),
        group_(group),
        sent_(sent),
        costs_(writer.collective_costs(group.ranks)),
        overlap_(writer.overlap_share()) {}

  /// Dense gradients merged by the rule of the framework; every sparse one alone, and launched when a dense one in its
  /// place would be.
  [[nodiscard]] std::vector<Bucket> buckets() const {
    std::vector<Bucket> out = merged([](const Sent& one) { return !one.sparse; });
    for (const Sent& rows : sent_) {
      if (!rows.sparse) continue;
      const auto alone = merged([&](const Sent& one) { return &one == &rows; });
      out.insert(out.end(), alone.begin(), alone.end());
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const Bucket& a, const Bucket& b) { return a.members.back() < b.members.back(); });
    return out;
  }

  void write(const Bucket& bucket, std::size_t number) {
    const Sent& first = sent_[bucket.members.front()];
    const std::string label =
        bucket.members.size() == 1 ? w_.model.variable(first.gradient.variable).name : fmt::format("bucket {}", number);
    OpId ready = ready_op(bucket);
    if (bucket.wait.value() > 0.0) ready = add_wait(w_, group_.ranks, bucket, label, ready);
    if (first.sparse) {
      launch(bucket, gathered(first.indices, label + " indices"), ready);
      launch(bucket, gathered(bucket.bytes - first.indices, label + " rows"), ready);
      return;
    }
    const int pieces = pieces_of(bucket.bytes, static_cast<double>(w_.strategy.graph.scheduling.partition.count));
    for (int piece = 0; piece < pieces; ++piece)
      launch(bucket, reduced(bucket, pieces, pieces > 1 ? fmt::format("{} piece {}", label, piece) : label), ready);
  }

private:
  template <typename Which>
  std::vector<Bucket> merged(const Which& which) const {
    std::vector<Gradient> gradients;
    std::vector<std::size_t> index;  // into sent_
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      if (!which(sent_[i])) continue;
      gradients.push_back(sent_[i].gradient);
      index.push_back(i);
    }
    if (gradients.empty()) return {};
    const auto cost = [&](double bytes) {
      return setup_of(bytes) + choice(CollectivePrimitive::AllReduce, sent_[index.front()].algorithm, bytes).time;
    };
    auto out = fuse(w_.strategy.graph.fusion, gradients, cost);
    for (Bucket& bucket : out)
      for (std::size_t& member : bucket.members) member = index[member];
    return out;
  }

  [[nodiscard]] CollectiveChoice choice(CollectivePrimitive primitive, CollectiveAlgorithm algorithm,
                                        double bytes) const {
    return choose(primitive, algorithm, costs_, bytes);
  }
  [[nodiscard]] Seconds setup_of(double bytes) const {
    return collective_setup(w_.cluster.collective, bytes) + w_.strategy.graph.per_operation_cost;
  }

  /// The op after which the last member of a bucket is final: the one that backward reaches last.
  [[nodiscard]] OpId ready_op(const Bucket& bucket) const {
    LayerId lowest = w_.model.layer_count();
    for (const std::size_t member : bucket.members) lowest = std::min(lowest, layer_of(member));
    return w_.gradient_ready(lowest, overlap_);
  }
  [[nodiscard]] LayerId layer_of(std::size_t member) const {
    return w_.model.variable(sent_[member].gradient.variable).layer;
  }

  /// Copies into and out of the fusion buffer, reading and writing, and what encodes the members.
  [[nodiscard]] Seconds packing_of(const Bucket& bucket) const {
    Seconds out;
    for (const std::size_t member : bucket.members) out += sent_[member].encoding;
    if (w_.strategy.graph.fusion.copies && bucket.members.size() > 1) out += two_passes(w_.device(), bucket.bytes);
    return out;
  }

  [[nodiscard]] Op reduced(const Bucket& bucket, int pieces, const std::string& label) const {
    const CollectiveAlgorithm asked = sent_[bucket.members.front()].algorithm;
    w_.note_ring(costs_, asked);
    Op op = collective(CollectivePrimitive::AllReduce, asked, bucket.bytes / pieces, label);
    op.collective().packing = packing_of(bucket) / pieces;
    op.collective().setup += op.collective().packing;
    return op;
  }
  /// Every rank contributes so many bytes.
  [[nodiscard]] Op gathered(double bytes, const std::string& label) const {
    return collective(CollectivePrimitive::AllGather, CollectiveAlgorithm::Auto, bytes, label);
  }

  [[nodiscard]] Op collective(CollectivePrimitive primitive, CollectiveAlgorithm algorithm, double bytes,
                              const std::string& label) const {
    Op op;
    op.grouping = group_.ranks;
    op.queue = group_.queue;
    op.reason = {Phase::Synchronize, -1, label};
    const CollectiveChoice chosen = choice(primitive, algorithm, bytes);
    op.body = Collective{.primitive = primitive,
                         .algorithm = chosen.algorithm,
                         .protocol = chosen.protocol,
                         .bytes = bytes,
                         .setup = setup_of(bytes)};
    return op;
  }

  void launch(const Bucket& bucket, Op op, OpId ready) {
    op.priority = bucket.priority;
    op.reason.layer = w_.layer_number(layer_of(bucket.members.back()));
    op.after = {{ready, 0}};
    // One stream serves in launch order: a later bucket never overtakes an earlier one that is not ready yet.
    const GraphStrategy& graph = w_.strategy.graph;
    const bool in_order = graph.serial_collectives && graph.scheduling.ordering == Ordering::Fifo;
    if (in_order && previous_ >= 0) op.after.push_back({previous_, 0});
    previous_ = w_.add(std::move(op));
    for (const std::size_t member : bucket.members)
      w_.to_update.emplace_back(sent_[member].gradient.variable, previous_);
  }

  PlanWriter& w_;
  SumGroup group_;
  const std::vector<Sent>& sent_;
  GroupCosts costs_;
  double overlap_;
  OpId previous_ = -1;
};

/// Of a replica whose rank has nobody to sum with: Megatron-LM launches nothing then.
void update_alone(PlanWriter& writer, const std::vector<Sent>& sent) {
  for (const Sent& one : sent) {
    const VariableId id = one.gradient.variable;
    writer.to_update.emplace_back(id, writer.gradient_ready(writer.model.variable(id).layer));
  }
}

}  // namespace

void write_all_reduce(PlanWriter& writer) {
  for (const GradientSum sum : {GradientSum::Replicas, GradientSum::Stage, GradientSum::Experts}) {
    const std::vector<Sent> sent = collect(writer, sum);
    if (sent.empty()) continue;
    const SumGroup group = writer.sum_group(sum);
    if (writer.stage != nullptr && writer.plan.grouping(group.ranks).ranks(0).size() == 1) {
      update_alone(writer, sent);
      continue;
    }
    note_refused(writer, sent);
    Collectives collectives(writer, group, sent);
    const std::vector<Bucket> buckets = collectives.buckets();
    for (std::size_t b = 0; b < buckets.size(); ++b) collectives.write(buckets[b], b);
  }
}

}  // namespace simsync::detail
