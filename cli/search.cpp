#include "strategies/search/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/interrupted.hpp"
#include "base/output_file.hpp"
#include "base/parse_units.hpp"
#include "cli/commands.hpp"
#include "cli/interruption.hpp"
#include "cli/outputs.hpp"
#include "cli/ranker_flags.hpp"
#include "cli/resumed_inputs.hpp"
#include "cli/search_layouts.hpp"
#include "cli/search_question.hpp"
#include "cli/search_report.hpp"
#include "cli/settings.hpp"
#include "cli/testbed_trials.hpp"
#include "cli/trial_basis.hpp"
#include "cli/unknown.hpp"
#include "cli/worker_pool.hpp"
#include "platforms/reader.hpp"
#include "sim/engine/evaluators.hpp"
#include "strategies/builders.hpp"
#include "strategies/reader.hpp"

namespace simsync {
namespace {

constexpr const char* kReplay = "replay";
constexpr const char* kSimulate = "simulate";  ///< replay, by another name
constexpr const char* kEstimate = "estimate";
constexpr const char* kMeasure = "measure";
constexpr const char* kTestbed = "testbed";  ///< what its cluster is called
constexpr const char* kCoordinate = "coordinate";
constexpr const char* kVariables = "variables";
constexpr const char* kLayouts = "layouts";

struct SearchFlags {
  PredictRequest request;
  int workers = 0;  ///< 0: not given
  std::int64_t batch = 0;
  std::vector<std::string> settings;
  std::string method = "autosync";
  std::string evaluator = kReplay;
  TestbedFlags testbed;
  SearchOptions options;
  int steps = 5;
  int warm_up = 2;
  double budget_s = 0.0;
  double price = 0.0;  ///< of a node for an hour
  double money = 0.0;
  RankerFlags ranker;
  std::string out;
  std::string cluster_out;
  std::string csv;
  int jobs = processors();
  bool resume = false;
  // Of a search of layouts:
  std::string space;              ///< variables or layouts; empty: what the method is for
  std::int64_t global_batch = 0;  ///< 0: batch x workers
  int restarts = LayoutSearchOptions{}.restarts;
  int replays = LayoutSearchFlags{}.replays;

  [[nodiscard]] bool is_of_layouts() const { return space == kLayouts || (space.empty() && method == kCoordinate); }
  [[nodiscard]] bool is_measured() const { return evaluator == kMeasure; }
};

Question question_of(const SearchFlags& flags) {
  PredictRequest request = flags.request;
  request.workers = flags.workers == 0 ? flags.testbed.hosts : flags.workers;
  if (flags.batch != 0) request.batch = flags.batch;
  if (flags.is_measured()) {
    request.cluster = kTestbed;
    request.settings.emplace_back(kIdleHosts);
  }
  return search_question(std::move(request), parse_settings(flags.settings));
}

/// Those that fit to model and cluster, and whose steps are alike.
std::vector<std::pair<std::string, Strategy>> builders_of(const Question& question, const Problem& problem,
                                                          bool is_measured) {
  static const std::map<std::string, std::string> kNone;
  const auto& habits = is_measured ? habits_of_runner() : kNone;
  std::vector<std::pair<std::string, Strategy>> out;
  for (const std::string& name : known_builders())
    if (auto strategy = built_for(name, question, problem, habits)) out.emplace_back(name, std::move(*strategy));
  return out;
}

int nodes_of(const SearchTarget& target, const SearchFlags& flags) {
  std::set<int> nodes;
  for (const Place& worker : target.cluster.workers(target.workers)) nodes.insert(worker.node);
  return static_cast<int>(nodes.size()) + (flags.is_measured() ? flags.testbed.server_hosts : 0);
}

void check_flags(const SearchFlags& flags) {
  if (flags.resume && (flags.csv.empty() || flags.csv == "-"))
    throw InputError("--resume needs the file to go on with: --csv FILE");
  if (flags.is_measured() && flags.testbed.hosts == 0)
    throw InputError("--evaluator measure needs hosts: --testbed N emulates them on this machine");
  if (!flags.is_measured() && flags.testbed.hosts > 0)
    throw InputError("--testbed: trials are simulated; real runs need --evaluator measure");
  if (flags.is_measured() && !flags.request.cluster.empty())
    throw InputError("--cluster: trials run on the testbed, which --testbed and --rate describe",
                     "--calibration lays fitted numbers over it");
  if (!flags.is_measured() && flags.request.cluster.empty()) throw InputError("--cluster is required");
  if (!flags.is_measured() && flags.workers == 0) throw InputError("--workers is required");
  if (flags.is_measured() && flags.workers > flags.testbed.hosts)
    throw InputError(fmt::format("--workers {}: the testbed has {} hosts", flags.workers, flags.testbed.hosts));
  if (flags.money > 0.0 && flags.price <= 0.0) throw InputError("--money needs --price-per-node-hour");
}

SearchOptions options_of(const SearchFlags& flags, int nodes) {
  constexpr double kSecondsPerHour = 3600.0;
  SearchOptions out = flags.options;
  for (const auto& [word, method] : search_method_words())
    if (word == flags.method) out.method = method;
  out.steps_per_trial = flags.warm_up + flags.steps;
  if (flags.budget_s > 0.0) out.budget = Seconds{flags.budget_s};
  if (flags.money > 0.0) {
    const Seconds paid{flags.money / (flags.price * nodes) * kSecondsPerHour};
    out.budget = out.budget ? std::min(*out.budget, paid) : paid;
  }
  return out;
}

/// A search from its flags to its report.
class SearchRun {
public:
  explicit SearchRun(const SearchFlags& flags)
      : flags_(flags),
        question_(question_of(flags)),
        problem_(prepared()),
        target_(target_of(problem_, flags.is_measured())),
        sampler_(make_space(question_.space, problem_.cluster), target_),
        ranker_(starting_ranker(flags.ranker)),
        options_(options_of(flags, nodes_of(target_, flags))),
        estimates_(estimating_evaluator(problem_)),
        replays_(replaying_evaluator(problem_)) {
    options_.ranker = ranker_.kind;
  }

  void run() {
    std::vector<std::pair<std::string, Strategy>> builders = builders_of(question_, problem_, flags_.is_measured());
    if (options_.method == SearchMethod::Shards)  // which is about this one
      std::erase_if(builders, [](const auto& builder) { return builder.first != kShardsBuilder; });
    if (!flags_.cluster_out.empty()) write_file(flags_.cluster_out, to_yaml(testbed_cluster(flags_.testbed)));
    std::optional<RowFile> file;
    if (!flags_.csv.empty()) {
      file.emplace(open_resumable(flags_.csv, csv_row(trial_header()), flags_.resume));
      tell_how_to_resume(flags_.csv);
    }
    const std::size_t asked = builders.size() + static_cast<std::size_t>(options_.trials);
    std::optional<HeldInterruption> held;
    if (flags_.csv != "-") held.emplace();  // a report follows: what was found until then is shown
    ProgressBar progress(asked);
    TrialLog log(setting(), file ? &*file : nullptr, progress);
    const StrategyRunner runner = runner_of(flags_.steps, progress);
    const SearchResult result =
        search({.sampler = sampler_,
                .samples = problem_.samples(),
                .estimates = *estimates_,
                .replays = flags_.is_measured() ? replays_.get() : nullptr,
                .builders = builders,
                .fits = [this](const Strategy& strategy) { return fits_into_memory(problem_, strategy); },
                .run = [&](const std::vector<Candidate>& candidates, int first,
                           int round) { return log.run(candidates, first, round, runner); },
                .stop = [this] { return signal() != 0; },
                .source = ranker_.source()},
               options_);
    if (signal() != 0) end_early(result, progress, asked);
    if (result.best() == nullptr)
      throw PlanError(fmt::format("no strategy could run: {} of {} candidates did not fit into memory",
                                  result.too_large, result.candidates));
    const Winners winners = winners_of(result, progress);
    if (signal() != 0) end_early(result, progress, asked);
    held.reset();
    if (winners.best == nullptr) throw RunError("the fastest trials fail when they are run again");
    progress.clear();
    write_best(*winners.best);
    write_ranker(flags_.ranker, ranker_, result, setting());
    if (flags_.csv != "-") report(result, winners);
  }

private:
  /// That asked for an end; 0: none.
  [[nodiscard]] int signal() const { return signal_of_runs_ != 0 ? signal_of_runs_ : HeldInterruption::signal(); }

  /// Shows what was found until then and ends as the signal would.
  [[noreturn]] void end_early(const SearchResult& result, ProgressBar& progress, std::size_t asked) const {
    progress.clear();
    const Winners winners = winners_so_far(result);
    if (winners.best != nullptr) {
      write_best(*winners.best);
      write_ranker(flags_.ranker, ranker_, result, setting());
      if (flags_.csv != "-") report(result, winners);
    }
    end_interrupted(signal(), fmt::format("interrupted: {} of {} trials are done", result.trials.size(), asked));
  }

  Problem prepared() const {
    Inputs inputs;
    if (flags_.is_measured()) inputs.put(kTestbed, testbed_cluster(flags_.testbed));
    return prepare(question_.request, inputs);
  }

  [[nodiscard]] TrialSetting setting() const {
    return {.target = target_,
            .samples = problem_.samples(),
            .evaluator = evaluator_name(),
            .basis = basis_of(question_.request, flags_.is_measured() ? kOwnRunner : "")};
  }

  [[nodiscard]] std::string evaluator_name() const {
    return flags_.evaluator == kSimulate ? kReplay : flags_.evaluator;
  }

  StrategyRunner simulated(Evaluator& evaluator) const {
    return run_simulated(evaluator, flags_.jobs, [this] { return signal() != 0; });
  }

  StrategyRunner runner_of(int steps, ProgressBar& progress) {
    if (!flags_.is_measured()) return simulated(flags_.evaluator == kEstimate ? *estimates_ : *replays_);
    TestbedTrials trials{.testbed = flags_.testbed,
                         .model = question_.request.model,
                         .workers = question_.request.workers,
                         .batch = problem_.samples(),
                         .steps = steps,
                         .warm_up = flags_.warm_up,
                         .settings = {}};
    for (const auto& [key, value] : parse_settings(flags_.settings))
      if (!key.starts_with(kSpacePrefix) && !key.starts_with("strategy.")) trials.settings.emplace_back(key, value);
    return [this, run = run_on_testbed(trials, problem_.model, progress)](const auto& strategies, const auto& done) {
      try {
        run(strategies, done);
      } catch (const Interrupted& e) {
        signal_of_runs_ = e.signal();
      }
    };
  }

  /// The fastest of a few hundred noisy trials is too fast to be true, and so is the fastest of many estimates.
  Winners winners_of(const SearchResult& result, ProgressBar& progress) {
    if (flags_.is_measured()) {
      constexpr int kSteps = 10;
      constexpr int kTimes = 2;
      Winners out = fastest_again(shortlist(result, 3, 2), kTimes, again(runner_of(kSteps, progress)));
      out.how = fmt::format("mean of {} runs more", kTimes);
      return out;
    }
    std::vector<const Trial*> trials = shortlist(result, 1, 1);
    if (flags_.evaluator == kEstimate) {
      const Winners replayed = fastest_again(shortlist(result, 8, 4), 1, again(simulated(*replays_)));
      trials = {replayed.best};
      if (replayed.builder != nullptr && replayed.builder != replayed.best) trials.push_back(replayed.builder);
      if (replayed.best == nullptr) return replayed;
    }
    const auto reference = replaying_evaluator(problem_, Solver::SimGrid);
    Winners out = fastest_again(trials, 1, again(simulated(*reference)));
    out.how = "replayed on SimGrid";
    return out;
  }

  static RunAgain again(StrategyRunner runner) {
    return [runner = std::move(runner)](const std::vector<Strategy>& strategies) {
      std::vector<std::optional<Seconds>> out(strategies.size());
      runner(strategies, [&](std::size_t i, std::optional<Seconds> step) { out[i] = step; });
      return out;
    };
  }

  void write_best(const Trial& trial) const {
    if (flags_.out.empty()) return;
    Strategy best = trial.candidate.strategy;
    if (trial.round > 0) best.name = fmt::format("{}-{}", flags_.method, trial.candidate.id);
    write_file(flags_.out, to_yaml(best, problem_.model));
  }

  void report(const SearchResult& result, const Winners& winners) const {
    print_report({.request = question_.request,
                  .problem = problem_,
                  .options = options_,
                  .method = flags_.method,
                  .evaluator = evaluator_name(),
                  .nodes = nodes_of(target_, flags_),
                  .price_per_node_hour = flags_.price > 0.0 ? std::optional(flags_.price) : std::nullopt},
                 result, winners);
  }

  const SearchFlags& flags_;
  Question question_;
  Problem problem_;
  SearchTarget target_;
  StrategySampler sampler_;
  StartingRanker ranker_;
  SearchOptions options_;
  std::unique_ptr<Evaluator> estimates_;
  std::unique_ptr<Evaluator> replays_;
  int signal_of_runs_ = 0;  ///< that a real run was stopped by
};

/// Flags that one of the two spaces has no use for.
void refuse_flags(const CLI::App& command, const std::vector<const char*>& names, const char* space) {
  for (const char* name : names)
    if (command.count(name) > 0) throw InputError(fmt::format("{} means nothing in a search of {}", name, space));
}

LayoutMethod layout_method(const SearchFlags& flags, const CLI::App& command) {
  if (command.count("--method") == 0) return LayoutMethod::Coordinate;
  std::vector<std::string> known;
  for (const auto& [word, method] : layout_method_words()) {
    if (word == flags.method) return method;
    known.push_back(word);
  }
  throw InputError(
      fmt::format("--method {} does not search layouts: expected {}", flags.method, fmt::join(known, ", ")));
}

void run_layout_search(const SearchFlags& flags, const CLI::App& command) {
  refuse_flags(command,
               {"--evaluator", "--testbed", "--trials", "--round", "--candidates", "--diversity", "--budget", "--money",
                "--ranker", "--resume", "--steps", "--warm-up"},
               kLayouts);
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
  search_for_layout(out);
}

void run_search(const SearchFlags& flags, const CLI::App& command) {
  if (flags.is_of_layouts()) return run_layout_search(flags, command);
  refuse_flags(command, {"--global-batch", "--restarts", "--replays"}, kVariables);
  if (flags.method == kCoordinate)
    throw InputError("--method coordinate searches layouts: leave out --space variables");
  check_flags(flags);
  SearchRun(flags).run();
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
  command.add_option("--restarts", flags.restarts, "Layouts: random starts of a descent, on each mesh")
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

void setup_search(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<SearchFlags>();
  auto* command = app.add_subcommand("search", "Look for the fastest strategy, variable by variable");
  command->add_option("--model", flags->request.model, "Model: a name ('simsync list models') or a path")->required();
  command->add_option("--cluster", flags->request.cluster, "Cluster: a name ('simsync list clusters') or a path");
  command
      ->add_option("--workers", flags->workers,
                   "Devices that take part, filled node by node (default: all hosts of the testbed)")
      ->check(whole_number(1, 1'000'000));
  command->add_option("--batch", flags->batch, "Samples per worker and step (default: the model's)")
      ->check(whole_number(1, 100'000'000));
  command->add_option("--calibration", flags->request.calibration, "Fitted numbers of the cluster: a file of calibrate")
      ->check(file_name());
  command
      ->add_option("--set", flags->settings,
                   "key=value, again and again ('simsync list settings'); space.DIMENSION=VALUES restricts what is "
                   "searched ('simsync list space')")
      ->check(key_and_value());
  std::vector<std::string> methods;
  for (const auto& [word, method] : search_method_words()) methods.push_back(word);
  methods.emplace_back(kCoordinate);
  command
      ->add_option("--method", flags->method,
                   "random: every draw is a trial; anneal; mutate: children of the best trials; autosync: draws that a "
                   "ranker sifts; exhaustive: a small space; shards: how many shards of sparse variables (Parallax); "
                   "coordinate: layouts, by descent. Layouts also take exhaustive, anneal and random")
      ->check(CLI::IsMember(methods))
      ->capture_default_str();
  add_layouts(*command, *flags);
  add_evaluator(*command, *flags);
  add_budget(*command, *flags);
  command->add_option("--round", flags->options.round, "Trials before the ranker learns from them")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--candidates", flags->options.candidates, "Strategies that are estimated for each round")
      ->check(whole_number(1, 10'000'000))
      ->capture_default_str();
  command
      ->add_option("--diversity", flags->options.diversity,
                   "How much a trial is worth for being unlike the others of its round, in standard deviations of the "
                   "score")
      ->check(number_between(0.0, 100.0))
      ->capture_default_str();
  add_ranker_flags(*command, flags->ranker);
  command->add_option("--seed", flags->options.seed, "For everything that is drawn")->capture_default_str();
  command
      ->add_option("--jobs", flags->jobs,
                   "Simulated trials that run side by side, a process each (default: one per processor)")
      ->check(whole_number(1, 256));
  command->add_option("--out", flags->out, "Write the best strategy to this file, for --strategy")
      ->check(output_file("--out"));
  command->add_option("--csv", flags->csv, "Write a row for every trial to this file, or to standard output with '-'")
      ->check(output_file("--csv"));
  command->add_flag("--resume", flags->resume, "Go on with the trials that the file of --csv has");
  command->callback([flags, command] { run_search(*flags, *command); });
}

}  // namespace simsync
