#include "cli/search_flags.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/outputs.hpp"
#include "cli/settings.hpp"
#include "cli/unknown.hpp"
#include "models/reader.hpp"

namespace simsync {
namespace {

/// Flags that one of the two spaces has no use for.
void refuse(const CLI::App& command, const std::vector<const char*>& names, const char* space) {
  for (const char* name : names)
    if (command.count(name) > 0)
      throw InputError(fmt::format("{} means nothing in a search of {}", name, space),
                       fmt::format("--space {} has it", std::string(space) == kLayouts ? kVariables : kLayouts));
}

LayoutMethod layout_method(const SearchFlags& flags, const CLI::App& command) {
  if (command.count("--method") == 0) return LayoutMethod::Coordinate;
  const auto& words = layout_method_words();
  if (const auto known = find_word(words, flags.method)) return *known;
  throw InputError(
      fmt::format("--method {} does not search layouts: expected {}", flags.method, fmt::join(names_in(words), ", ")));
}

void add_layouts(CLI::App& command, SearchFlags& flags) {
  command
      .add_option("--space", flags.space,
                  "variables: how each is synchronized, for data parallelism; layouts: tensor, pipeline and data "
                  "parallelism, ZeRO, micro-batches and recomputation (default: variables; of coordinate layouts)")
      ->check(CLI::IsMember({kVariables, kLayouts}));
  command
      .add_option("--global-batch", flags.global_batch,
                  "Layouts: samples of a step over all workers, whatever shares them out (default: batch x workers)")
      ->check(whole_number(1, 100'000'000));
  command
      .add_option("--restarts", flags.restarts,
                  "Layouts: random starts of a descent on each mesh, besides one for each kind of recomputation")
      ->check(whole_number(0, 1000))
      ->capture_default_str();
  command.add_option("--replays", flags.replays, "Layouts: the best so many by their estimates are replayed")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
}

void add_evaluator(CLI::App& command, SearchFlags& flags) {
  command
      .add_option("--evaluator", flags.evaluator,
                  "What a trial is: replay or simulate (a simulated run), estimate, or measure (a real run on a "
                  "testbed)")
      ->check(CLI::IsMember({kReplay, kSimulate, kEstimate, kMeasure}))
      ->capture_default_str();
  const TestbedOptions testbed = add_testbed_hosts(command, flags.testbed);
  for (auto* option : testbed.details) option->needs(testbed.hosts);
  command
      .add_option("--cluster-out", flags.cluster_out,
                  "Write the testbed as a cluster file, for --cluster of other commands")
      ->needs(testbed.hosts)
      ->check(output_file("--cluster-out"));
  command.add_option("--steps", flags.steps, "Steps of a trial that are timed")
      ->check(whole_number(1, 10'000))
      ->capture_default_str();
  command.add_option("--warm-up", flags.warm_up, "Steps before them")
      ->check(whole_number(1, 1000))
      ->capture_default_str();
}

void add_budget(CLI::App& command, SearchFlags& flags) {
  command.add_option("--trials", flags.options.trials, "Trials besides those of all builders")
      ->check(whole_number(0, 1'000'000))
      ->capture_default_str();
  command
      .add_option("--budget", flags.budget_s,
                  "Seconds of the cluster for all trials, builders included: none begins once they take so long; what "
                  "runs side by side is chosen by its prediction (default: no limit)")
      ->check(number_between(1e-3, 1e9));
  command.add_option("--price-per-node-hour", flags.price, "What a node costs, to tell what the trials cost")
      ->check(number_between(1e-6, 1e6));
  command.add_option("--money", flags.money, "The same limit as a sum of money")->check(number_between(1e-6, 1e12));
}

}  // namespace

void refuse_flags_of_other_space(const SearchFlags& flags, const CLI::App& command) {
  if (flags.is_of_layouts())
    return refuse(command,
                  {"--evaluator", "--testbed", "--trials", "--round", "--candidates", "--diversity", "--budget",
                   "--money", "--ranker", "--resume", "--steps", "--warm-up"},
                  kLayouts);
  refuse(command, {"--global-batch", "--restarts", "--replays"}, kVariables);
  if (flags.method == kCoordinate)
    throw InputError("--method coordinate searches layouts: leave out --space variables");
}

LayoutSearchFlags layout_flags(const SearchFlags& flags, const CLI::App& command) {
  if (flags.request.cluster.empty()) throw InputError("--cluster is required");
  if (flags.workers == 0) throw InputError("--workers is required");
  if (flags.batch != 0 && flags.global_batch != 0)
    throw InputError("--batch and --global-batch say the samples of a step twice: leave out one");
  LayoutSearchFlags out{.request = flags.request, .settings = parse_settings(flags.settings)};
  out.request.workers = flags.workers;
  const std::int64_t batch = flags.batch != 0 ? flags.batch : find_model(flags.request.model).default_batch();
  out.samples = flags.global_batch != 0 ? flags.global_batch : batch * flags.workers;
  out.options = {.method = layout_method(flags, command), .restarts = flags.restarts, .seed = flags.options.seed};
  out.replays = flags.replays;
  if (flags.price > 0.0) out.price_per_node_hour = flags.price;
  out.out = flags.out;
  out.csv = flags.csv;
  out.jobs = flags.jobs;
  return out;
}

void add_search_flags(CLI::App& command, SearchFlags& flags) {
  command.add_option("--model", flags.request.model, "Model: a name ('simsync list models') or a path")->required();
  command.add_option("--cluster", flags.request.cluster, "Cluster: a name ('simsync list clusters') or a path");
  command
      .add_option("--workers", flags.workers,
                  "Devices that take part, filled node by node (default: all hosts of the testbed)")
      ->check(whole_number(1, 1'000'000));
  command.add_option("--batch", flags.batch, "Samples per worker and step (default: the model's)")
      ->check(whole_number(1, 100'000'000));
  command.add_option("--calibration", flags.request.calibration, "Fitted numbers of the cluster: a file of calibrate")
      ->check(file_name());
  command
      .add_option("--set", flags.settings,
                  "key=value, again and again ('simsync list settings'); space.DIMENSION=VALUES restricts what is "
                  "searched ('simsync list space')")
      ->check(key_and_value());
  std::vector<std::string> methods = names_in(search_method_words());
  methods.emplace_back(kCoordinate);
  command
      .add_option("--method", flags.method,
                  "random: every draw is a trial; anneal; mutate: children of the best trials; autosync: draws that a "
                  "ranker sifts; exhaustive: a small space; shards: how many shards of sparse variables (Parallax); "
                  "coordinate: layouts, by descent. Layouts also take exhaustive, anneal and random")
      ->check(CLI::IsMember(methods))
      ->capture_default_str();
  add_layouts(command, flags);
  add_evaluator(command, flags);
  add_budget(command, flags);
  command.add_option("--round", flags.options.round, "Trials before the ranker learns from them")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  command.add_option("--candidates", flags.options.candidates, "Strategies that are estimated for each round")
      ->check(whole_number(1, 10'000'000))
      ->capture_default_str();
  command
      .add_option("--diversity", flags.options.diversity,
                  "How much a trial is worth for being unlike the others of its round, in standard deviations of the "
                  "score")
      ->check(number_between(0.0, 100.0))
      ->capture_default_str();
  add_ranker_flags(command, flags.ranker);
  command.add_option("--seed", flags.options.seed, "For everything that is drawn")->capture_default_str();
  command
      .add_option("--jobs", flags.jobs,
                  "Simulated trials that run side by side, a process each (default: one per processor)")
      ->check(whole_number(1, 256));
  command.add_option("--out", flags.out, "Write the best strategy to this file, for --strategy")
      ->check(output_file("--out"));
  command.add_option("--csv", flags.csv, "Write a row for every trial to this file, or to standard output with '-'")
      ->check(output_file("--csv"));
  command.add_flag("--resume", flags.resume, "Go on with the trials that the file of --csv has");
}

}  // namespace simsync
