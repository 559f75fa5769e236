// What a search pays for a candidate once files are read, on 16 nodes of four GPUs.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "benchmarks/problems.hpp"

namespace simsync {
namespace {

/// Strategy, plan and replay on one core.
void BM_Replayed(benchmark::State& state, const char* model, const char* strategy, const char* solver) {
  const auto question =
      bench::request(model, "g4dn.12xlarge", strategy, 64, {{"memory", "ignore"}, {"solver", solver}});
  Inputs inputs;
  std::int64_t flows = 0;
  for (auto _ : state) {
    const Problem problem = prepare(question, inputs);
    const Prediction prediction = replay(problem.plan, problem.cluster, problem.options);
    flows += prediction.flows;
    benchmark::DoNotOptimize(prediction.step);
  }
  state.counters["candidates/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
  state.counters["flows"] = benchmark::Counter(static_cast<double>(flows), benchmark::Counter::kAvgIterations);
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
