// Priority schedulers in front of existing back ends: p3 and bytescheduler.
#include <limits>
#include <optional>

#include "strategies/families.hpp"
#include "strategies/partition.hpp"

namespace simsync {
namespace {

constexpr std::int64_t kMostParameters = std::int64_t{1} << 40;

/// Slices of at most `slice` elements dealt to the servers in turn; the turn goes on from tensor to tensor.
void sliced_round_robin(const BuildRequest& request, Strategy& strategy, std::int64_t slice, Placement& placement) {
  expect_few_slices(request.model, slice);
  for (VariableId id = 0; id < request.model.variables().size(); ++id) {
    const Variable& variable = request.model.variable(id);
    auto entry = partitioned_variable(id, kFlatAxis, cut_flat(variable.elements(), slice), [&](std::size_t) {
      PsSynchronizer ps;
      ps.server = placement.next_in_turn();
      ps.local_replication = true;
      return ps;
    });
    entry.priority = static_cast<int>(variable.layer);
    entry.sparse_as_dense = variable.sparse;
    strategy.variables.push_back(std::move(entry));
  }
}

bool sums_on_gpu(const Options& options) {
  return options.one_of<bool>("local_sum", {{"gpu", true}, {"cpu", false}});
}

void build_p3(const BuildRequest& request, const Options& options, Strategy& strategy) {
  GraphStrategy& graph = strategy.graph;
  graph.gate = Gate::PerVariable;
  graph.update_at = UpdateAt::Worker;
  graph.aggregate_on_gpu = sums_on_gpu(options);
  graph.scheduling.ordering = Ordering::Priority;
  // No credit in P3: each queue has one message in service, which one byte of credit expresses.
  graph.scheduling.credit = {1};
  Placement placement(chosen_servers(request, options));
  sliced_round_robin(request, strategy, options.integer("slice", 1, kMostParameters), placement);
}

/// `auto` or a number of parameters.
std::int64_t parameters(const Options& options, const std::string& name, std::int64_t fallback) {
  return options.text(name) == "auto" ? fallback : options.integer(name, 1, kMostParameters);
}

std::int64_t bytes_per_parameter(const Model& model) {
  return model.variables().empty() ? size_of(DType::Float32) : size_of(model.variables().front().dtype);
}

void build_bytescheduler(const BuildRequest& request, const Options& options, Strategy& strategy) {
  constexpr std::int64_t kPsPartition = 1'000'000;
  constexpr std::int64_t kPsCredit = 4'000'000;
  constexpr std::int64_t kAllReducePartition = 8'000'000;
  constexpr std::int64_t kAllReduceCredit = 16'000'000;
  GraphStrategy& graph = strategy.graph;
  const bool ps = options.one_of<bool>("base", {{"ps", true}, {"all-reduce", false}});
  const std::int64_t element = bytes_per_parameter(request.model);
  const std::int64_t partition = parameters(options, "partition", ps ? kPsPartition : kAllReducePartition);
  graph.gate = Gate::PerVariable;
  graph.aggregate_on_gpu = sums_on_gpu(options);
  graph.scheduling.ordering = Ordering::Priority;
  graph.scheduling.credit = {parameters(options, "credit", ps ? kPsCredit : kAllReduceCredit) * element};
  Placement placement(chosen_servers(request, options));
  if (ps) return sliced_round_robin(request, strategy, partition, placement);
  graph.scheduling.partition = {partition * element};
  graph.fusion.kind = FusionKind::None;
  for (VariableId id = 0; id < request.model.variables().size(); ++id) {
    strategy.variables.push_back(whole_variable(request.model, id, AllReduceSynchronizer{}));
    strategy.variables.back().priority = static_cast<int>(request.model.variable(id).layer);
    strategy.variables.back().sparse_as_dense = request.model.variable(id).sparse;
  }
}

const OptionInfo kLocalSum{"local_sum", "gpu", "where the gradients of one host are summed: gpu or cpu"};

}  // namespace

std::vector<BuilderInfo> scheduled_builders() {
  return {{"p3", "Slices in priority order, one message in service, dealt to the servers in turn (P3 on MXNet).",
           joined({{"slice", "40000", "most parameters of a slice"}, kLocalSum}, server_options()), build_p3},
          {"bytescheduler",
           "Partitions in priority order under a credit, over parameter servers or all-reduce (ByteScheduler).",
           joined(joined({{"base", "ps", "ps or all-reduce"},
                          {"partition", "auto", "most parameters of a piece; auto: 1000000 (ps), 8000000 (all-reduce)"},
                          {"credit", "auto", "parameters in flight; auto: 4000000 (ps), 16000000 (all-reduce)"},
                          kLocalSum},
                         server_options()),
                  collective_options()),
           build_bytescheduler}};
}

}  // namespace simsync
