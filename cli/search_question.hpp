// What `search` and `dataset` ask: one problem, and the space of strategies for it.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/problem/problem.hpp"
#include "strategies/search/sampler.hpp"

namespace simsync {

/// Of settings that restrict the space: `space.DIMENSION`.
inline constexpr const char* kSpacePrefix = "space.";

/// What is asked, with the dimensions of the space apart. `--set strategy.*` says what all strategies have: micro-steps
/// and recomputation.
struct Question {
  PredictRequest request;
  std::map<std::string, std::string> space;
};

/// `request` with these settings besides its own. @throws InputError for settings of strategies that a search chooses
/// itself.
Question search_question(PredictRequest request, const std::vector<std::pair<std::string, std::string>>& settings);
/// The builder's strategy for the problem, with steps like those of all; nothing where it does not apply. `habits` are
/// options for builders that have them.
std::optional<Strategy> built_for(const std::string& builder, const Question& question, const Problem& problem,
                                  const std::map<std::string, std::string>& habits = {});
/// The problem as a search and its features see it. `problem` must outlive it.
SearchTarget target_of(const Problem& problem, bool own_runner = false);
/// Whether what the strategy keeps fits into the memory of the devices, where that is asked.
bool fits_into_memory(const Problem& problem, const Strategy& strategy);

}  // namespace simsync
