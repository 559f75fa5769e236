#include "strategies/search/proposals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "base/error.hpp"

namespace simsync::detail {
namespace {

constexpr const char* kDrawn = "drawn";
constexpr const char* kChanged = "changed";
constexpr const char* kCrossed = "crossed";
/// Attempts for each candidate that is wanted before a search gives up: what is drawn may be known or not fit.
constexpr std::size_t kMostAttempts = 20;

class RandomProposals final : public Proposals {
public:
  std::vector<Candidate> next(SearchState& state, std::size_t count) override {
    std::vector<Candidate> out;
    for (std::size_t attempt = 0; out.size() < count && attempt < kMostAttempts * count; ++attempt) {
      auto candidate = state.considered(state.problem.sampler.draw(state.decisions), kDrawn);
      if (candidate && state.note_new(*candidate)) out.push_back(std::move(*candidate));
    }
    return out;
  }
};

/// What a variable's configuration is, whatever its servers and groups, as AutoSync compares strategies.
using Shape = std::vector<std::uint64_t>;  ///< by variable

Shape shape_of(const Strategy& strategy) {
  Shape out;
  for (const VariableStrategy& entry : strategy.variables) {
    std::uint64_t key =
        static_cast<std::uint64_t>(entry.partition_axis + 2) * 4 + static_cast<std::uint64_t>(entry.compressor);
    for (const Shard& shard : entry.shards) key = stream_seed(key, {shard.synchronizer.index()});
    out.push_back(key);
  }
  return out;
}

/// Share of the model's bytes that two strategies configure alike.
double similarity(const Shape& a, const Shape& b, const Model& model) {
  double alike = 0.0;
  double all = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto bytes = static_cast<double>(model.variable(i).bytes().count);
    all += bytes;
    if (a[i] == b[i]) alike += bytes;
  }
  return all > 0.0 ? alike / all : 1.0;
}

/// Twins are configured alike and have the same estimate to the last digit. What they do at the graph level is not
/// compared, so that their replays may differ by what estimates do not see, such as the order of pieces.
using Twins = std::tuple<double, double, Shape>;

Twins twins_of(const Candidate& candidate) {
  return {candidate.estimate.step.value(), candidate.estimate.bound.value(), shape_of(candidate.strategy)};
}

/// The best first, by score.
void sort_by_score(const SearchState& state, std::vector<Candidate>& all) {
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < all.size(); ++i) order.emplace_back(state.score(all[i]), i);
  std::sort(order.begin(), order.end());
  std::vector<Candidate> out;
  for (const auto& [score, i] : order) out.push_back(std::move(all[i]));
  all = std::move(out);
}

/// The best `most` by score that are no twin of each other or of a trial. What is drawn has many twins where a model is
/// sharded: without this they would be all that is left.
std::vector<Candidate> best_of(const SearchState& state, std::vector<Candidate> all, std::size_t most) {
  sort_by_score(state, all);
  std::set<Twins> seen;
  for (const Trial& trial : state.result.trials) seen.insert(twins_of(trial.candidate));
  std::vector<Candidate> out;
  for (Candidate& candidate : all) {
    if (out.size() == most) break;
    if (seen.insert(twins_of(candidate)).second) out.push_back(std::move(candidate));
  }
  return out;
}

/// Where trials are real runs, the best tenth by what estimates say is kept and replayed: at least twice as many as are
/// wanted.
std::vector<Candidate> sifted(const SearchState& state, std::vector<Candidate> all, std::size_t count) {
  const bool is_replayed = state.problem.replays != nullptr;
  const std::size_t most = is_replayed ? std::max(2 * count, all.size() / 10) : all.size();
  std::vector<Candidate> out = best_of(state, std::move(all), most);
  state.replay(out);  // where there are replays
  return out;
}

/// The best by score of those that are not alike: greedily the one with the highest worth, which falls with its
/// similarity to what was picked before.
std::vector<Candidate> picked(SearchState& state, std::vector<Candidate> from, std::size_t count) {
  std::vector<Candidate> all = sifted(state, std::move(from), count);
  const Model& model = state.problem.sampler.target().model;
  std::vector<double> worth;
  std::vector<Shape> shapes;
  for (const Candidate& candidate : all) {
    worth.push_back(-state.score(candidate));
    shapes.push_back(shape_of(candidate.strategy));
  }
  const double mean =
      std::accumulate(worth.begin(), worth.end(), 0.0) / static_cast<double>(std::max<std::size_t>(1, worth.size()));
  double squares = 0.0;
  for (const double value : worth) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(std::max<std::size_t>(1, worth.size())));
  std::vector<double> nearest(all.size(), 0.0);  // to any pick
  std::vector<bool> taken(all.size(), false);
  std::vector<Candidate> out;
  while (out.size() < count) {
    std::size_t best = all.size();
    double most = 0.0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double value = worth[i] - state.options.diversity * deviation * nearest[i];
      if (!taken[i] && (best == all.size() || value > most)) {
        best = i;
        most = value;
      }
    }
    if (best == all.size()) break;
    taken[best] = true;
    if (!state.note_new(all[best])) continue;
    out.push_back(std::move(all[best]));
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!taken[i]) nearest[i] = std::max(nearest[i], similarity(shapes[best], shapes[i], model));
  }
  return out;
}

/// What is left of `all` when the half that the ranker calls slower is rejected.
std::vector<Candidate> faster_half(const SearchState& state, std::vector<Candidate> all) {
  sort_by_score(state, all);
  all.resize((all.size() + 1) / 2);
  return all;
}

class AutoSyncProposals final : public Proposals {
public:
  [[nodiscard]] bool asks_ranker() const override { return true; }
  std::vector<Candidate> next(SearchState& state, std::size_t count) override {
    std::vector<Candidate> drawn;
    for (int i = 0; i < state.options.candidates; ++i) {
      auto candidate = state.considered(state.problem.sampler.draw(state.decisions), kDrawn);
      if (candidate) drawn.push_back(std::move(*candidate));
    }
    return picked(state, faster_half(state, std::move(drawn)), count);
  }
};

class MutateProposals final : public Proposals {
public:
  [[nodiscard]] bool asks_ranker() const override { return true; }
  std::vector<Candidate> next(SearchState& state, std::size_t count) override {
    const std::vector<std::size_t> ranking = state.parents();
    if (ranking.empty()) return AutoSyncProposals().next(state, count);
    std::vector<Candidate> children;
    for (int i = 0; i < state.options.candidates; ++i) {
      auto child = child_of(state, ranking);
      if (child) children.push_back(std::move(*child));
    }
    return picked(state, std::move(children), count);
  }

private:
  static constexpr std::size_t kParents = 10;
  static constexpr double kCrossings = 0.2;

  static std::optional<Candidate> child_of(SearchState& state, const std::vector<std::size_t>& ranking) {
    const StrategySampler& sampler = state.problem.sampler;
    const std::size_t parents = std::min(kParents, ranking.size());
    const auto parent = [&]() -> const Strategy& {
      return state.result.trials[ranking[state.decisions.below(parents)]].candidate.strategy;
    };
    if (state.decisions.coin(kCrossings))
      return state.considered(sampler.crossed(parent(), parent(), state.decisions), kCrossed);
    Strategy child = parent();
    // Mostly one change; now and then several, to get away from where one does not help.
    do child = sampler.mutated(child, state.decisions);
    while (state.decisions.coin(0.4));
    return state.considered(std::move(child), kChanged);
  }
};

/// Metropolis on the score, which falls from chain to chain to that of the best trial.
class AnnealProposals final : public Proposals {
public:
  [[nodiscard]] bool asks_ranker() const override { return true; }
  std::vector<Candidate> next(SearchState& state, std::size_t count) override {
    const std::vector<std::size_t> ranking = state.parents();
    if (ranking.empty()) return AutoSyncProposals().next(state, count);
    Candidate now = state.result.trials[ranking.front()].candidate;
    state.take_estimate(now);  // as of its neighbors
    double energy = state.score(now);
    double scale = 0.0;
    std::vector<Candidate> visited;
    for (int step = 0; step < state.options.candidates; ++step) {
      auto next = state.considered(state.problem.sampler.mutated(now.strategy, state.decisions), kChanged);
      if (!next) continue;
      const double at = state.score(*next);
      // The temperature is a part of the mean change, and falls by four orders of magnitude.
      scale += (std::abs(at - energy) - scale) / (step + 1.0);
      const double temperature = 0.3 * scale * std::pow(1e-4, static_cast<double>(step) / state.options.candidates);
      visited.push_back(*next);
      const bool accepted =
          at <= energy || (temperature > 0.0 && state.decisions.coin(std::exp((energy - at) / temperature)));
      if (!accepted) continue;
      now = std::move(*next);
      energy = at;
    }
    return picked(state, std::move(visited), count);
  }
};

class ExhaustiveProposals final : public Proposals {
public:
  std::vector<Candidate> next(SearchState& state, std::size_t count) override {
    if (!is_drawn_) draw_all(state);
    std::vector<Candidate> out;
    for (; out.size() < count && at_ < all_.size(); ++at_)
      if (state.note_new(all_[at_])) out.push_back(std::move(all_[at_]));
    return out;
  }

private:
  /// Before anything is estimated.
  static void expect_few(const StrategySampler& sampler) {
    AllDecisions decisions;
    std::int64_t count = 0;
    do {
      (void)sampler.draw(decisions);
      if (++count > kMostExhaustive)
        throw InputError(fmt::format("the search space has more than {} strategies: too many for an exhaustive search",
                                     kMostExhaustive),
                         "restrict it ('simsync list space' shows its dimensions), or choose another method");
    } while (decisions.next());
  }

  /// In the order of their estimates.
  void draw_all(SearchState& state) {
    is_drawn_ = true;
    SearchSpace space = state.problem.sampler.space();
    space.server_rules = {ServerRule::Random};
    space.group_rules = {GroupRule::Random};
    const StrategySampler sampler(space, state.problem.sampler.target());
    expect_few(sampler);
    AllDecisions decisions;
    do {
      auto candidate = state.considered(sampler.draw(decisions), kDrawn);
      if (candidate) all_.push_back(std::move(*candidate));
    } while (decisions.next());
    std::stable_sort(all_.begin(), all_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.estimate.step < b.estimate.step; });
  }

  bool is_drawn_ = false;
  std::vector<Candidate> all_;
  std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<Proposals> make_proposals(SearchMethod method, const SearchProblem& problem) {
  switch (method) {
    case SearchMethod::Random:
      return std::make_unique<RandomProposals>();
    case SearchMethod::Anneal:
      return std::make_unique<AnnealProposals>();
    case SearchMethod::Mutate:
      return std::make_unique<MutateProposals>();
    case SearchMethod::AutoSync:
      return std::make_unique<AutoSyncProposals>();
    case SearchMethod::Exhaustive:
      return std::make_unique<ExhaustiveProposals>();
    case SearchMethod::Shards:
      return make_shard_count_proposals(problem);
  }
  SIMSYNC_ASSERT(false);
  return nullptr;
}

}  // namespace simsync::detail
