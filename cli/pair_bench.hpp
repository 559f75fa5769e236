// Everything that makes pairs of one model, cluster and number of workers.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/search_question.hpp"
#include "sim/problem/problem.hpp"
#include "strategies/evaluator.hpp"
#include "strategies/search/pairs.hpp"

namespace simsync {

class PairBench {
public:
  /// @throws InputError, and PlanError where nothing fits together.
  PairBench(const Question& question, Inputs& inputs, std::uint64_t seed);
  PairBench(const PairBench&) = delete;
  PairBench& operator=(const PairBench&) = delete;
  ~PairBench() = default;
  [[nodiscard]] std::optional<Trial> pair(int index) const { return pair_at(source_, index); }
  /// With what the estimate says of it; nothing where it cannot run.
  [[nodiscard]] std::optional<Candidate> candidate(Strategy strategy, const std::string& origin) const {
    return candidate_of(source_, std::move(strategy), origin);
  }
  [[nodiscard]] const Problem& problem() const { return problem_; }
  [[nodiscard]] const SearchTarget& target() const { return sampler_.target(); }

private:
  Question question_;
  Problem problem_;
  StrategySampler sampler_;
  std::unique_ptr<Evaluator> estimates_;
  std::unique_ptr<Evaluator> replays_;
  std::vector<std::string> builders_;
  PairSource source_;
};

}  // namespace simsync
