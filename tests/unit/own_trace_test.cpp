// A trace of one worker, imported and predicted for one worker, gives the trace's own steps.
#include <cmath>
#include <filesystem>

#include "models/reader.hpp"
#include "models/trace/traced_model.hpp"
#include "sim/timeline/trace_of.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab_run.hpp"
#include "tests/support/small_traces.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

/// Writes and reads the files as `simsync import` and `simsync predict` do, and predicts one asynchronous worker with a
/// server behind a network that costs nothing.
Prediction predicted(const Trace& trace, int steps) {
  std::string pattern = (std::filesystem::temp_directory_path() / "simsync-trace-XXXXXX").string();
  REQUIRE(mkdtemp(pattern.data()) != nullptr);
  const TracedFiles files = save_traced_model(
      pattern + "/m.yaml", layers_of(trace),
      {.name = "m", .device = "GPU", .precision = "fp32", .batch = 1, .framework = "lab", .source = "made up"});
  const Model model = load_model(files.model);
  ProfileRequest request;
  request.device = "GPU";
  request.profile = files.profile;
  const Profile profile = make_profile(model, request);
  std::filesystem::remove_all(pattern);
  CHECK(profile.source == ProfileSource::Measured);

  Strategy strategy = on_server(model, 1, {1, -1});
  strategy.graph.pull_at_step_start = true;
  for (VariableStrategy& entry : strategy.variables)
    std::get<PsSynchronizer>(entry.shards.front().synchronizer).sync = false;
  const Cluster cluster = lab_cluster(1, 1, {.nic = kNothing}, 1);
  return replay(compile(model, profile, cluster, strategy), cluster, {.steps_per_worker = steps});
}

/// Steps of milliseconds whose compute is 10.5 ms times each factor.
Trace trace_with(const std::vector<double>& factors) {
  Trace trace;
  for (const double factor : factors)
    trace.steps.push_back(two_layer_step(static_cast<int>(trace.steps.size()) + 1, 1e-3 * factor));
  return trace;
}

}  // namespace

TEST_CASE("one worker reproduces the compute of its own trace", "[trace]") {
  CHECK_THAT(predicted(trace_with({1.0}), 50).step.value(), WithinRel(10.5e-3, 1e-6));
  CHECK_THAT(predicted(trace_with({1.0, 1.0, 1.0}), 50).step.value(), WithinRel(10.5e-3, 1e-6));
}

TEST_CASE("one worker has its trace's steps, each as often as the others", "[trace]") {
  const std::vector<double> factors{0.8, 1.0, 1.5};
  const Prediction run = predicted(trace_with(factors), 240);
  CHECK_THAT(run.step.value(), WithinRel(1.1 * 10.5e-3, 0.01));
  std::vector<int> seen(factors.size(), 0);
  for (const Seconds step : run.steps)
    for (std::size_t i = 0; i < factors.size(); ++i)
      if (std::abs(step.value() / (factors[i] * 10.5e-3) - 1.0) < 1e-6) ++seen[i];
  for (const int times : seen) CHECK(std::abs(times - 80) <= 2);
}

TEST_CASE("a worker that was replayed, traced and imported has the model's layers and bytes", "[trace]") {
  const LabModel lab{{.bytes = 1e6, .forward = 1e-3, .backward = 2e-3},
                     {.bytes = 4e5, .forward = 3e-3, .backward = 4e-3},
                     {.bytes = 8.0, .forward = 5e-3, .backward = 6e-3}};
  Strategy strategy = on_server(lab.model, 2, {2, -1});
  strategy.graph.pull_at_step_start = true;
  const Cluster cluster = lab_cluster(2, 1, {.nic = 1e9}, 1);
  const Plan plan = compile(lab.model, lab.profile, cluster, strategy);
  const Prediction run = replay(plan, cluster, {.record = true});
  const Trace trace = trace_of(plan, run.spans, 1);
  REQUIRE_FALSE(trace.steps.empty());
  CHECK(trace.steps.front().number == 2);  // nothing was received before the first
  const TracedModel traced = layers_of(trace);
  REQUIRE(traced.layers.size() == 3);
  for (std::size_t layer = 0; layer < 3; ++layer) {
    REQUIRE(traced.layers[layer].variables.size() == 1);
    CHECK(traced.layers[layer].variables.front().shape ==
          std::vector<std::int64_t>{lab.model.variable(static_cast<VariableId>(layer)).elements()});
    const LayerTime& time = lab.profile.layers[layer];
    for (const auto& step : traced.steps) {
      // The plan computes the last layer in both passes as one op.
      if (layer < 2) CHECK_THAT(step[layer].forward.value(), WithinRel(time.forward.value(), 1e-6));
      CHECK_THAT((step[layer].forward + step[layer].backward).value(),
                 WithinRel((time.forward + time.backward).value(), 1e-6));
    }
  }
  for (const TraceStep& step : trace.steps) {
    const auto updates = std::count_if(step.ops.begin(), step.ops.end(),
                                       [](const TraceOp& op) { return op.kind == TraceOpKind::Update; });
    CHECK(updates == 3);
  }
}
