#include "strategies/search/search.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/error.hpp"
#include "base/sha256.hpp"
#include "strategies/reader.hpp"
#include "strategies/search/learned_ranker.hpp"
#include "strategies/search/proposals.hpp"
#include "strategies/search/ranker_kinds.hpp"

namespace simsync {
namespace detail {

std::optional<Candidate> SearchState::considered(Strategy strategy, std::string origin) {
  Candidate out{.strategy = std::move(strategy),
                .origin = std::move(origin),
                .id = {},
                .estimate = {},
                .replayed = {},
                .features = {}};
  try {
    out.estimate = problem.estimates.evaluate(out.strategy);
  } catch (const PlanError&) {
    return std::nullopt;
  }
  ++result.candidates;
  if (!problem.fits(out.strategy)) {
    ++result.too_large;
    return std::nullopt;
  }
  take_estimate(out);
  return out;
}

void SearchState::take_estimate(Candidate& candidate) const {
  candidate.replayed.reset();
  candidate.features = strategy_features(candidate.strategy, problem.sampler.target(), problem.samples,
                                         candidate.estimate, candidate.estimate.step);
}

void SearchState::replay(std::vector<Candidate>& candidates) const {
  if (problem.replays == nullptr) return;
  for (Candidate& candidate : candidates) {
    if (candidate.replayed) continue;
    candidate.replayed = problem.replays->evaluate(candidate.strategy).step;
    candidate.features = strategy_features(candidate.strategy, problem.sampler.target(), problem.samples,
                                           candidate.estimate, *candidate.replayed);
  }
}

bool SearchState::note_new(Candidate& candidate) {
  if (candidate.id.empty()) candidate.id = strategy_id(candidate.strategy, problem.sampler.target().model);
  return known_.insert(candidate.id).second;
}

void SearchState::add(Trial trial) {
  if (trial.step) {
    examples_.push_back({.features = features_of(trial.candidate),
                         .step = trial.step->value(),
                         .shards = shards_of(trial.candidate.strategy)});
    result.cluster_time += options.steps_per_trial * *trial.step;
  }
  result.trials.push_back(std::move(trial));
}

void SearchState::learn() {
  constexpr std::size_t kFewest =
      10;  // until then the estimate ranks alone: trees and AutoSync's features say less from so few
  if (problem.source || examples_.size() >= kFewest)
    ranker_ = learned_ranker(options.ranker, examples_, problem.source);
}

std::vector<double> SearchState::features_of(const Candidate& candidate) const {
  return ranker_features(options.ranker, candidate, problem.sampler.target(), problem.samples);
}

double SearchState::score(const Candidate& candidate) const {
  if (ranker_) return ranker_->score(features_of(candidate));
  return std::log(candidate.replayed.value_or(candidate.estimate.step).value());
}

std::vector<std::size_t> SearchState::fastest() const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < result.trials.size(); ++i)
    if (result.trials[i].step) out.push_back(i);
  std::stable_sort(out.begin(), out.end(),
                   [&](std::size_t a, std::size_t b) { return *result.trials[a].step < *result.trials[b].step; });
  return out;
}

std::vector<std::size_t> SearchState::parents() const {
  std::vector<std::size_t> out = fastest();
  if (problem.sampler.space().is_restricted)
    std::erase_if(out, [&](std::size_t i) { return result.trials[i].round == 0; });
  return out;
}

}  // namespace detail

namespace {

using detail::SearchState;

bool is_stopped(const SearchProblem& problem) {
  return problem.stop && problem.stop();
}

/// What is left of the budget; none: there is no limit.
std::optional<Seconds> left_of_budget(const SearchState& state) {
  if (!state.options.budget) return std::nullopt;
  return *state.options.budget - state.result.cluster_time;
}

double predicted_step(const Candidate& candidate) {
  return candidate.replayed.value_or(candidate.estimate.step).value();
}

/// How much longer trials take than was predicted, on the whole.
double mean_slowness(const SearchState& state) {
  double taken = 0.0;
  double predicted = 0.0;
  for (const Trial& trial : state.result.trials) {
    if (!trial.step) continue;
    taken += trial.step->value();
    predicted += predicted_step(trial.candidate);
  }
  return predicted > 0.0 ? taken / predicted : 1.0;
}

/// How many of the candidates, beginning with the one at `from`, run before what is left of the budget is spent, by
/// what is predicted of them: one at least while anything is left.
std::size_t affordable_from(const SearchState& state, const std::vector<Candidate>& candidates, std::size_t from) {
  const std::optional<Seconds> left = left_of_budget(state);
  if (!left) return candidates.size() - from;
  const double slowness = mean_slowness(state);
  double spent = 0.0;
  std::size_t count = 0;
  for (; from + count < candidates.size() && spent < left->value(); ++count)
    spent += state.options.steps_per_trial * slowness * predicted_step(candidates[from + count]);
  return count;
}

void run_together(SearchState& state, std::vector<Candidate> candidates, int round) {
  const auto first = static_cast<int>(state.result.trials.size());
  const auto steps = state.problem.run(candidates, first, round);
  SIMSYNC_ASSERT(steps.size() == candidates.size() || (steps.size() < candidates.size() && is_stopped(state.problem)));
  for (std::size_t i = 0; i < steps.size(); ++i)
    state.add({.number = first + static_cast<int>(i),
               .round = round,
               .candidate = std::move(candidates[i]),
               .step = steps[i]});
}

/// Until the budget is spent or the search is stopped.
void run(SearchState& state, std::vector<Candidate> candidates, int round) {
  state.replay(candidates);
  for (std::size_t from = 0; from < candidates.size() && !is_stopped(state.problem);) {
    const std::size_t count = affordable_from(state, candidates, from);
    if (count == 0) return;
    const auto begin = std::make_move_iterator(candidates.begin() + static_cast<std::ptrdiff_t>(from));
    run_together(state, {begin, begin + static_cast<std::ptrdiff_t>(count)}, round);
    from += count;
  }
}

std::vector<Candidate> builders_of(SearchState& state) {
  std::vector<Candidate> out;
  for (const auto& [name, strategy] : state.problem.builders) {
    auto candidate = state.considered(strategy, name);
    // Two builders may make the same strategy; both are asked about by their names.
    if (!candidate) continue;
    (void)state.note_new(*candidate);
    out.push_back(std::move(*candidate));
  }
  return out;
}

/// Trials that what is left of the budget pays for, if they take as long as the mean of those so far.
int affordable(const SearchState& state) {
  const std::optional<Seconds> budget = left_of_budget(state);
  if (!budget) return std::numeric_limits<int>::max();
  const double left = budget->value();
  if (left <= 0.0) return 0;
  const auto ran = static_cast<double>(state.fastest().size());
  const double each = ran > 0.0 ? state.result.cluster_time.value() / ran : left;
  return static_cast<int>(std::clamp(std::floor(left / each), 1.0, 1e9));
}

/// Of those that may be it.
template <class MayBe>
const Trial* fastest_of(const std::vector<Trial>& trials, const MayBe& may_be) {
  const Trial* best = nullptr;
  for (const Trial& trial : trials)
    if (trial.step && may_be(trial) && (best == nullptr || *trial.step < *best->step)) best = &trial;
  return best;
}

}  // namespace

const Words<SearchMethod>& search_method_words() {
  static const Words<SearchMethod> kWords{
      {"random", SearchMethod::Random},     {"anneal", SearchMethod::Anneal},         {"mutate", SearchMethod::Mutate},
      {"autosync", SearchMethod::AutoSync}, {"exhaustive", SearchMethod::Exhaustive}, {"shards", SearchMethod::Shards}};
  return kWords;
}

const Trial* SearchResult::best() const {
  const Trial* inside = fastest_of(trials, [&](const Trial& trial) { return is_inside(trial); });
  return inside != nullptr ? inside : best_builder();
}

const Trial* SearchResult::best_builder() const {
  return fastest_of(trials, [](const Trial& trial) { return trial.round == 0; });
}

double shards_of(const Strategy& strategy) {
  double out = 0.0;
  for (const VariableStrategy& entry : strategy.variables) out += static_cast<double>(entry.shards.size());
  return out;
}

std::string strategy_id(const Strategy& strategy, const Model& model) {
  constexpr std::size_t kDigits = 12;
  Strategy unnamed = strategy;
  unnamed.name.assign(1, '-');
  return sha256(to_yaml(unnamed, model)).substr(0, kDigits);
}

SearchResult search(const SearchProblem& problem, const SearchOptions& options) {
  SIMSYNC_ASSERT(options.round >= 1 && options.candidates >= 1);
  SearchState state(problem, options);
  state.result.is_restricted = problem.sampler.space().is_restricted;
  const auto proposals = detail::make_proposals(options.method, problem);
  run(state, builders_of(state), 0);
  int left = options.trials;
  for (int round = 1; left > 0 && !is_stopped(problem); ++round) {
    const int count = std::min({left, options.round, affordable(state)});
    if (count == 0) break;
    if (proposals->asks_ranker()) state.learn();
    std::vector<Candidate> next = proposals->next(state, static_cast<std::size_t>(count));
    if (next.empty()) break;
    left -= static_cast<int>(next.size());
    run(state, std::move(next), round);
  }
  return std::move(state.result);
}

}  // namespace simsync
