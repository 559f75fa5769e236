// What is known of a model on a cluster: from its trials, from others, from the simulator.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "strategies/search/ranker_kinds.hpp"

namespace simsync {

/// `examples`: what the ranker has learned, one or more.
Source source_of(RankerKind kind, std::shared_ptr<const Ranker> ranker, const std::vector<Example>& examples);

/// A ranker whose score is a mean of what make_ranker(kind) learns from `examples` and of what is known before them,
/// each in deviations of its scores over the examples. The former counts by how many examples there are (with fewer
/// than two not at all), so that what was known before counts less with each, whether it helps or misleads.
/// Known before is the order of simulated steps; with a source the mean of that and of the source's, each in deviations
/// over the source's trials. A kind that sees no simulated step has the source alone; without one, it has the examples
/// alone, and needs two of them. Deterministic.
/// @throws CapabilityError as make_ranker() does.
std::shared_ptr<const Ranker> learned_ranker(RankerKind kind, const std::vector<Example>& examples,
                                             const std::optional<Source>& source = std::nullopt);

}  // namespace simsync
