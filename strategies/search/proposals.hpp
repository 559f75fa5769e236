// Which strategies a search tries next, by method. Private to strategies/search.
#pragma once
#include <memory>
#include <set>
#include <vector>

#include "strategies/search/ranker.hpp"
#include "strategies/search/search.hpp"

namespace simsync::detail {

/// What a search has seen so far. Proposals are made from it.
class SearchState {
public:
  SearchState(const SearchProblem& asked, const SearchOptions& how)
      : problem(asked), options(how), decisions(how.seed) {}

  /// With its estimate; nothing for what cannot run or does not fit.
  std::optional<Candidate> considered(Strategy strategy, std::string origin);
  /// Where trials are real runs: replays those that have not been replayed.
  void replay(std::vector<Candidate>& candidates) const;
  /// From now on the candidate is scored by its estimate, whether it was replayed or not.
  void take_estimate(Candidate& candidate) const;
  /// Whether it is new; it is not new again.
  bool note_new(Candidate& candidate);
  void add(Trial trial);
  /// Learns from all trials that ran.
  void learn();
  /// The higher, the slower: of the ranker, or the estimate while there is nothing to learn from.
  [[nodiscard]] double score(const Candidate& candidate) const;
  /// Indices of trials that ran, the fastest first.
  [[nodiscard]] std::vector<std::size_t> fastest() const;
  /// Those of them that others may be derived from: builders only where none can be outside of the space.
  [[nodiscard]] std::vector<std::size_t> parents() const;

  const SearchProblem& problem;
  const SearchOptions& options;
  RandomDecisions decisions;
  SearchResult result;

private:
  [[nodiscard]] std::vector<double> features_of(const Candidate& candidate) const;

  std::set<std::string> known_;  ///< ids
  std::vector<Example> examples_;
  std::shared_ptr<const Ranker> ranker_;
};

class Proposals {
public:
  Proposals() = default;
  virtual ~Proposals() = default;
  Proposals(const Proposals&) = delete;
  Proposals& operator=(const Proposals&) = delete;
  /// At most `count` new candidates; none: there are no more.
  virtual std::vector<Candidate> next(SearchState& state, std::size_t count) = 0;
  /// Whether what the ranker says decides which: else nobody asks it, and it need not learn.
  [[nodiscard]] virtual bool asks_ranker() const { return false; }
};

/// @throws InputError for a problem that the method is not for.
std::unique_ptr<Proposals> make_proposals(SearchMethod method, const SearchProblem& problem);
/// @throws InputError for a model without sparse variables, and without the builder `parallax`.
std::unique_ptr<Proposals> make_shard_count_proposals(const SearchProblem& problem);

}  // namespace simsync::detail
