// From names and numbers, as a user gives them, to a predicted step time.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/profile.hpp"
#include "platforms/cluster.hpp"
#include "sim/engine/engine.hpp"
#include "sim/plan/plan.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

/// One question, as `simsync predict` takes it.
struct PredictRequest {
  std::string model;     ///< name of the zoo or path
  std::string cluster;   ///< preset name or path
  std::string strategy;  ///< builder, preset or path
  int workers = 1;
  std::optional<std::int64_t> batch;  ///< per worker; the model's default when absent
  /// `--set key=value` in the user's order. Keys: `step_time`, `precision`, `profile`, `seed`, `fidelity`,
  /// `iterations`, `placement` (GPUs per node: `2,3,4,4`), `straggler` (one node computes so many times slower),
  /// `strategy.<option>`, and every key of set_parameter (`link.ethernet.per_flow_cap`, ...).
  std::vector<std::pair<std::string, std::string>> settings;
  /// Path of a calibration that is laid over the cluster before the settings; empty: none.
  std::string calibration;
};

/// One answer: a row of `predict` and `sweep`.
struct PredictedRow {
  std::string model;
  std::string cluster;
  std::string strategy;
  std::string mode;  ///< `sync`
  int workers = 1;
  std::int64_t batch = 1;           ///< per worker
  Seconds step_time;                ///< steady state
  Seconds compute;                  ///< slowest worker's forward + backward + update without any communication
  Seconds exposed_comm;             ///< step_time - compute
  double scaling_efficiency = 1.0;  ///< single-device step over step_time
  Seconds step_low;                 ///< equal to step_time without a calibration
  Seconds step_high;
  Fidelity fidelity = Fidelity::Auto;  ///< the one that was used, never Auto
  std::string profile;                 ///< name_of(ProfileSource)
  std::string provenance;              ///< where the profile's numbers come from
  [[nodiscard]] double throughput() const { return static_cast<double>(batch) * workers / step_time.value(); }
};

/// Everything that a request names, read and decided.
struct Problem {
  Model model;
  Cluster cluster;
  Strategy strategy;
  Profile profile;
  Plan plan;
  ReplayOptions options;
};

/// Reads the files, builds the strategy and compiles the plan. @throws InputError, PlanError.
Problem prepare(const PredictRequest& request);
/// The row of a replayed problem; with a calibration it replays more, for the interval.
PredictedRow row_of(const PredictRequest& request, const Problem& problem, const Prediction& prediction);
/// prepare, replay and row_of in one. @throws InputError, PlanError.
PredictedRow predict(const PredictRequest& request);

/// Header and cells of a row, in the order of the contract (README: columns).
const std::vector<std::string>& row_header();
std::vector<std::string> row_cells(const PredictedRow& row);

}  // namespace simsync
