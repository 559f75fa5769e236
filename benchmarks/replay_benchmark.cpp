#include <benchmark/benchmark.h>

#include "benchmarks/problems.hpp"

namespace simsync {
namespace {

/// Replays of a compiled plan; the counter is simulated flows per second.
void replay_again(benchmark::State& state, const Problem& problem) {
  std::int64_t flows = 0;
  for (auto _ : state) {
    const Prediction prediction = replay(problem.plan, problem.cluster, problem.options);
    flows += prediction.flows;
    benchmark::DoNotOptimize(prediction.step);
  }
  state.counters["flows/s"] = benchmark::Counter(static_cast<double>(flows), benchmark::Counter::kIsRate);
}

/// One ResNet-50 data-parallel step with DDP buckets on nodes of eight GPUs; one node is a straggler.
void BM_ResNet50Ddp(benchmark::State& state, const char* fidelity) {
  replay_again(state, prepare(bench::request("resnet50", "dgx-1", "ddp", state.range(0),
                                             {{"fidelity", fidelity}, {"straggler", "1.2"}})));
}
BENCHMARK_CAPTURE(BM_ResNet50Ddp, auto, "auto") -> ArgName("ranks") -> RangeMultiplier(8) -> Range(8, 16384)
    -> Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_ResNet50Ddp, fluid, "fluid")
    ->ArgName("ranks")
    ->RangeMultiplier(4)
    ->Range(8, 512)
    ->Unit(benchmark::kMillisecond);

/// One ring all-reduce of ResNet-50's gradients, every message a flow: 2 n (n - 1) of them an iteration.
void BM_RingSteps(benchmark::State& state, const char* cluster) {
  replay_again(state, prepare(bench::request("resnet50", cluster, "bsp", state.range(0),
                                             {{"fidelity", "steps"},
                                              {"strategy.fusion", "single"},
                                              {"strategy.algorithm", "ring"},
                                              {"iterations", "1"}})));
}
void ring_sizes(benchmark::internal::Benchmark* ring) {
  ring->ArgName("ranks")->RangeMultiplier(2)->Range(256, 1024)->Unit(benchmark::kMillisecond)->Iterations(1);
}
BENCHMARK_CAPTURE(BM_RingSteps, eight_gpus_per_node, "dgx-1")->Apply(ring_sizes);
BENCHMARK_CAPTURE(BM_RingSteps, one_gpu_per_node, "titanx-40gbe")->Apply(ring_sizes);

void BM_Vgg16PartitionedPs(benchmark::State& state) {
  replay_again(state, prepare(bench::request("vgg16", "titanx-40gbe", "partitioned-ps", state.range(0))));
}
BENCHMARK(BM_Vgg16PartitionedPs)->ArgName("workers")->Arg(16)->Arg(64)->Unit(benchmark::kMillisecond);

/// What a sweep or a search pays per candidate once files are read: strategy, plan and replay.
void BM_Candidates(benchmark::State& state, const char* strategy) {
  const auto question = bench::request("resnet50", "g4dn.12xlarge", strategy, 64);
  Inputs inputs;
  benchmark::DoNotOptimize(predict(question, inputs));
  for (auto _ : state) benchmark::DoNotOptimize(predict(question, inputs));
  state.counters["candidates/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK_CAPTURE(BM_Candidates, ddp, "ddp")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Candidates, all_reduce, "all-reduce")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Candidates, partitioned_ps, "partitioned-ps")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace simsync
