#include "sim/engine/predict.hpp"

#include "base/parse_units.hpp"
#include "models/time_error.hpp"
#include "sim/engine/interval.hpp"
#include "sim/problem/row_key.hpp"
#include "sim/problem/single_devices.hpp"

namespace simsync {

PredictedRow row_of(const PredictRequest& request, const Problem& problem, const Prediction& prediction) {
  PredictedRow row;
  row.model = problem.model.name();
  row.cluster = problem.cluster.name;
  row.strategy = request.strategy;
  row.mode = mode_of(problem.strategy);
  row.workers = request.workers;
  row.batches = problem.strategy.graph.batches();
  row.context = problem.strategy.graph.parallel.context;
  row.backups = problem.strategy.graph.backups;
  row.batch = problem.samples();
  row.step_time = prediction.step;
  row.compute = prediction.compute;
  // Both are sums of many terms in different orders: what is below their last digits is nothing.
  const Seconds exposed = prediction.step - prediction.compute;
  row.exposed_comm = exposed > 1e-9 * prediction.step ? exposed : Seconds{0.0};
  row.scaling_efficiency = scaling_efficiency(problem, row.throughput());
  const StepInterval interval = step_interval(request, problem, prediction);
  row.step_low = interval.low;
  row.step_high = interval.high;
  row.fidelity = prediction.fidelity;
  row.profile = name_of(problem.profile.source);
  row.provenance = problem.profile.provenance;
  row.time_error = time_error(problem.profile);
  if (problem.errors.compute) row.time_error = spread_of(*problem.errors.compute);
  row.settings = settings_text(request.settings);
  row.dropped_pct = 100.0 * prediction.dropped;
  row.memory = problem.memory;
  row.notes = problem.notes;
  return row;
}

PredictedRow predict(const PredictRequest& request) {
  Inputs inputs;
  return predict(request, inputs);
}

PredictedRow predict(const PredictRequest& request, Inputs& inputs) {
  const Problem problem = prepare(request, inputs);
  return row_of(request, problem, replay(problem.plan, problem.cluster, problem.options));
}

const std::vector<std::string>& row_header() {
  static const std::vector<std::string> kHeader =
      header_with({"step_time_low_s", "step_time_high_s", "fidelity", "profile", "settings", "dropped_pct",
                   "memory_bytes", "device_memory_bytes"});
  return kHeader;
}

std::vector<std::string> row_cells(const PredictedRow& row) {
  return {row.model,
          row.cluster,
          row.strategy,
          row.mode,
          std::to_string(row.workers),
          std::to_string(row.batch),
          format_number(row.step_time.value()),
          format_number(row.throughput()),
          format_number(row.compute.value()),
          format_number(row.exposed_comm.value()),
          format_number(row.scaling_efficiency),
          format_number(row.step_low.value()),
          format_number(row.step_high.value()),
          name_of(row.fidelity),
          row.profile,
          row.settings,
          format_number(row.dropped_pct),
          std::to_string(row.memory.need.total().count),
          row.memory.device_bytes.count > 0 ? std::to_string(row.memory.device_bytes.count) : std::string{}};
}

}  // namespace simsync
