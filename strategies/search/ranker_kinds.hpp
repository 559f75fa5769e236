// Which rankers there are, and what each sees of a strategy.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "strategies/names.hpp"
#include "strategies/search/ranker.hpp"
#include "strategies/search/search.hpp"
#include "strategies/search/trial_table.hpp"

namespace simsync {

const Words<RankerKind>& ranker_words();
const char* name_of(RankerKind kind);

/// Knows nothing yet. @throws CapabilityError for one that this build lacks.
std::unique_ptr<LearningRanker> make_ranker(RankerKind kind);
/// Which of its features is the logarithm of a simulated step; none: the ranker does not see one.
std::optional<std::size_t> simulated_feature(RankerKind kind);
/// Of the features that such a ranker learns from.
const FeatureSchema& ranker_schema(RankerKind kind);
/// `samples`: the batch of a worker.
std::vector<double> ranker_features(RankerKind kind, const Candidate& candidate, const SearchTarget& target,
                                    std::int64_t samples);
std::vector<double> ranker_features(RankerKind kind, const TrialRow& row);

/// What trials that ran have taught.
std::vector<Example> examples_of(RankerKind kind, const std::vector<Trial>& trials, const SearchTarget& target,
                                 std::int64_t samples);
/// The same of rows that have a step. Rows are of one domain that have the same model, cluster, workers, batch and
/// evaluator.
std::vector<Example> examples_of(RankerKind kind, const std::vector<TrialRow>& rows);

}  // namespace simsync
