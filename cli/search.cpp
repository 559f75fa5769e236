#include "strategies/search/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/output_file.hpp"
#include "base/parse_units.hpp"
#include "base/wrap.hpp"
#include "cli/commands.hpp"
#include "cli/outputs.hpp"
#include "cli/ranker_flags.hpp"
#include "cli/resumed_inputs.hpp"
#include "cli/settings.hpp"
#include "cli/terminal.hpp"
#include "cli/trials.hpp"
#include "cli/unknown.hpp"
#include "sim/engine/evaluators.hpp"
#include "strategies/builders.hpp"
#include "strategies/reader.hpp"
#include "strategies/search/describe.hpp"

namespace simsync {
namespace {

constexpr const char* kSpacePrefix = "space.";
constexpr const char* kReplay = "replay";
constexpr const char* kEstimate = "estimate";

struct SearchFlags {
  PredictRequest request;
  std::int64_t batch = 0;
  std::vector<std::string> settings;
  std::string method = "autosync";
  std::string evaluator = kReplay;
  SearchOptions options;
  RankerFlags ranker;
  std::string out;
  std::string csv;
  int jobs = 1;
  bool resume = false;
};

/// What is asked, with the dimensions of the space apart. `--set strategy.*` says what all strategies have: micro-steps
/// and recomputation.
struct Question {
  PredictRequest request;
  std::map<std::string, std::string> space;
};

Question question_of(const SearchFlags& flags) {
  Question out{flags.request, {}};
  // The question's own strategy says what every candidate has: workers, micro-steps, recomputation.
  out.request.strategy = "ddp";
  if (flags.batch != 0) out.request.batch = flags.batch;
  for (auto& [key, value] : parse_settings(flags.settings)) {
    if (key.starts_with(kSpacePrefix)) {
      out.space[key.substr(std::string(kSpacePrefix).size())] = value;
    } else {
      out.request.settings.emplace_back(key, value);
    }
  }
  for (const auto& [key, value] : out.request.settings)
    if (key.starts_with("strategy.") && key != "strategy.micro_steps" && key != "strategy.recompute")
      throw InputError(fmt::format("--set {}: a search chooses strategies by itself", key),
                       "what all of them have are strategy.micro_steps and strategy.recompute; 'simsync list space' "
                       "shows what can be restricted, with --set space.DIMENSION=VALUES");
  return out;
}

/// Those that fit to model and cluster, and whose steps are alike.
std::vector<std::pair<std::string, Strategy>> builders_of(const Question& question, const Problem& problem) {
  std::map<std::string, std::string> options;
  for (const auto& [key, value] : question.request.settings)
    if (key.starts_with("strategy.")) options[key.substr(std::string("strategy.").size())] = value;
  std::vector<std::pair<std::string, Strategy>> out;
  for (const std::string& name : known_builders()) {
    try {
      Strategy strategy = build_strategy(name, {.model = problem.model,
                                                .cluster = problem.cluster,
                                                .workers = question.request.workers,
                                                .batch = problem.samples(),
                                                .options = options});
      out.emplace_back(name, std::move(strategy));
    } catch (const PlanError&) {
      continue;  // as a sweep skips it
    }
  }
  return out;
}

/// A step by the reference solver; the native solver's where trials are replays, an estimate's where they are that.
Seconds confirmed(const Problem& problem, const Strategy& strategy) {
  return replaying_evaluator(problem, Solver::SimGrid)->evaluate(strategy).step;
}

/// Of the trials that are no builders: how many beat the best builder.
std::string hit_rate(const SearchResult& result) {
  const Trial* builder = result.best_builder();
  std::size_t count = 0;
  std::size_t hits = 0;
  for (const Trial& trial : result.trials) {
    if (trial.round == 0) continue;
    ++count;
    if (builder != nullptr && trial.step && *trial.step < *builder->step) ++hits;
  }
  if (count == 0) return "none besides builders";
  return fmt::format("{} besides {} builders; {} of them ({:.0f} %) beat the best builder", count,
                     result.trials.size() - count, hits,
                     100.0 * static_cast<double>(hits) / static_cast<double>(count));
}

std::string trial_name(const Trial& trial) {
  return trial.round == 0 ? trial.candidate.origin : fmt::format("trial {}, {}", trial.number, trial.candidate.origin);
}

void print_description(const std::string& title, const Strategy& strategy, const Model& model) {
  constexpr std::size_t kIndent = 4;
  std::cout << title << ":\n";
  for (const std::string& line : describe(strategy, model))
    std::cout << "  " << wrapped("- " + line, terminal_style().width - 2, kIndent) << '\n';
}

void print_report(const SearchFlags& flags, const Problem& problem, const SearchResult& result) {
  const Trial* best = result.best();
  const Trial* builder = result.best_builder();
  std::cout << wrapped(
                   fmt::format("{} on {}, {} worker{}, batch {} per worker: {}, {} by {}, seed {}", flags.request.model,
                               flags.request.cluster, flags.request.workers, flags.request.workers == 1 ? "" : "s",
                               problem.samples(), flags.method,
                               flags.options.trials == 1 ? "1 trial" : fmt::format("{} trials", flags.options.trials),
                               flags.evaluator, flags.options.seed),
                   terminal_style().width)
            << '\n';
  print_line("candidates",
             fmt::format("{} estimated, of which {} do not fit into memory", result.candidates, result.too_large));
  print_line("trials", hit_rate(result));
  const Seconds step = confirmed(problem, best->candidate.strategy);
  print_line("best", fmt::format("{} ({}; {:.0f} % of it is the busiest resource alone)", format_seconds(step),
                                 trial_name(*best), 100.0 * best->candidate.estimate.bound / step));
  if (builder != nullptr) {
    const Seconds known = confirmed(problem, builder->candidate.strategy);
    print_line("best builder", fmt::format("{} ({})", format_seconds(known), builder->candidate.origin));
    constexpr double kSimulated = 1.001;  // to which steps are simulated
    print_line("gain", known / step < kSimulated ? "none: equally fast within the 0.1 % to which steps are simulated"
                                                 : fmt::format("{:.3f}x", known / step));
  }
  print_description("The best", best->candidate.strategy, problem.model);
  if (builder != nullptr && builder != best)
    print_description(fmt::format("The best builder, {}", builder->candidate.origin), builder->candidate.strategy,
                      problem.model);
  for (const std::string& line : framework_settings(best->candidate.strategy, problem.model)) std::cout << line << '\n';
}

void check_flags(const SearchFlags& flags) {
  if (flags.resume && (flags.csv.empty() || flags.csv == "-"))
    throw InputError("--resume needs the file to go on with: --csv FILE");
}

void run_search(const SearchFlags& flags) {
  check_flags(flags);
  const Question question = question_of(flags);
  const Problem problem = prepare(question.request);
  const SearchTarget target{.model = problem.model,
                            .cluster = problem.cluster,
                            .workers = question.request.workers,
                            .micro_steps = problem.strategy.graph.micro_steps,
                            .recompute = problem.strategy.graph.recompute};
  const StrategySampler sampler(make_space(question.space, problem.cluster), target);
  const auto estimates = estimating_evaluator(problem);
  const auto trials_by = flags.evaluator == kEstimate ? estimating_evaluator(problem) : replaying_evaluator(problem);
  const StartingRanker ranker = starting_ranker(flags.ranker);
  std::optional<RowFile> file;
  if (!flags.csv.empty()) {
    file.emplace(open_resumable(flags.csv, csv_row(trial_header()), flags.resume));
    tell_how_to_resume(flags.csv);
  }
  SearchOptions options = flags.options;
  for (const auto& [word, method] : search_method_words())
    if (word == flags.method) options.method = method;
  options.ranker = ranker.kind;
  SearchProblem asked{
      .sampler = sampler,
      .samples = problem.samples(),
      .estimates = *estimates,
      .builders = builders_of(question, problem),
      .fits =
          [&](const Strategy& strategy) {
            return problem.ignore_memory ||
                   rank_memory(problem.model, problem.cluster, strategy, problem.profile, problem.optimizer).fits();
          },
      .run = {},
      .source = ranker.source()};
  SearchResult result;
  {
    ProgressBar progress(asked.builders.size() + static_cast<std::size_t>(options.trials));
    TrialLog log({.target = target, .samples = problem.samples(), .evaluator = flags.evaluator},
                 file ? &*file : nullptr, progress);
    const StrategyRunner runner = run_simulated(*trials_by, flags.jobs);
    asked.run = [&](const std::vector<Candidate>& candidates, int first, int round) {
      return log.run(candidates, first, round, runner);
    };
    result = search(asked, options);
  }
  if (result.best() == nullptr)
    throw PlanError(fmt::format("no strategy could run: {} of {} candidates did not fit into memory", result.too_large,
                                result.candidates));
  if (!flags.out.empty()) {
    Strategy best = result.best()->candidate.strategy;
    if (result.best()->round > 0) best.name = fmt::format("{}-{}", flags.method, result.best()->candidate.id);
    write_file(flags.out, to_yaml(best, problem.model));
  }
  write_ranker(flags.ranker, ranker, result, {.target = target, .samples = problem.samples(), .evaluator = {}});
  if (flags.csv != "-") print_report(flags, problem, result);
}

}  // namespace

void setup_search(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<SearchFlags>();
  auto* command = app.add_subcommand("search", "Look for the fastest strategy, variable by variable");
  command->add_option("--model", flags->request.model, "Model: a name ('simsync list models') or a path")->required();
  command->add_option("--cluster", flags->request.cluster, "Cluster: a name ('simsync list clusters') or a path")
      ->required();
  command->add_option("--workers", flags->request.workers, "Devices that take part, filled node by node")
      ->required()
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
  command
      ->add_option("--method", flags->method,
                   "random: every draw is a trial; anneal; mutate: children of the best trials; autosync: draws that a "
                   "ranker sifts; exhaustive: a small space")
      ->check(CLI::IsMember(methods))
      ->capture_default_str();
  command->add_option("--evaluator", flags->evaluator, "What a trial is: replay (simulated) or estimate")
      ->check(CLI::IsMember({kReplay, kEstimate}))
      ->capture_default_str();
  command->add_option("--trials", flags->options.trials, "Trials besides those of all builders")
      ->check(whole_number(0, 1'000'000))
      ->capture_default_str();
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
  command->add_option("--jobs", flags->jobs, "Trials that run side by side, a process each")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  command->add_option("--out", flags->out, "Write the best strategy to this file, for --strategy")
      ->check(output_file("--out"));
  command->add_option("--csv", flags->csv, "Write a row for every trial to this file, or to standard output with '-'")
      ->check(output_file("--csv"));
  command->add_flag("--resume", flags->resume, "Go on with the trials that the file of --csv has");
  command->callback([flags] { run_search(*flags); });
}

}  // namespace simsync
