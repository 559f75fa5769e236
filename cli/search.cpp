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
#include "cli/search_flags.hpp"
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
  if (const auto method = find_word(search_method_words(), flags.method)) out.method = *method;
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
      Winners out = fastest_again(result, shortlist(result, 3, 2), kTimes, again(runner_of(kSteps, progress)));
      out.how = fmt::format("mean of {} runs more", kTimes);
      return out;
    }
    std::vector<const Trial*> trials = shortlist(result, 3, 1);
    if (flags_.evaluator == kEstimate) {
      Winners replayed = fastest_again(result, shortlist(result, 8, 4), 1, again(simulated(*replays_)));
      trials = {replayed.best};
      if (replayed.builder != nullptr && replayed.builder != replayed.best) trials.push_back(replayed.builder);
      if (replayed.best == nullptr) return replayed;
    }
    const auto reference = replaying_evaluator(problem_, Solver::SimGrid);
    Winners out = fastest_again(result, trials, 1, again(simulated(*reference)));
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

void run_search(const SearchFlags& flags, const CLI::App& command) {
  refuse_flags_of_other_space(flags, command);
  if (flags.is_of_layouts()) return search_for_layout(layout_flags(flags, command));
  check_flags(flags);
  SearchRun(flags).run();
}

}  // namespace

void setup_search(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<SearchFlags>();
  auto* command =
      app.add_subcommand("search", "Look for the fastest strategy: variable by variable, or the layout of all ranks");
  add_search_flags(*command, *flags);
  command->callback([flags, command] { run_search(*flags, *command); });
}

}  // namespace simsync
