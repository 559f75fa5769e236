// What the builders share; each family registers its builders from a file of its own.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "strategies/builders.hpp"
#include "strategies/options.hpp"
#include "strategies/placement.hpp"

namespace simsync {

/// One named builder. `build` receives a strategy whose name and worker count are set and fills in the rest.
struct BuilderInfo {
  std::string name;
  std::string summary;
  std::vector<OptionInfo> options;
  std::function<void(const BuildRequest&, const Options&, Strategy&)> build;
};

std::vector<BuilderInfo> autodist_ps_builders();
std::vector<BuilderInfo> autodist_all_reduce_builders();
std::vector<BuilderInfo> collective_builders();
std::vector<BuilderInfo> sharded_builders();
std::vector<BuilderInfo> poseidon_builders();
std::vector<BuilderInfo> byteps_builders();
std::vector<BuilderInfo> scheduled_builders();
std::vector<BuilderInfo> tictac_builders();

/// `first` followed by `second`.
std::vector<OptionInfo> joined(std::vector<OptionInfo> first, const std::vector<OptionInfo>& second);
/// sync, staleness, slack and backups: how far workers wait for each other.
std::vector<OptionInfo> waiting_options();
/// What they say of a variable. @throws InputError for a bound on staleness of workers that do not wait at all, and for
/// backups of workers that do not wait in every step.
PsSynchronizer waiting_synchronizer(const Options& options);
/// streams_per_server, win_bytes, win_next and shared_process: how a worker and a server are connected, as TensorFlow
/// has it.
std::vector<OptionInfo> connection_options(const std::string& shared_process = "true");
/// algorithm, compressor, powersgd_rank.
std::vector<OptionInfo> collective_options();
/// tensor, pipeline, schedule, chunks and sequence: how several ranks compute a replica together.
std::vector<OptionInfo> model_parallel_options();
/// What they say. @throws InputError where they do not divide the workers.
ModelParallel model_parallel(const BuildRequest& request, const Options& options);
/// Which hosts serve: auto, workers, cpu-only or all.
OptionInfo servers_option();
/// servers and streams_per_server.
std::vector<OptionInfo> server_options();

/// Sets what the options of the lists above and `per_operation_cost` say, for those that the builder has.
void apply_common_options(const Options& options, Strategy& strategy);
/// The hosts that the option `servers` names. @throws PlanError when there is none.
std::vector<Place> chosen_servers(const BuildRequest& request, const Options& options);

/// The entry of an unpartitioned variable.
VariableStrategy whole_variable(const Model& model, VariableId id, Synchronizer synchronizer);
/// The entry of a variable split on `axis` into shards of `elements`; one shard means unpartitioned.
/// `synchronizer_of(k)` says how shard k is synchronized and is called in order.
VariableStrategy partitioned_variable(VariableId id, int axis, const std::vector<std::int64_t>& elements,
                                      const std::function<Synchronizer(std::size_t)>& synchronizer_of);
/// Poseidon's rule, exactly: factors win when 2 K (P1-1) (M+N) <= 2 M N (P1+P2-2) / P2. `rows` is K, the rows that a
/// worker's dense layer multiplies in a step.
bool sufficient_factors_win(std::int64_t m, std::int64_t n, double rows, int workers, int servers);
/// TicTac's TIC on forward layers: for each variable, the rank of its M+ among all distinct values, smallest first.
/// M+(r) is the least number of variables that a layer needs (its own and its ancestors') over the layers that need
/// r and at least one other; a variable that no such layer needs comes last.
std::vector<int> tic_ranks(const Model& model);

}  // namespace simsync
