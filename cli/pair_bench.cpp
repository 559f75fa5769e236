#include "cli/pair_bench.hpp"

#include "sim/engine/evaluators.hpp"
#include "strategies/builders.hpp"

namespace simsync {

PairBench::PairBench(const Question& question, Inputs& inputs, std::uint64_t seed)
    : question_(question),
      problem_(prepare(question.request, inputs)),
      sampler_(make_space(question.space, problem_.cluster), target_of(problem_)),
      estimates_(estimating_evaluator(problem_)),
      replays_(replaying_evaluator(problem_)),
      builders_(known_builders()),
      source_{.sampler = sampler_,
              .samples = problem_.samples(),
              .estimates = *estimates_,
              .trials = *replays_,
              .builders = static_cast<int>(builders_.size()),
              .builder = [this](int builder) -> std::optional<std::pair<std::string, Strategy>> {
                const std::string& name = builders_[static_cast<std::size_t>(builder)];
                auto strategy = built_for(name, question_, problem_);
                if (!strategy) return std::nullopt;
                return std::pair{name, std::move(*strategy)};
              },
              .fits = [this](const Strategy& strategy) { return fits_into_memory(problem_, strategy); },
              .seed = seed} {}

}  // namespace simsync
