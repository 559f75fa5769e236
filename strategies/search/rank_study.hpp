// How well rankers order strategies that they have not seen.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "strategies/search/learned_ranker.hpp"
#include "strategies/search/trial_table.hpp"

namespace simsync {

struct RankStudyOptions {
  std::vector<RankerKind> rankers;
  std::vector<int> train{20, 50, 100, 200};  ///< trials that are learned; 0, 1: nothing is, but elsewhere
  int seeds = 5;
  double held_out = 0.3;  ///< share of the trials of a domain
  PriorWorth worth;
  /// Called after each task, one ranker on one domain with one number of trials by one seed: how many are done of all.
  std::function<void(std::size_t done, std::size_t all)> progress = {};
};

/// One ranker on the trials of one domain that one seed holds out.
struct RankResult {
  TrialDomain domain;
  std::string ranker;  ///< a word of ranker_words(), `estimate` or `replay`
  std::string start;   ///< `scratch`; `source`: as it was learned elsewhere; `transfer`; empty: no ranker
  int train = 0;
  int source = 0;  ///< trials learned elsewhere
  int seed = 1;
  int held_out = 0;  ///< trials
  double accuracy = 0.0;
};

struct RankStudy {
  std::vector<RankResult> results;
  std::vector<TrialDomain> domains;
  std::size_t trials = 0;            ///< in them
  std::size_t without_step = 0;      ///< rows
  std::size_t repeated = 0;          ///< rows of a strategy that their domain has in an earlier row
  std::size_t of_small_domains = 0;  ///< trials of domains that have fewer than kFewestOfDomain
  std::size_t without_pairs = 0;     ///< splits that hold out nothing to compare
  std::size_t source = 0;            ///< trials learned elsewhere: two or more, or none
  std::size_t source_at_home = 0;    ///< of the sources, left out because they are of a domain that is ranked
};

inline constexpr std::size_t kFewestOfDomain = 10;

/// Every domain is a task of its own: each seed holds the same of its trials out for all rankers, which learn the first
/// of the others. Rows of one strategy in a domain are one trial, which takes the mean of their steps: it is learned or
/// held out. A domain has no result for more trials than it has besides those held out. With `source` each ranker is
/// learned from scratch and transferred; without trials the source is also asked alone.
RankStudy study_rankers(const std::vector<TrialRow>& rows, const std::vector<TrialRow>& source,
                        const RankStudyOptions& options);

const std::vector<std::string>& rank_header();
std::vector<std::string> rank_cells(const RankResult& result);

}  // namespace simsync
