// From a question, as a user asks it, to a row of the result table.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/spread.hpp"
#include "sim/engine/engine.hpp"
#include "sim/problem/problem.hpp"

namespace simsync {

/// One answer: a row of `predict` and `sweep`.
struct PredictedRow {
  std::string model;
  std::string cluster;
  std::string strategy;
  std::string mode;  ///< mode_of(Strategy)
  int workers = 1;
  int backups = 0;                  ///< of the workers: a step goes on without as many gradients
  int batches = 1;                  ///< of a step: as many as workers, unless several compute one together
  int context = 1;                  ///< replicas of the model that compute one
  std::int64_t batch = 1;           ///< per replica
  Seconds step_time;                ///< steady state
  Seconds compute;                  ///< slowest needed worker's forward + backward + update without any communication
  Seconds exposed_comm;             ///< step_time - compute
  double scaling_efficiency = 1.0;  ///< throughput() over that of so many single devices
  Seconds step_low;                 ///< 90 % of such steps are expected between the two (step_interval)
  Seconds step_high;
  Fidelity fidelity = Fidelity::Auto;  ///< the one that was used, never Auto
  std::string profile;                 ///< name_of(ProfileSource)
  std::string provenance;              ///< where the profile's numbers come from
  Spread time_error;                   ///< of the compute of a step; not a column
  std::string settings;                ///< settings_text() of the request
  double dropped_pct = 0.0;            ///< of the gradients, because they came too late
  RankMemory memory;                   ///< what a worker needs, and what the smallest of them has
  std::vector<std::string> notes;      ///< RankMemory::misfit and Problem::notes; not a column
  [[nodiscard]] double throughput() const {
    return static_cast<double>(batch) * (batches - backups) / step_time.value();
  }
};

/// The row of a replayed problem; it replays more, for the interval.
PredictedRow row_of(const PredictRequest& request, const Problem& problem, const Prediction& prediction);
/// prepare, replay and row_of in one. @throws InputError, PlanError.
PredictedRow predict(const PredictRequest& request);
PredictedRow predict(const PredictRequest& request, Inputs& inputs);

/// Header and cells of a row, in the order of the contract (README: columns).
const std::vector<std::string>& row_header();
std::vector<std::string> row_cells(const PredictedRow& row);

}  // namespace simsync
