// AutoDist's collective builders: all-reduce, partitioned-all-reduce, random-axis-partition-all-reduce, parallax.
//
// A group of `chunk` variables is one collective, which starts when its last member is ready. The next step begins
// when session.run has returned (Gate::All).
#include <limits>

#include "base/divisors.hpp"
#include "base/random.hpp"
#include "strategies/families.hpp"
#include "strategies/partition.hpp"

namespace simsync {
namespace {

/// TensorFlow's hint for the transport of a collective.
enum class Spec { Auto, Nccl, Ring };

std::vector<OptionInfo> all_reduce_options(const std::string& spec) {
  return joined(
      {{"chunk", "128", "variables or shards per group; a group is one collective"},
       {"spec", spec,
        "nccl or auto: one stream in launch order; ring: TensorFlow's own ring, collectives run side by side"},
       {"sparse_as_dense", "false", "true: sparse gradients travel as whole tensors; false: as all-gathered rows"}},
      collective_options());
}

std::int64_t chunk_of(const Options& options) {
  return options.integer("chunk", 1, std::numeric_limits<int>::max());
}

AllReduceSynchronizer in_group(std::int64_t position, std::int64_t chunk) {
  return {.algorithm = CollectiveAlgorithm::Auto, .group = static_cast<int>(position / chunk)};
}

/// Before apply_common_options: an `algorithm` given by the user would be for NCCL's choice.
void apply_spec(const Options& options, Strategy& strategy) {
  const Spec spec = options.one_of<Spec>("spec", {{"auto", Spec::Auto}, {"nccl", Spec::Nccl}, {"ring", Spec::Ring}});
  strategy.graph.fusion.kind = FusionKind::Groups;
  strategy.graph.serial_collectives = spec != Spec::Ring;
  if (spec == Spec::Ring && options.text("algorithm") != "auto" && options.text("algorithm") != "ring")
    options.fail("spec", "'ring' goes with algorithm=ring or algorithm=auto only");
}

/// TensorFlow's own transport knows the ring only.
void fix_ring(const Options& options, Strategy& strategy) {
  if (options.text("spec") != "ring") return;
  for (auto& entry : strategy.variables) {
    for (auto& shard : entry.shards) {
      if (auto* all_reduce = std::get_if<AllReduceSynchronizer>(&shard.synchronizer))
        all_reduce->algorithm = CollectiveAlgorithm::Ring;
    }
  }
}

void apply_sparse_as_dense(const BuildRequest& request, const Options& options, Strategy& strategy) {
  const bool dense = options.boolean("sparse_as_dense");
  for (auto& entry : strategy.variables) entry.sparse_as_dense = dense && request.model.variable(entry.variable).sparse;
}

void build_all_reduce(const BuildRequest& request, const Options& options, Strategy& strategy) {
  apply_spec(options, strategy);
  const std::int64_t chunk = chunk_of(options);
  for (VariableId id = 0; id < request.model.variables().size(); ++id)
    strategy.variables.push_back(whole_variable(request.model, id, in_group(static_cast<std::int64_t>(id), chunk)));
  fix_ring(options, strategy);
  apply_sparse_as_dense(request, options, strategy);
}

/// `axis_of` returns the axis to split, or kWholeVariable.
void build_partitioned(const BuildRequest& request, const Options& options, Strategy& strategy,
                       const std::function<int(const Variable&)>& axis_of) {
  apply_spec(options, strategy);
  const std::int64_t chunk = chunk_of(options);
  std::int64_t counter = 0;
  for (VariableId id = 0; id < request.model.variables().size(); ++id) {
    const Variable& variable = request.model.variable(id);
    const int axis = axis_of(variable);
    const std::int64_t parts =
        axis == kWholeVariable ? 1 : smallest_divisor(variable.shape[static_cast<std::size_t>(axis)]);
    const auto elements = axis == kWholeVariable ? std::vector{variable.elements()} : split_axis(variable, axis, parts);
    strategy.variables.push_back(
        partitioned_variable(id, axis, elements, [&](std::size_t) { return in_group(counter++, chunk); }));
  }
  fix_ring(options, strategy);
  apply_sparse_as_dense(request, options, strategy);
}

void build_first_axis(const BuildRequest& request, const Options& options, Strategy& strategy) {
  build_partitioned(request, options, strategy,
                    [](const Variable& v) { return !v.shape.empty() && v.shape.front() > 1 ? 0 : kWholeVariable; });
}

void build_random_axis(const BuildRequest& request, const Options& options, Strategy& strategy) {
  Random random(request.seed);
  build_partitioned(request, options, strategy, [&](const Variable& variable) {
    const auto axes = splittable_axes(variable);
    return axes.empty() ? kWholeVariable : axes[random.below(axes.size())];
  });
}

void build_parallax(const BuildRequest& request, const Options& options, Strategy& strategy) {
  apply_spec(options, strategy);
  strategy.graph.pull_at_step_start = true;
  const std::int64_t chunk = chunk_of(options);
  PsSynchronizer ps = waiting_synchronizer(options);
  Placement placement(hosts_of(request.cluster, request.workers).all());
  for (VariableId id = 0; id < request.model.variables().size(); ++id) {
    const Variable& variable = request.model.variable(id);
    if (variable.sparse) ps.server = placement.least_loaded(static_cast<double>(variable.bytes().count));
    strategy.variables.push_back(
        variable.sparse ? whole_variable(request.model, id, ps)
                        : whole_variable(request.model, id, in_group(static_cast<std::int64_t>(id), chunk)));
  }
  fix_ring(options, strategy);
}

std::vector<OptionInfo> parallax_options() {
  return joined(
      {{"chunk", "128", "positions per group; sparse variables count"},
       {"spec", "nccl",
        "nccl or auto: one stream in launch order; ring: TensorFlow's own ring, collectives run side by side"},
       {"sync", "true", "false: no coordination of the sparse variables"},
       {"staleness", "0", "steps that the fastest worker may lead on sparse variables"}},
      joined(connection_options(), collective_options()));
}

}  // namespace

std::vector<BuilderInfo> autodist_all_reduce_builders() {
  return {{"all-reduce", "All variables all-reduced in groups of `chunk` in model order (AutoDist AllReduce).",
           all_reduce_options("nccl"), build_all_reduce},
          {"partitioned-all-reduce",
           "Axis 0 split by its smallest divisor, shards all-reduced in groups (AutoDist PartitionedAR).",
           all_reduce_options("auto"), build_first_axis},
          {"random-axis-partition-all-reduce",
           "As partitioned-all-reduce on an axis drawn at random from the seed (AutoDist RandomAxisPartitionAR).",
           all_reduce_options("auto"), build_random_axis},
          {"parallax",
           "Dense variables all-reduced in groups, sparse ones on load-balanced parameter servers (AutoDist Parallax).",
           parallax_options(), build_parallax}};
}

}  // namespace simsync
