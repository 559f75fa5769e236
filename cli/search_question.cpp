#include "cli/search_question.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "sim/problem/rank_memory.hpp"
#include "strategies/builders.hpp"

namespace simsync {
namespace {

const std::string kStrategyPrefix = "strategy.";

}  // namespace

Question search_question(PredictRequest request, const std::vector<std::pair<std::string, std::string>>& settings) {
  Question out{std::move(request), {}};
  // The question's own strategy says what every candidate has: workers, micro-steps, recomputation.
  out.request.strategy = "ddp";
  for (const auto& [key, value] : settings) {
    if (key.starts_with(kSpacePrefix)) {
      out.space[key.substr(std::string(kSpacePrefix).size())] = value;
    } else {
      out.request.settings.emplace_back(key, value);
    }
  }
  for (const auto& [key, value] : out.request.settings)
    if (key.starts_with(kStrategyPrefix) && key != "strategy.micro_steps" && key != "strategy.recompute")
      throw InputError(fmt::format("--set {}: a search chooses strategies by itself", key),
                       "what all of them have are strategy.micro_steps and strategy.recompute; 'simsync list space' "
                       "shows what can be restricted, with --set space.DIMENSION=VALUES");
  return out;
}

std::optional<Strategy> built_for(const std::string& builder, const Question& question, const Problem& problem,
                                  const std::map<std::string, std::string>& habits) {
  std::map<std::string, std::string> options;
  for (const auto& [key, value] : question.request.settings)
    if (key.starts_with(kStrategyPrefix)) options[key.substr(kStrategyPrefix.size())] = value;
  for (const auto& [option, value] : habits)
    if (has_option(builder, option)) options.emplace(option, value);
  try {
    return build_strategy(builder, {.model = problem.model,
                                    .cluster = problem.cluster,
                                    .workers = question.request.workers,
                                    .batch = problem.samples(),
                                    .options = options});
  } catch (const PlanError&) {
    return std::nullopt;  // as a sweep skips it
  }
}

SearchTarget target_of(const Problem& problem, bool own_runner) {
  const GraphStrategy& graph = problem.strategy.graph;
  return {.model = problem.model,
          .cluster = problem.cluster,
          .workers = graph.workers,
          .micro_steps = graph.micro_steps,
          .recompute = graph.recompute,
          .own_runner = own_runner};
}

bool fits_into_memory(const Problem& problem, const Strategy& strategy) {
  return problem.ignore_memory ||
         rank_memory(problem.model, problem.cluster, strategy, problem.profile, problem.optimizer).fits();
}

}  // namespace simsync
