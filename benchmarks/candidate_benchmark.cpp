// What a search pays for a candidate once files are read, on 16 nodes of four GPUs.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "base/random.hpp"
#include "benchmarks/problems.hpp"
#include "sim/engine/evaluators.hpp"

namespace simsync {
namespace {

/// Plan and replay of a builder's strategy on one core, as an Evaluator does them.
void BM_Replayed(benchmark::State& state, const char* model, const char* strategy, const char* solver) {
  const Problem problem =
      prepare(bench::request(model, "g4dn.12xlarge", strategy, 64, {{"memory", "ignore"}, {"solver", solver}}));
  const auto evaluator = replaying_evaluator(problem, problem.options.solver);
  for (auto _ : state) benchmark::DoNotOptimize(evaluator->evaluate(problem.strategy).step);
  state.counters["candidates/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

/// The same where each candidate differs from the one before in one variable, as in a search: its messages take half
/// the bytes, or all again. A collective whose bytes were met before is not computed again.
void BM_OneVariableChanged(benchmark::State& state, const char* model, const char* strategy) {
  const Problem problem = prepare(bench::request(model, "g4dn.12xlarge", strategy, 64, {{"memory", "ignore"}}));
  const auto evaluator = replaying_evaluator(problem);
  Strategy changed = problem.strategy;
  Random random(1);
  for (auto _ : state) {
    Compressor& compressor = changed.variables[random.below(changed.variables.size())].compressor;
    compressor = compressor == Compressor::None ? Compressor::Fp16 : Compressor::None;
    benchmark::DoNotOptimize(evaluator->evaluate(changed).step);
  }
  state.counters["candidates/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void register_all() {
  for (const char* model : {"resnet50", "bert-large"})
    for (const char* strategy : {"ddp", "horovod", "ps", "byteps", "partitioned-ps"})
      benchmark::RegisterBenchmark(fmt::format("BM_OneVariableChanged/{}/{}", model, strategy).c_str(),
                                   [=](benchmark::State& state) { BM_OneVariableChanged(state, model, strategy); })
          ->Unit(benchmark::kMillisecond);
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
