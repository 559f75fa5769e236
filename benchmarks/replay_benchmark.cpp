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
void BM_RingSteps(benchmark::State& state, const char* cluster, const char* solver) {
  replay_again(state, prepare(bench::request("resnet50", cluster, "bsp", state.range(0),
                                             {{"fidelity", "steps"},
                                              {"strategy.fusion", "single"},
                                              {"strategy.algorithm", "ring"},
                                              {"iterations", "1"},
                                              {"solver", solver}})));
}
void ring_sizes(benchmark::internal::Benchmark* ring) {
  ring->ArgName("ranks")->RangeMultiplier(2)->Range(256, 1024)->Unit(benchmark::kMillisecond)->Iterations(1);
}
BENCHMARK_CAPTURE(BM_RingSteps, eight_gpus_per_node, "dgx-1", "simgrid")->Apply(ring_sizes);
BENCHMARK_CAPTURE(BM_RingSteps, one_gpu_per_node, "titanx-40gbe", "simgrid")->Apply(ring_sizes);
BENCHMARK_CAPTURE(BM_RingSteps, native_eight_gpus_per_node, "dgx-1", "native")->Apply(ring_sizes);
BENCHMARK_CAPTURE(BM_RingSteps, native_one_gpu_per_node, "titanx-40gbe", "native")->Apply(ring_sizes);

/// The 54 all-reduces of ResNet-50 in groups of three variables (AutoDist), every message of every ring a flow.
void BM_AllReducesSteps(benchmark::State& state, const char* cluster) {
  replay_again(state, prepare(bench::request("resnet50", cluster, "all-reduce", state.range(0),
                                             {{"fidelity", "steps"},
                                              {"strategy.chunk", "3"},
                                              {"strategy.algorithm", "ring"},
                                              {"iterations", "1"},
                                              {"solver", "native"}})));
}
BENCHMARK_CAPTURE(BM_AllReducesSteps, native_eight_gpus_per_node, "dgx-1")
    ->ArgName("ranks")
    ->Arg(512)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);
BENCHMARK_CAPTURE(BM_AllReducesSteps, native_one_gpu_per_node, "titanx-40gbe")
    ->ArgName("ranks")
    ->Arg(512)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

void BM_Vgg16PartitionedPs(benchmark::State& state) {
  replay_again(state, prepare(bench::request("vgg16", "titanx-40gbe", "partitioned-ps", state.range(0))));
}
BENCHMARK(BM_Vgg16PartitionedPs)->ArgName("workers")->Arg(16)->Arg(64)->Unit(benchmark::kMillisecond);

/// How a replay on the native solver grows with the nodes where every variable is spread over all of them.
void BM_PartitionedPs(benchmark::State& state) {
  replay_again(state, prepare(bench::request("resnet50", "g4dn.12xlarge", "partitioned-ps", state.range(0),
                                             {{"solver", "native"}, {"memory", "ignore"}})));
}
BENCHMARK(BM_PartitionedPs)
    ->ArgName("workers")
    ->RangeMultiplier(2)
    ->Range(64, 512)
    ->Unit(benchmark::kMillisecond)
    ->Iterations(1);

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
