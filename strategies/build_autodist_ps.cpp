// AutoDist's parameter-server builders: ps, ps-load-balancing, partitioned-ps, uneven-partitioned-ps.
//
// TensorFlow's semantics: gradients leave as they become ready, the server updates, and step k+1 begins when
// session.run of step k has returned (Gate::All); it reads the variables inside the step.

#include "base/divisors.hpp"
#include "strategies/families.hpp"
#include "strategies/names.hpp"
#include "strategies/partition.hpp"

namespace simsync {
namespace {

std::vector<OptionInfo> ps_options() {
  return joined(
      {{"local_replication", "false", "true: one pull per host refreshes a copy that its GPUs read (dense variables)"},
       {"overlap", "wait-free", "when gradients leave: wait-free, or none: after the whole backward pass"}},
      joined(waiting_options(), connection_options()));
}

/// TensorFlow reads variables inside the step.
void set_graph(const Options& options, GraphStrategy& graph) {
  graph.pull_at_step_start = true;
  graph.overlap = options.one_of("overlap", overlap_words());
}

PsSynchronizer ps_from(const Options& options) {
  PsSynchronizer ps = waiting_synchronizer(options);
  ps.local_replication = options.boolean("local_replication");
  return ps;
}

/// What is fixed for one variable; a sparse one never has a copy per host.
PsSynchronizer ps_for(const Variable& variable, PsSynchronizer ps, Place server) {
  ps.server = server;
  ps.local_replication = ps.local_replication && !variable.sparse;
  return ps;
}

void build_ps(const BuildRequest& request, const Options& options, Strategy& strategy) {
  set_graph(options, strategy.graph);
  const PsSynchronizer ps = ps_from(options);
  const Place first = hosts_of(request.cluster, request.workers).all().front();
  for (VariableId id = 0; id < request.model.variables().size(); ++id)
    strategy.variables.push_back(whole_variable(request.model, id, ps_for(request.model.variable(id), ps, first)));
}

void build_load_balancing(const BuildRequest& request, const Options& options, Strategy& strategy) {
  set_graph(options, strategy.graph);
  const PsSynchronizer ps = ps_from(options);
  Placement placement(hosts_of(request.cluster, request.workers).all());
  for (VariableId id = 0; id < request.model.variables().size(); ++id) {
    const Variable& variable = request.model.variable(id);
    const Place server = placement.least_loaded(static_cast<double>(variable.bytes().count));
    strategy.variables.push_back(whole_variable(request.model, id, ps_for(variable, ps, server)));
  }
}

void build_partitioned(const BuildRequest& request, const Options& options, Strategy& strategy,
                       std::int64_t (*shard_count)(std::int64_t length)) {
  set_graph(options, strategy.graph);
  const PsSynchronizer ps = ps_from(options);
  Placement placement(hosts_of(request.cluster, request.workers).all());
  for (VariableId id = 0; id < request.model.variables().size(); ++id) {
    const Variable& variable = request.model.variable(id);
    const std::int64_t parts = variable.shape.empty() ? 1 : shard_count(variable.shape.front());
    const auto elements = split_axis(variable, 0, parts);
    const auto servers = placement.deal(elements.size(), static_cast<double>(variable.bytes().count));
    strategy.variables.push_back(
        partitioned_variable(id, 0, elements, [&](std::size_t k) { return ps_for(variable, ps, servers[k]); }));
  }
}

}  // namespace

std::vector<BuilderInfo> autodist_ps_builders() {
  const auto even = [](const BuildRequest& r, const Options& o, Strategy& s) {
    build_partitioned(r, o, s, smallest_divisor);
  };
  const auto uneven = [](const BuildRequest& r, const Options& o, Strategy& s) {
    build_partitioned(r, o, s, smallest_non_divisor);
  };
  return {{"ps", "All variables on the first host (AutoDist PS).", ps_options(), build_ps},
          {"ps-load-balancing", "Each variable on the host with the fewest bytes so far (AutoDist PSLoadBalancing).",
           ps_options(), build_load_balancing},
          {"partitioned-ps",
           "Axis 0 split by its smallest divisor, shards dealt to the least loaded hosts (AutoDist PartitionedPS).",
           ps_options(), even},
          {"uneven-partitioned-ps",
           "As partitioned-ps with the smallest number that does not divide the axis (AutoDist UnevenPartitionedPS).",
           ps_options(), uneven}};
}

}  // namespace simsync
