// What a search has found, for people.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/problem/problem.hpp"
#include "strategies/search/search.hpp"

namespace simsync {

/// The best trial and the best builder, each with a step that is better known than that of one trial.
struct Winners {
  const Trial* best = nullptr;
  Seconds step;
  const Trial* builder = nullptr;  ///< null: none could run
  Seconds builder_step;
  std::string how;  ///< where these steps come from
};

/// Those with the fastest trials, as these found them. None: nothing ran.
Winners winners_so_far(const SearchResult& result);

/// Runs all of them one after another: their steps, none where one fails.
using RunAgain = std::function<std::vector<std::optional<Seconds>>(const std::vector<Strategy>& strategies)>;

/// The fastest trials that are no builders, at most so many, and the fastest builders, at most so many.
std::vector<const Trial*> shortlist(const SearchResult& result, std::size_t trials, std::size_t builders);

/// Of these trials the fastest (as SearchResult::best) and the fastest builder, by the mean of so many `times` that all
/// of them are run again. All are run once before any is run twice, so that slow changes of the machine hit all alike.
/// What fails is left out. `how` is left to the caller.
Winners fastest_again(const SearchResult& of, const std::vector<const Trial*>& trials, int times, const RunAgain& run);

struct ReportedSearch {
  const PredictRequest& request;
  const Problem& problem;
  const SearchOptions& options;
  std::string method;
  std::string evaluator;
  int nodes = 1;                              ///< of the cluster that a trial takes
  std::optional<double> price_per_node_hour;  ///< in any currency
};

void print_report(const ReportedSearch& search, const SearchResult& result, const Winners& winners);

}  // namespace simsync
