#include "strategies/families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "strategies/limits.hpp"
#include "strategies/transport.hpp"

namespace simsync {
namespace {

enum class ServerChoice { Auto, Workers, CpuOnly, All };

const Words<ServerChoice>& server_choice_words() {
  static const Words<ServerChoice> kWords{{"auto", ServerChoice::Auto},
                                          {"workers", ServerChoice::Workers},
                                          {"cpu-only", ServerChoice::CpuOnly},
                                          {"all", ServerChoice::All}};
  return kWords;
}

constexpr std::int64_t kMostStreams = 1024;
constexpr const char* kWinBytes = "win_bytes";
constexpr const char* kWinNext = "win_next";
constexpr const char* kWhole = "whole";
constexpr const char* kSlack = "slack";
constexpr const char* kBackups = "backups";
constexpr const char* kNone = "none";
constexpr const char* kTensor = "tensor";
constexpr const char* kPipeline = "pipeline";
constexpr const char* kExperts = "experts";
constexpr const char* kContext = "context";
constexpr const char* kSchedule = "schedule";
const OptionInfo kStreams{"streams_per_server", "1", "concurrent streams between a worker and a server"};

std::optional<Bytes> window(const Options& options, const char* name) {
  if (options.text(name) == kWhole) return std::nullopt;
  return options.bytes(name, 0);
}

}  // namespace

std::vector<OptionInfo> joined(std::vector<OptionInfo> first, const std::vector<OptionInfo>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<OptionInfo> waiting_options() {
  return {
      {"sync", "true", "false: workers do not wait for each other at all"},
      {"staleness", "0", "steps that the fastest worker may lead; needs sync=true"},
      {kSlack, kNone,
       "steps that the fastest worker may be ahead of the slowest by their clocks (stale synchronous parallel); needs "
       "sync=false; none: no bound"},
      {kBackups, "0",
       "workers that a step can do without: servers update as soon as the gradients of all others are there and drop "
       "later ones; needs sync=true and staleness=0"}};
}

PsSynchronizer waiting_synchronizer(const Options& options) {
  PsSynchronizer ps;
  ps.sync = options.boolean("sync");
  ps.staleness = static_cast<int>(options.integer("staleness", 0, kMostStaleness));
  if (ps.staleness > 0 && !ps.sync) options.fail("staleness", "a bound on staleness needs sync=true");
  if (!options.has(kBackups) || options.integer(kBackups, 0, std::numeric_limits<int>::max()) == 0) return ps;
  if (!ps.sync || ps.staleness > 0) options.fail(kBackups, "backup workers need sync=true and staleness=0");
  ps.local_aggregation = false;  // every worker's gradient counts by itself
  return ps;
}

std::vector<OptionInfo> connection_options(const std::string& shared_process) {
  return joined(
      {kStreams,
       {kWinBytes, kWhole,
        "bytes of a message before the next message on its stream has its turn (HTTP/2's window); 0B: a frame; whole: "
        "all"},
       {kWinNext, kWhole, "bytes of it at each later turn; whole: all that is left"},
       {"shared_process", shared_process,
        "a host's server and worker are one process, with one connection to each other host; false: two, with one "
        "each"}},
      server_transport_options(tensorflow_transport()));
}

std::vector<OptionInfo> model_parallel_options() {
  return {
      {kTensor, "1", "ranks next to each other that split every layer (Megatron-LM's tensor parallelism)"},
      {kPipeline, "1", "stages that compute one run of layers after another"},
      {kExperts, "1", "replicas next to each other that share out experts (expert parallelism)"},
      {kContext, "1",
       "replicas next to each other that share out the tokens of the same samples (context parallelism)"},
      {kSchedule, "1f1b", "order of a stage's micro-steps: gpipe, 1f1b, interleaved, zero-bubble"},
      {"chunks", "1", "runs of layers on a stage; interleaved: 2 or more"},
      {"sequence", "false",
       "true: tensor-parallel ranks share out by tokens what no layer splits (sequence parallelism)"},
      {"tensor_overlap", "false",
       "true: with sequence, what tensor-parallel ranks exchange runs beside the product before or after it (NeMo's "
       "tp_comm_overlap, torchtitan's async TP)"},
      {"context_overlap", "false",
       "true: keys and values that context-parallel ranks exchange come while attention computes (ring attention); "
       "false: before it"},
      {"context_balanced", "true",
       "false: each context-parallel rank has one run of tokens, so that of a causal attention the last rank computes "
       "most; true: one from the front and one from the back"},
      {"splits", "",
       "layers that tensor-parallel ranks share out otherwise than Megatron-LM would: LAYER:SPLIT+... with whole, "
       "columns, rows, features, tokens or vocabulary"},
      {"stage_blocks", "even",
       "blocks of a stage: even, with-ends (an embedding and a head count as one: Megatron-LM, Llama 3), threshold (a "
       "stage ends where the operations of products pass its share: nanotron) or balanced (the dearest stage is the "
       "cheapest)"},
      {"launch_cost", "0s", "what a host takes to launch one pass of a layer"},
      {"check_cost", "0s",
       "what hosts take, for each rank, to check a collective of ranks that share out layers, experts or tokens "
       "(TORCH_DISTRIBUTED_DEBUG=DETAIL)"},
      {"transfer_cost", "0s",
       "what it takes hosts to announce a transfer between stages that they wait for; 0s: it is launched ahead"},
      {"host_waits", "false",
       "true: a host launches nothing of a step before its device has ended the one before (it reads the loss, or "
       "whether gradients overflowed)"}};
}

ModelParallel model_parallel(const BuildRequest& request, const Options& options) {
  constexpr std::int64_t kMostChunks = 100'000;
  ModelParallel out;
  out.tensor = static_cast<int>(options.integer(kTensor, 1, request.workers));
  out.pipeline = static_cast<int>(options.integer(kPipeline, 1, request.workers));
  out.experts = static_cast<int>(options.integer(kExperts, 1, request.workers));
  out.context = static_cast<int>(options.integer(kContext, 1, request.workers));
  out.schedule = options.one_of(kSchedule, pipeline_schedule_words());
  out.chunks = static_cast<int>(options.integer("chunks", 1, kMostChunks));
  out.sequence = options.boolean("sequence");
  out.tensor_overlap = options.boolean("tensor_overlap");
  out.context_balanced = options.boolean("context_balanced");
  out.context_overlap = options.boolean("context_overlap");
  out.splits = parse_split_choices(options.text("splits"));
  out.blocks = options.one_of("stage_blocks", stage_blocks_words());
  out.host = {.launch = options.seconds("launch_cost"),
              .check = options.seconds("check_cost"),
              .transfer = options.seconds("transfer_cost"),
              .waits = options.boolean("host_waits")};
  if (request.workers % out.ranks() != 0)
    options.fail(request.workers % out.tensor != 0 ? kTensor : kPipeline,
                 fmt::format("replicas of {} tensor-parallel ranks x {} stages do not divide {} workers", out.tensor,
                             out.pipeline, request.workers));
  const int replicas = request.workers / out.ranks();
  if (replicas % out.experts != 0)
    options.fail(kExperts, fmt::format("{} expert-parallel ranks do not divide {} replicas", out.experts, replicas));
  if (replicas % out.context != 0)
    options.fail(kContext, fmt::format("{} context-parallel ranks do not divide {} replicas", out.context, replicas));
  return out;
}

std::vector<OptionInfo> collective_options() {
  return joined({{"algorithm", "auto",
                  "auto (as the cluster's library chooses), best (the fastest for each size), ring, "
                  "double-binary-tree, halving-doubling, hierarchical or broadcast-reduce"},
                 {"compressor", "none", "none, cast32, fp16 or powersgd"},
                 {"powersgd_rank", "4", "rank of the two factors of powersgd"}},
                collective_transport_options());
}

OptionInfo servers_option() {
  return {"servers", "auto",
          "hosts that serve: workers (of the nodes with workers), cpu-only (nodes without GPUs), all (both), auto "
          "(cpu-only if there is any, else workers)"};
}

std::vector<OptionInfo> server_options() {
  return joined({servers_option(), kStreams}, server_transport_options());
}

void apply_common_options(const Options& options, Strategy& strategy) {
  if (options.has("per_operation_cost")) strategy.graph.per_operation_cost = options.seconds("per_operation_cost");
  if (options.has("micro_steps"))
    strategy.graph.micro_steps = static_cast<int>(options.integer("micro_steps", 1, kMostMicroSteps));
  if (options.has("recompute")) strategy.graph.recompute = options.one_of("recompute", recompute_words());
  apply_transport_options(options, strategy.graph);
  if (options.has("streams_per_server"))
    strategy.graph.streams_per_server = static_cast<int>(options.integer("streams_per_server", 1, kMostStreams));
  if (options.has(kSlack) && options.text(kSlack) != kNone) {
    strategy.graph.slack = static_cast<int>(options.integer(kSlack, 0, std::numeric_limits<int>::max()));
    if (options.boolean("sync")) options.fail(kSlack, "a bound by clocks needs sync=false");
  }
  if (options.has(kBackups))
    strategy.graph.backups = static_cast<int>(options.integer(kBackups, 0, strategy.graph.workers - 1));
  if (options.has(kWinBytes)) strategy.graph.win_bytes = window(options, kWinBytes);
  if (options.has(kWinNext)) strategy.graph.win_next = window(options, kWinNext);
  if (options.has("shared_process")) strategy.graph.shared_process = options.boolean("shared_process");
  if (options.has("algorithm")) strategy.graph.algorithm = options.one_of("algorithm", collective_algorithm_words());
  if (!options.has("compressor")) return;
  const Compressor compressor = options.one_of("compressor", compressor_words());
  const auto rank = static_cast<int>(options.integer("powersgd_rank", 1, std::numeric_limits<int>::max()));
  for (auto& entry : strategy.variables) {
    const bool all_reduced = std::all_of(entry.shards.begin(), entry.shards.end(), [](const Shard& shard) {
      return std::holds_alternative<AllReduceSynchronizer>(shard.synchronizer);
    });
    if (all_reduced) entry.compressor = compressor;
    entry.powersgd_rank = rank;
  }
}

std::vector<Place> chosen_servers(const BuildRequest& request, const Options& options) {
  const ServerChoice choice = options.one_of("servers", server_choice_words());
  const Hosts hosts = hosts_of(request.cluster, request.workers);
  if (choice == ServerChoice::Workers) return hosts.workers;
  if (choice == ServerChoice::All) return hosts.all();
  if (!hosts.cpu_only.empty()) return hosts.cpu_only;
  if (choice == ServerChoice::CpuOnly)
    throw PlanError(
        fmt::format("option 'servers' says cpu-only and cluster '{}' has no node without GPUs", request.cluster.name));
  return hosts.workers;
}

VariableStrategy whole_variable(const Model& model, VariableId id, Synchronizer synchronizer) {
  VariableStrategy entry;
  entry.variable = id;
  entry.shards.push_back({.elements = model.variable(id).elements(), .synchronizer = synchronizer});
  return entry;
}

VariableStrategy partitioned_variable(VariableId id, int axis, const std::vector<std::int64_t>& elements,
                                      const std::function<Synchronizer(std::size_t)>& synchronizer_of) {
  VariableStrategy entry;
  entry.variable = id;
  entry.partition_axis = elements.size() == 1 ? kWholeVariable : axis;
  entry.shards.reserve(elements.size());
  for (std::size_t k = 0; k < elements.size(); ++k)
    entry.shards.push_back({.elements = elements[k], .synchronizer = synchronizer_of(k)});
  return entry;
}

}  // namespace simsync
