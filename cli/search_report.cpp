#include "cli/search_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <set>

#include "base/parse_units.hpp"
#include "base/wrap.hpp"
#include "cli/terminal.hpp"
#include "cli/trial_basis.hpp"
#include "strategies/builders.hpp"
#include "strategies/search/describe.hpp"

namespace simsync {
namespace {

constexpr double kSecondsPerHour = 3600.0;

constexpr double kTold = 1.001;  // steps are simulated to 0.1 %: less is no gain

/// Which builder the best trial is compared with: a search for shard counts has one only.
std::string compared_with(const ReportedSearch& search) {
  return search.options.method == SearchMethod::Shards ? fmt::format("builder {}", kShardsBuilder) : "best builder";
}

/// Of the trials that are no builders: how many beat that builder, by more than can be told from nothing.
std::string hit_rate(const ReportedSearch& search, const SearchResult& result) {
  const Trial* builder = result.best_builder();
  std::size_t count = 0;
  std::size_t hits = 0;
  for (const Trial& trial : result.trials) {
    if (trial.round == 0) continue;
    ++count;
    if (builder != nullptr && trial.step && *builder->step / *trial.step >= kTold) ++hits;
  }
  if (count == 0) return "none besides builders";
  const std::size_t builders = result.trials.size() - count;
  return fmt::format("{} besides {} builder{}; {} of them ({:.0f} %) beat the {}{}", count, builders,
                     builders == 1 ? "" : "s", hits, 100.0 * static_cast<double>(hits) / static_cast<double>(count),
                     compared_with(search), search.evaluator == "estimate" ? " by their estimates" : "");
}

std::string trial_name(const Trial& trial) {
  return trial.round == 0 ? trial.candidate.origin : fmt::format("trial {}, {}", trial.number, trial.candidate.origin);
}

std::string cost_text(const ReportedSearch& search, const SearchResult& result) {
  const double hours = search.nodes * result.cluster_time.value() / kSecondsPerHour;
  std::string out = fmt::format("{:.3g} node-hours for {} steps of each trial on {} node{}", hours,
                                search.options.steps_per_trial, search.nodes, search.nodes == 1 ? "" : "s");
  if (search.price_per_node_hour) out += fmt::format(": {:.2f}", hours * *search.price_per_node_hour);
  return out;
}

std::string curve_text(const ShardCurve& curve) {
  constexpr std::size_t kTerms = 3;
  return fmt::format("{} + {} / n + {} (n - 1) for n of {} to {} shards{}; shortest at {}: {}",
                     format_seconds(Seconds{curve.fixed}), format_seconds(Seconds{curve.divided}),
                     format_seconds(Seconds{curve.per_shard}), curve.fewest, curve.most,
                     curve.samples > kTerms ? fmt::format(", within {} (rms)", format_seconds(Seconds{curve.rms})) : "",
                     curve.best(), format_seconds(Seconds{curve.step(curve.best())}));
}

void print_item(const std::string& text) {
  constexpr std::size_t kIndent = 4;
  std::cout << "  " << wrapped("- " + text, terminal_style().width - 2, kIndent) << '\n';
}

void print_description(const std::string& title, const Strategy& strategy, const Model& model) {
  std::cout << title << ":\n";
  for (const std::string& line : describe(strategy, model)) print_item(line);
}

/// What `measure` must be told to run a builder as the trials of a measured search ran it: by its name alone it has the
/// habits of the framework that it is named for.
std::string as_trials_ran(const std::string& builder) {
  std::string out = fmt::format("as trials ran it: --strategy {}", builder);
  for (const auto& [option, value] : habits_of_runner())
    if (has_option(builder, option)) out += fmt::format(" --set strategy.{}={}", option, value);
  return out;
}

std::string gain_text(const Winners& winners) {
  const double gain = winners.builder_step / winners.step;
  if (gain * kTold < 1.0)
    return fmt::format("none: that builder is {:.3f}x as fast as the best found in the restricted space", 1.0 / gain);
  return gain < kTold ? "none: equally fast within 0.1 %" : fmt::format("{:.3f}x", gain);
}

/// At most so many of the fastest trials, of builders or of others.
std::vector<const Trial*> fastest(const SearchResult& result, bool of_builders, std::size_t most) {
  std::vector<const Trial*> out;
  for (const Trial& trial : result.trials)
    if (trial.step && (trial.round == 0) == of_builders) out.push_back(&trial);
  std::stable_sort(out.begin(), out.end(), [](const Trial* a, const Trial* b) { return *a->step < *b->step; });
  out.resize(std::min(out.size(), most));
  return out;
}

}  // namespace

Winners winners_so_far(const SearchResult& result) {
  Winners out{.best = result.best(),
              .step = {},
              .builder = result.best_builder(),
              .builder_step = {},
              .how = "of its trial, which was not run again"};
  if (out.best != nullptr) out.step = *out.best->step;
  if (out.builder != nullptr) out.builder_step = *out.builder->step;
  return out;
}

std::vector<const Trial*> shortlist(const SearchResult& result, std::size_t trials, std::size_t builders) {
  std::vector<const Trial*> out = fastest(result, false, trials);
  const std::vector<const Trial*> built = fastest(result, true, builders);
  out.insert(out.end(), built.begin(), built.end());
  return out;
}

Winners fastest_again(const SearchResult& of, const std::vector<const Trial*>& trials, int times, const RunAgain& run) {
  std::vector<Strategy> strategies;
  for (const Trial* trial : trials) strategies.push_back(trial->candidate.strategy);
  std::vector<Seconds> sums(trials.size());
  std::vector<bool> failed(trials.size(), false);
  for (int time = 0; time < times; ++time) {
    const auto steps = run(strategies);
    for (std::size_t i = 0; i < trials.size(); ++i) {
      failed[i] = failed[i] || !steps[i];
      sums[i] += steps[i].value_or(Seconds{});
    }
  }
  Winners out;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const Seconds step = sums[i] / times;
    if (failed[i]) continue;
    if (of.is_inside(*trials[i]) && (out.best == nullptr || step < out.step)) {
      out.best = trials[i];
      out.step = step;
    }
    if (trials[i]->round == 0 && (out.builder == nullptr || step < out.builder_step)) {
      out.builder = trials[i];
      out.builder_step = step;
    }
  }
  if (out.best == nullptr) {
    out.best = out.builder;
    out.step = out.builder_step;
  }
  return out;
}

void print_report(const ReportedSearch& search, const SearchResult& result, const Winners& winners) {
  const PredictRequest& request = search.request;
  const Model& model = search.problem.model;
  const int trials = search.options.trials;
  std::cout << wrapped(fmt::format("{} on {}, {} worker{}, batch {} per worker: {}, {} by {}, seed {}", model.name(),
                                   search.problem.cluster.name, request.workers, request.workers == 1 ? "" : "s",
                                   search.problem.samples(), search.method,
                                   trials == 1 ? "1 trial" : fmt::format("{} trials", trials), search.evaluator,
                                   search.options.seed),
                       terminal_style().width)
            << '\n';
  print_line("candidates",
             fmt::format("{} estimated, of which {} do not fit into memory", result.candidates, result.too_large));
  print_line("trials", hit_rate(search, result));
  print_line("cost", cost_text(search, result));
  if (result.shard_curve) print_line("curve", curve_text(*result.shard_curve));
  print_line("best", fmt::format("{} ({}; its busiest resource alone is estimated at {:.0f} % of that), {}",
                                 format_seconds(winners.step), trial_name(*winners.best),
                                 100.0 * winners.best->candidate.estimate.bound / winners.step, winners.how));
  if (winners.builder != nullptr) {
    const bool is_only_one = search.options.method == SearchMethod::Shards;
    print_line(is_only_one ? "begins with" : "best builder",
               fmt::format("{} ({})", format_seconds(winners.builder_step), winners.builder->candidate.origin));
    print_line("gain", gain_text(winners) + (is_only_one ? " over that; no other builder was tried" : ""));
  }
  print_description("The best", winners.best->candidate.strategy, model);
  if (winners.builder != nullptr) {
    const Candidate& builder = winners.builder->candidate;
    if (winners.builder != winners.best)
      print_description(search.options.method == SearchMethod::Shards
                            ? fmt::format("The {}", compared_with(search))
                            : fmt::format("The best builder, {}", builder.origin),
                        builder.strategy, model);
    if (search.evaluator == "measure") print_item(as_trials_ran(builder.origin));
  }
  for (const std::string& line : framework_settings(winners.best->candidate.strategy, model)) std::cout << line << '\n';
}

}  // namespace simsync
