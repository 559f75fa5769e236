// What a search pays for a candidate once files are read, on 16 nodes of four GPUs.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "benchmarks/problems.hpp"
#include "sim/engine/evaluators.hpp"

namespace simsync {
namespace {

/// Plan and replay of a builder's strategy on one core, as an Evaluator does them.
void BM_Replayed(benchmark::State& state, const char* model, const char* strategy, const char* solver) {
  const Problem problem =
      prepare(bench::request(model, "g4dn.12xlarge", strategy, 64, {{"memory", "ignore"}, {"solver", solver}}));
  const auto evaluator = replaying_evaluator(problem);
  for (auto _ : state) benchmark::DoNotOptimize(evaluator->evaluate(problem.strategy).step);
  state.counters["candidates/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void register_all() {
  for (const char* solver : {"native", "simgrid"})
    for (const char* model : {"resnet50", "bert-large"})
      for (const char* strategy :
           {"ddp", "horovod", "ps", "byteps", "bytescheduler", "tictac", "partitioned-ps", "p3", "fsdp"})
        benchmark::RegisterBenchmark(fmt::format("BM_Replayed/{}/{}/{}", solver, model, strategy).c_str(),
                                     [=](benchmark::State& state) { BM_Replayed(state, model, strategy, solver); })
            ->Unit(benchmark::kMillisecond);
}

const int kRegistered = (register_all(), 0);

}  // namespace
}  // namespace simsync
