// What is known of a model on a cluster: from its trials, from others, from the simulator.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "strategies/search/ranker_kinds.hpp"

namespace simsync {

/// What has been learned elsewhere, to be transferred. `examples`: those that `ranker` learned last, one or more.
TransferSource source_of(RankerKind kind, std::shared_ptr<const Ranker> ranker, const std::vector<Example>& examples);

/// How many examples count as much as what is known before them. README.md has the accuracy with other numbers.
struct PriorWorth {
  double simulator = 40.0;  ///< 0: it does not count
  double source = 3.0;      ///< positive
};

/// A ranker whose score is a mean of three, weighted by how much each is worth:
/// - what make_ranker(kind) learns from the examples: their number, if there are two or more;
/// - the order of simulated steps, if the kind sees them: `worth.simulator`;
/// - the source, if there is one: `worth.source`.
/// The more examples, the less counts what was known before, whether it helps or misleads. Scores are averaged in
/// standard deviations over the examples (those of source and simulator beside each other over the source's). What
/// gives all of these the same score is left out. With neither simulator nor source it needs two examples.
/// Deterministic.
/// @throws CapabilityError as make_ranker() does.
std::shared_ptr<const Ranker> learned_ranker(RankerKind kind, const std::vector<Example>& examples,
                                             const std::optional<TransferSource>& source = std::nullopt,
                                             const PriorWorth& worth = {});

}  // namespace simsync
