// What a search pays for the estimate of a strategy: of each builder's, on 16 nodes of four GPUs.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "benchmarks/problems.hpp"
#include "sim/engine/evaluators.hpp"

namespace simsync {
namespace {

void estimate_again(benchmark::State& state, const char* model, const std::string& strategy) {
  const Problem problem = prepare(bench::request(model, "g4dn.12xlarge", strategy, 64, {{"memory", "ignore"}}));
  const auto evaluator = estimating_evaluator(problem);
  for (auto _ : state) benchmark::DoNotOptimize(evaluator->evaluate(problem.strategy).step);
  state.counters["candidates/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void register_all() {
  for (const char* model : {"resnet50", "bert-large"})
    for (const char* strategy : {"ps", "partitioned-ps", "all-reduce", "parallax", "ddp", "horovod", "mg-wfbp",
                                 "poseidon", "byteps", "p3", "bytescheduler", "tictac", "fsdp"})
      benchmark::RegisterBenchmark(fmt::format("BM_Estimated/{}/{}", model, strategy).c_str(),
                                   [=](benchmark::State& state) { estimate_again(state, model, strategy); })
          ->Unit(benchmark::kMicrosecond);
}

const int kRegistered = (register_all(), 0);

}  // namespace
}  // namespace simsync
