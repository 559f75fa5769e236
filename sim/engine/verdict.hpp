// Sentences about a prediction: what limits it, what would help, what it rests on, why another one is faster.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/engine/explain.hpp"
#include "sim/engine/step_parts.hpp"

namespace simsync {

/// What limits the step, by how much, what would help most, and which nodes the others wait for. One or two sentences
/// in lines of at most `width` characters, the last one ended. `answers` are those of what_if.
std::string verdict(const Problem& problem, const Explanation& explanation, const std::vector<StepPart>& parts,
                    const std::vector<WhatIf>& answers, std::size_t width = 80);

/// One of two predictions that are compared.
struct ComparedSide {
  std::string name;  ///< what tells it from the other: `ddp`, `32 workers`
  const Problem& problem;
  const Prediction& prediction;
  const Explanation& explanation;
  const std::vector<StepPart>& parts;  ///< empty where workers are asynchronous
};

/// What leaves or enters the busiest NIC of the nodes in a step.
struct NicLoad {
  std::string node;  ///< `node0`
  double bytes = 0.0;
  bool alone = false;        ///< the others carry less than two thirds of it on average
  BytesPerSecond bandwidth;  ///< of all its ports, nominal
};
std::optional<NicLoad> busiest_nic(const Problem& problem, const Explanation& explanation);

/// Which of two is faster, how much, and what makes the difference. One line without an end.
std::string comparison_verdict(const ComparedSide& a, const ComparedSide& b);

/// On what the numbers of a prediction rest, in a few words: `estimated layer times; calibrated network`.
std::string rests_on(const Problem& problem, const PredictRequest& request);

}  // namespace simsync
