#include <benchmark/benchmark.h>

#include "benchmarks/problems.hpp"
#include "models/reader.hpp"
#include "sim/plan/compile.hpp"

namespace simsync {
namespace {

/// Strategy to plan, which a search pays for every candidate.
void BM_Compile(benchmark::State& state, const char* strategy) {
  const Problem problem = prepare(bench::request("resnet50", "g4dn.12xlarge", strategy, state.range(0)));
  std::size_t ops = 0;
  for (auto _ : state) {
    Plan plan = compile(problem.model, problem.profile, problem.cluster, problem.strategy);
    ops += plan.ops.size();
    benchmark::DoNotOptimize(plan);
  }
  state.counters["ops/s"] = benchmark::Counter(static_cast<double>(ops), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(BM_Compile, ddp, "ddp")->ArgName("workers")->Arg(64)->Arg(1024)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Compile, ps_load_balancing, "ps-load-balancing")
    ->ArgName("workers")
    ->Arg(64)
    ->Unit(benchmark::kMicrosecond);

void BM_LoadModel(benchmark::State& state, const char* model) {
  for (auto _ : state) benchmark::DoNotOptimize(find_model(model));
}
BENCHMARK_CAPTURE(BM_LoadModel, resnet50, "resnet50")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_LoadModel, gpt2_xl, "gpt2-xl")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace simsync
