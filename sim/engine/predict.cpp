#include "sim/engine/predict.hpp"

#include <fmt/format.h>

#include <map>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "sim/engine/request_cluster.hpp"
#include "sim/engine/request_settings.hpp"
#include "sim/plan/compile.hpp"
#include "strategies/reader.hpp"

namespace simsync {

std::string settings_text(const std::vector<std::pair<std::string, std::string>>& settings) {
  std::map<std::string, std::string> last;
  for (const auto& [key, value] : settings) last[key] = value;
  std::string out;
  for (const auto& [key, value] : last) out += fmt::format("{}{}={}", out.empty() ? "" : ";", key, value);
  return out;
}

Problem prepare(const PredictRequest& request) {
  Inputs inputs;
  return prepare(request, inputs);
}

Problem prepare(const PredictRequest& request, Inputs& inputs) {
  constexpr int kMostWorkers = 1'000'000;
  if (request.workers < 1 || request.workers > kMostWorkers)
    throw InputError(fmt::format("--workers {}: expected a number from 1 to {}", request.workers, kMostWorkers));
  if (request.batch && (*request.batch < 1 || *request.batch > 100'000'000))
    throw InputError(fmt::format("--batch {}: expected a number from 1 to 100000000", *request.batch));
  const Model& model = inputs.model(request.model);
  const Cluster& described = inputs.cluster(request.cluster);
  const detail::Settings settings = detail::read_settings(request, described);
  std::vector<std::string> notes;
  Cluster cluster = detail::cluster_of(request, described, settings, notes);
  const std::int64_t batch = request.batch.value_or(model.default_batch());
  Strategy strategy = find_strategy(request.strategy, {.model = model,
                                                       .cluster = cluster,
                                                       .workers = request.workers,
                                                       .batch = batch,
                                                       .options = settings.strategy,
                                                       .seed = settings.seed});
  const Place first = cluster.workers(request.workers).front();
  const std::string device = cluster.group_of(first.node).device;
  const std::string precision = settings.precision.value_or(cluster.precision);
  Profile profile =
      inputs.profile(request.model, {.device = device,
                                     .precision = precision,
                                     .batch = batch,
                                     .roofline = detail::roofline_of(cluster.devices.at(device), precision),
                                     .step_time = settings.step_time,
                                     .profile = settings.profile});
  detail::relate_devices(cluster, device, model, precision, batch);
  Plan plan = compile(model, profile, cluster, strategy);
  notes.insert(notes.end(), plan.notes.begin(), plan.notes.end());
  return {.model = model,
          .cluster = std::move(cluster),
          .strategy = std::move(strategy),
          .profile = std::move(profile),
          .plan = std::move(plan),
          .options = settings.options,
          .notes = std::move(notes)};
}

PredictedRow row_of(const PredictRequest& request, const Problem& problem, const Prediction& prediction) {
  PredictedRow row;
  row.model = problem.model.name();
  row.cluster = problem.cluster.name;
  row.strategy = request.strategy;
  row.mode = "sync";
  row.workers = request.workers;
  row.batch = problem.profile.batch;
  row.step_time = prediction.step;
  row.compute = prediction.compute;
  // Both are sums of many terms in different orders: what is below their last digits is nothing.
  const Seconds exposed = prediction.step - prediction.compute;
  row.exposed_comm = exposed > 1e-9 * prediction.step ? exposed : Seconds{0.0};
  row.scaling_efficiency = problem.profile.step() / prediction.step;
  row.step_low = prediction.step;
  row.step_high = prediction.step;
  row.fidelity = prediction.fidelity;
  row.profile = name_of(problem.profile.source);
  row.provenance = problem.profile.provenance;
  row.settings = settings_text(request.settings);
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
  static const std::vector<std::string> kHeader{"model",
                                                "cluster",
                                                "strategy",
                                                "mode",
                                                "workers",
                                                "batch_per_worker",
                                                "step_time_s",
                                                "throughput_samples_per_s",
                                                "compute_s",
                                                "exposed_comm_s",
                                                "scaling_efficiency",
                                                "step_time_low_s",
                                                "step_time_high_s",
                                                "fidelity",
                                                "profile",
                                                "settings"};
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
          row.settings};
}

std::vector<std::string> row_key(const PredictRequest& request, Inputs& inputs) {
  const Model& model = inputs.model(request.model);
  return {model.name(), inputs.cluster(request.cluster).name, request.strategy, std::to_string(request.workers),
          std::to_string(request.batch.value_or(model.default_batch()))};
}

const std::vector<std::string>& key_columns() {
  static const std::vector<std::string> kColumns{"model", "cluster", "strategy", "workers", "batch_per_worker"};
  return kColumns;
}

}  // namespace simsync
