// byteps: servers only sum, on spare CPU machines and on the GPU machines together; workers update.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "strategies/families.hpp"
#include "strategies/partition.hpp"

namespace simsync {
namespace {

constexpr std::int64_t kPageBytes = 4096;

/// How many of the CPU-only nodes serve: the option `servers`, or as many as help (one per GPU machine at most).
std::size_t server_machines(const BuildRequest& request, const Options& options, const Hosts& hosts) {
  const std::size_t useful = std::min(hosts.cpu_only.size(), hosts.workers.size());
  if (options.text("servers") == "auto") return useful;
  const auto wanted = options.integer("servers", 0, static_cast<std::int64_t>(hosts.workers.size()));
  if (static_cast<std::size_t>(wanted) > hosts.cpu_only.size())
    throw PlanError(fmt::format("option 'servers' asks for {} CPU machines, and cluster '{}' has {}", wanted,
                                request.cluster.name, hosts.cpu_only.size()));
  return static_cast<std::size_t>(wanted);
}

/// The published split for n GPU machines and k CPU machines, per machine: 2(n-1) : (n-k), each over
/// n^2 + kn - 2k. Every NIC then carries 2n(n-1) / (n^2 + kn - 2k) times the model in each direction.
Placement make_placement(const BuildRequest& request, const Options& options) {
  const Hosts hosts = hosts_of(request.cluster, request.workers);
  const std::size_t k = server_machines(request, options, hosts);
  const bool mixed = options.one_of<bool>("placement", {{"mixed", true}, {"equal", false}});
  std::vector<Place> servers = hosts.workers;
  servers.insert(servers.end(), hosts.cpu_only.begin(), hosts.cpu_only.begin() + static_cast<std::ptrdiff_t>(k));
  const std::size_t n = hosts.workers.size();
  // A single GPU machine has nothing to exchange: its own host serves.
  if (!mixed && n > 1) return Placement(std::move(servers));
  std::vector<double> weights(n, n > 1 ? static_cast<double>(n - k) : 1.0);
  weights.resize(n + k, static_cast<double>(2 * (n - 1)));
  return Placement(std::move(servers), std::move(weights));
}

/// A multiple of (workers of one node) pages, so that each GPU's share of a piece is whole pages.
std::int64_t piece_bytes(const BuildRequest& request, const Options& options) {
  const auto workers = request.cluster.workers(request.workers);
  const auto local =
      std::count_if(workers.begin(), workers.end(), [&](const Place& w) { return w.node == workers.front().node; });
  const std::int64_t unit = local * kPageBytes;
  return (options.bytes("partition", kPageBytes).count + unit - 1) / unit * unit;
}

void build_byteps(const BuildRequest& request, const Options& options, Strategy& strategy) {
  GraphStrategy& graph = strategy.graph;
  const std::int64_t piece = piece_bytes(request, options);
  expect_few_slices(request.model, piece / size_of(DType::Float32));
  graph.gate = options.one_of("gate", gate_words());
  graph.overlap = options.one_of("overlap", overlap_words());
  graph.update_at = UpdateAt::Worker;
  graph.aggregate_on_gpu = true;
  graph.scheduling.ordering = Ordering::Priority;
  graph.scheduling.credit = {options.integer("credit", 0, std::numeric_limits<std::int64_t>::max() / piece) * piece};
  graph.scheduling.credit_is_strict = true;
  Placement placement = make_placement(request, options);
  for (VariableId id = 0; id < request.model.variables().size(); ++id) {
    const Variable& variable = request.model.variable(id);
    const std::int64_t element = size_of(variable.dtype);
    const auto elements = cut_flat(variable.elements(), piece / element);
    auto entry = partitioned_variable(id, kFlatAxis, elements, [&](std::size_t k) {
      PsSynchronizer ps;
      ps.server = placement.largest_deficit(static_cast<double>(elements[k] * element));
      ps.local_replication = true;
      return ps;
    });
    entry.priority = static_cast<int>(variable.layer);
    entry.sparse_as_dense = variable.sparse;
    strategy.variables.push_back(std::move(entry));
  }
}

}  // namespace

std::vector<BuilderInfo> byteps_builders() {
  return {{"byteps",
           "Summation servers on CPU machines and GPU machines with the load split that uses every NIC fully (BytePS).",
           {{"servers", "auto",
             "CPU machines that serve besides the workers' hosts: 0 ... GPU machines; auto: all that help"},
            {"placement", "mixed", "mixed: load split of the paper; equal: every server the same"},
            {"partition", "4096000B", "most bytes of a piece, rounded up to whole pages per GPU of a node"},
            {"credit", "0", "pieces in flight per worker; 0: no limit"},
            {"gate", "per-variable", "what the next forward waits for: per-variable or all"},
            {"overlap", "wait-free", "when pieces leave: wait-free, or none: after the whole backward pass"},
            {"streams_per_server", "1", "concurrent streams between a worker and a server"}},
           build_byteps}};
}

}  // namespace simsync
