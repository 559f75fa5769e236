// poseidon: sufficient factors or parameter server, whichever moves fewer bytes, layer by layer.
//
// Poseidon's client joins all communication threads before the next forward pass (Gate::All). Servers are the hosts
// of the workers; a variable lies there in key-value pairs of at most `kv_pair` bytes, dealt to the least loaded
// host, so that no layer is one server's alone.
#include <algorithm>

#include "strategies/families.hpp"
#include "strategies/limits.hpp"
#include "strategies/partition.hpp"
#include "strategies/transport.hpp"

namespace simsync {
namespace {

VariableStrategy on_servers(const Variable& variable, VariableId id, const PsSynchronizer& base,
                            std::int64_t pair_bytes, Placement& placement) {
  const std::int64_t element = size_of(variable.dtype);
  const auto elements = cut_flat(variable.elements(), std::max<std::int64_t>(1, pair_bytes / element));
  auto entry = partitioned_variable(id, kFlatAxis, elements, [&](std::size_t k) {
    PsSynchronizer ps = base;
    ps.server = placement.least_loaded(static_cast<double>(elements[k] * element));
    return ps;
  });
  entry.sparse_as_dense = variable.sparse;
  return entry;
}

void build_poseidon(const BuildRequest& request, const Options& options, Strategy& strategy) {
  strategy.graph.overlap = options.one_of("overlap", overlap_words());
  const bool hybrid = options.boolean("hybrid");
  const std::int64_t pair_bytes = options.bytes("kv_pair", size_of(DType::Float32)).count;
  expect_few_slices(request.model, std::max<std::int64_t>(1, pair_bytes / size_of(DType::Float32)));
  PsSynchronizer base;
  base.local_replication = true;
  base.staleness = static_cast<int>(options.integer("staleness", 0, kMostStaleness));
  Placement placement(hosts_of(request.cluster, request.workers).workers);
  const int servers = static_cast<int>(placement.servers().size());
  for (VariableId id = 0; id < request.model.variables().size(); ++id) {
    const Variable& variable = request.model.variable(id);
    const Layer& layer = request.model.layer(variable.layer);
    const double rows = static_cast<double>(request.batch) * layer.dense_rows;
    const bool factorable =
        layer.kind == LayerKind::Dense && variable.shape.size() == 2 && !variable.sparse && rows > 0.0;
    if (hybrid && factorable &&
        sufficient_factors_win(variable.shape[0], variable.shape[1], rows, request.workers, servers)) {
      strategy.variables.push_back(whole_variable(request.model, id, SfbSynchronizer{}));
    } else {
      strategy.variables.push_back(on_servers(variable, id, base, pair_bytes, placement));
    }
  }
}

}  // namespace

bool sufficient_factors_win(std::int64_t m, std::int64_t n, double rows, int workers, int servers) {
  // Both sides times P2 / 2, so that whole numbers stay whole.
  const auto [M, N] = std::pair{static_cast<double>(m), static_cast<double>(n)};
  return rows * (workers - 1) * (M + N) * servers <= M * N * (workers + servers - 2);
}

std::vector<BuilderInfo> poseidon_builders() {
  return {
      {"poseidon",
       "Dense layers' matrices as sufficient factors where that moves less, the rest on sharded servers (Poseidon).",
       joined({{"hybrid", "true", "false: parameter servers only (Caffe with wait-free backpropagation)"},
               {"overlap", "wait-free",
                "wait-free, or none: after the whole backward pass (with hybrid=false: plain Caffe and servers)"},
               {"kv_pair", "2MiB", "most bytes of one key-value pair on a server"},
               {"staleness", "0", "steps that the fastest worker may lead"},
               {"streams_per_server", "1", "concurrent streams between a worker and a server"}},
              server_transport_options(caffe_transport())),
       build_poseidon}};
}

}  // namespace simsync
