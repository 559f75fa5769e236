// The parts of compile: what each kind of synchronizer adds to the plan. Private to sim/plan.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "models/profile.hpp"
#include "platforms/cluster.hpp"
#include "sim/plan/collectives.hpp"
#include "sim/plan/plan.hpp"
#include "strategies/layer_boxing.hpp"
#include "strategies/stage_model.hpp"
#include "strategies/strategy.hpp"
#include "strategies/wire_bytes.hpp"

namespace simsync::detail {

/// Of the backward pass of a product with weights, what gives their gradients: one of two products as large.
inline constexpr double kWeightShare = 0.5;
inline constexpr std::size_t kMostOps = 2'000'000;  ///< of a plan: some gigabyte

/// What it takes to go through bytes on a host.
struct HostPass {
  Seconds time;
  double threads = 1;  ///< at least the same share of all as of the host's memory bandwidth
};
struct HostPassRates {
  bool parallel = false;      ///< GraphStrategy::parallel_host_ops
  BytesPerSecond per_thread;  ///< bytes that one thread handles
  double passes = 1.0;        ///< times that each byte is read or written
};
HostPass host_pass(const CpuClass& cpu, const HostPassRates& rates, double bytes);

/// A stretch of the compute stream.
struct Stretch {
  OpId first = -1;
  OpId last = -1;    ///< or, where the host announces what it gives, that
  OpId launch = -1;  ///< the first work of the host for it; none: the strategy has no HostCosts
};

/// Ops of a micro-step, by layer.
struct MicroStep {
  std::vector<OpId> forward;
  std::vector<OpId> backward;
  std::vector<OpId> backward_begin;  ///< its first op, where it is cut or begins with what is computed again
  /// Of a stage: its last op but for gradients of weights that have a pass of their own. Else empty.
  std::vector<OpId> input_gradient = {};
  /// By share of the backward pass: the op at whose end so much is still to come (OverlapShares, but for 0 and 1).
  std::map<double, OpId> backward_but;
};

/// Whose gradients are summed, and on which stream.
struct SumGroup {
  GroupingId ranks = kWholeJob;
  QueueId queue = -1;
};

/// A plan in the making and what all parts of compile look at. Where replicas of the model are several ranks, each
/// stage has one, with the model, the profile and the strategy of what a rank of it holds; all add to one plan.
struct PlanWriter {
  const Model& model;
  const Profile& profile;
  const Cluster& cluster;
  const Strategy& strategy;
  Plan& plan;
  GroupingId each = kEachRank;      ///< the ranks that it is about, each alone
  GroupingId replicas = kWholeJob;  ///< those of them that hold the same variables
  std::int32_t first_layer = 0;     ///< in Plan::layers: the first of `model`

  /// The first and the last; those between, too, where each of them exchanges something.
  std::vector<MicroStep> micro_steps = {};
  /// Of `micro_steps`, the one whose backward pass comes last; none: the last one.
  std::optional<std::size_t> last_back = {};
  std::vector<Seconds> backward_left = {};  ///< by layer: of a backward pass, what comes after its own
  Seconds backward_pass = {};
  QueueId compute = -1;        ///< compute stream of each device
  QueueId host = -1;           ///< threads of each node's host
  QueueId communication = -1;  ///< stream of collectives
  QueueId to_host = -1;        ///< copy engine of each device, one per direction
  QueueId to_device = -1;
  QueueId inside_node = -1;  ///< stream of collectives among the devices of a node
  QueueId push = -1;         ///< scheduled sends, -1: unscheduled
  QueueId pull = -1;
  std::map<Place, QueueId> server_queue = {};  ///< of every server; on a host with ranks `host`

  /// Ops that the next iteration's forward of a layer waits for, by layer.
  std::vector<std::vector<OpId>> gates = {};
  OpId first_launch = -1;  ///< of hosts that wait for all of `gates` before they launch the next iteration
  /// Gathers of sharded parameters for a step, by layer: each waits for the updates of these in the step before.
  std::vector<std::set<OpId>> gathers = {};
  std::map<GradientSum, double> update_share = {};  ///< of a sharded variable that each rank updates
  /// Ops after which a worker's copy of a variable is up to date apart from the optimizer step on the worker.
  std::vector<std::pair<VariableId, OpId>> to_update = {};

  const StageModel* stage = nullptr;  ///< whose `model` it is; null: replicas are single ranks
  int stage_number = 0;
  std::map<BoxingGroup, GroupingId> boxing = {};  ///< ranks that share out layers, where they are several
  std::map<GradientSum, SumGroup> sums = {};      ///< of a stage, where other ranks than its replicas sum gradients
  /// Passes of a stage by direction (Phase::Forward or Backward), micro-step and chunk.
  std::map<std::tuple<Phase, int, int>, Stretch> passes = {};

  [[nodiscard]] GradientSum sum_of(VariableId variable) const {
    return stage != nullptr ? stage->gradient_sum[variable] : GradientSum::Replicas;
  }
  [[nodiscard]] SumGroup sum_group(GradientSum sum) const {
    return sum == GradientSum::Replicas ? SumGroup{replicas, communication} : sums.at(sum);
  }
  [[nodiscard]] std::size_t last_number() const { return last_back.value_or(micro_steps.size() - 1); }
  [[nodiscard]] const MicroStep& last_step() const { return micro_steps[last_number()]; }
  /// Where the ranks of the first group of a grouping run.
  [[nodiscard]] std::vector<Place> places(GroupingId grouping) const;
  /// What collectives of a grouping are chosen by: the costs of its first group, and whether the others are like it.
  [[nodiscard]] GroupCosts collective_costs(GroupingId grouping) const;
  /// Whether what holds the same variables lies on several nodes.
  [[nodiscard]] bool spans_nodes() const;
  /// Of the strategy's OverlapShares, the one for where these ranks are. Asks all groups: worth keeping.
  [[nodiscard]] double overlap_share() const;
  /// A layer of `model` for Reason and ComputePart.
  [[nodiscard]] std::int32_t layer_number(LayerId layer) const {
    return first_layer + static_cast<std::int32_t>(layer);
  }

  void note(const std::string& text);                                  ///< once
  void note_ring(const GroupCosts& costs, CollectiveAlgorithm asked);  ///< where one runs instead of what was asked for
  OpId add(Op op);                                                     ///< @throws PlanError above kMostOps
  QueueId add_queue(Queue queue);
  QueueId rpc = -1;  ///< of each node's host: messages to and from servers on other nodes
  /// Samples of a rank in a step.
  [[nodiscard]] std::int64_t samples() const { return profile.micro_steps * profile.batch; }
  [[nodiscard]] StepGradients gradients() const { return gradients_of(profile); }
  /// The op whose end makes the gradient of a layer final and free to leave, where a `share` of the backward pass may
  /// run beside the communication (OverlapShares).
  [[nodiscard]] OpId gradient_ready(LayerId layer, double share = 1.0) const;
  /// The same of what one micro-step adds to it.
  [[nodiscard]] OpId gradient_ready(const MicroStep& step, LayerId layer, double share) const;
  [[nodiscard]] std::string label(VariableId variable, std::size_t shard, std::size_t shards) const;
  [[nodiscard]] const DeviceClass& device() const;  ///< of the first rank
  void choose_protocol(Op& op) const;               ///< of a collective whose algorithm is known
  /// The least threads and rates among the hosts with ranks: an op of all hosts is written once, with what the slowest
  /// takes.
  [[nodiscard]] CpuClass slowest_host() const;
  /// detail::host_pass of this strategy.
  using HostPass = detail::HostPass;
  [[nodiscard]] HostPass host_pass(const CpuClass& cpu, BytesPerSecond per_thread, double times, double bytes) const {
    return detail::host_pass(cpu, {strategy.graph.parallel_host_ops, per_thread, times}, bytes);
  }
  [[nodiscard]] bool hosts_alike() const;  ///< in ranks, threads and rates
};

/// Pieces of at most `limit` bytes, 1 when there is no limit. @throws PlanError above kMostOps.
int pieces_of(double bytes, double limit);
/// What a copy into a buffer of the device and the one out of it take, or encoding and decoding: each reads and writes.
Seconds two_passes(const DeviceClass& device, double bytes);
/// Time to encode and decode it on the device: it is read and written once each way. Two bytes are not cast to two.
Seconds compression_time(const VariableStrategy& how, double bytes, const StepGradients& step,
                         const DeviceClass& device);

/// Time of the products of others' sufficient factors on a device.
Seconds rebuild_time(const DeviceClass& device, const std::string& precision, double flops);

/// Mean of the largest of so many draws from the standard normal distribution; 0 for one.
double expected_largest(int draws);
/// Whether parameters are gathered or gradients reduced before the last micro-step, too.
bool exchanges_in_every_micro_step(const Strategy& strategy);
/// Forward and backward of every layer, one op each, in each of PlanWriter::micro_steps. In lock step they last as long
/// as on the slowest rank (DeviceClass::compute_variation).
void write_compute(PlanWriter& writer);
/// The queues that a strategy needs, for all ranks.
void write_queues(PlanWriter& writer);
/// All of a strategy whose replicas are several ranks; `whole` is about the whole model and all ranks.
void write_stages(PlanWriter& whole);
/// Shards on collectives in launch order: dense ones fused and all-reduced, rows of sparse ones all-gathered.
void write_all_reduce(PlanWriter& writer);
/// Shards on parameter servers: copy, aggregate, push, update, pull.
void write_parameter_servers(PlanWriter& writer);
/// Variables shared out among ranks: gather, reduce-scatter, all-reduce over replicas.
void write_sharded(PlanWriter& writer);
/// Sufficient factors: exchange and reconstruction.
void write_sufficient_factors(PlanWriter& writer);
/// Optimizer steps on the workers, and what the next forward pass waits for.
void write_updates(PlanWriter& writer);
/// Merges neighboring compute ops that nothing else looks at.
void merge_compute(Plan& plan);
/// Collective::ratio, and the setup of collectives with it. Those that the library would not run by itself stay as they
/// are.
void apply_ratios(Plan& plan, const CollectiveCosts& costs);

}  // namespace simsync::detail
