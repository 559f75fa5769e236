// From probes to a Calibration.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "platforms/calibration.hpp"
#include "sim/problem/probe.hpp"

namespace simsync {

/// The share of compute's speed that a collective beside it takes. It is found apart from the others, from overlaps
/// alone.
inline constexpr std::string_view kInterference = "collective.interference";

/// A number of set_parameter that is to be found, between two bounds on a logarithmic axis (kInterference: on a linear
/// one, from 0 on; numbers of threads: one after the other).
struct Unknown {
  std::string key;
  Dimension dimension = Dimension::Number;
  double low = 0.0;
  double high = 0.0;
  /// Wanted by the caller: refused when the rows do not depend on it. Else it is then left as the cluster has it.
  bool demanded = false;

  /// The value at a share (0 to 1) of the range.
  [[nodiscard]] double value_at(double share) const {
    return Scale{.dimension = dimension, .logarithmic = true}.at(share, low, high);
  }
};

/// One way to describe a cluster: what is set, and what is to be found.
struct CalibrationModel {
  std::string name;
  std::vector<std::pair<std::string, std::string>> assumed;
  std::vector<Unknown> unknowns;
  /// Costs of a message that the cluster states, found one after the other when no cost per round between nodes is left
  /// beyond them: they may be smaller than stated.
  std::vector<Unknown> stated;
};

struct CalibrateOptions {
  std::vector<std::pair<std::string, std::string>> assumed;  ///< set and not fitted
  std::vector<Unknown> unknowns;                             ///< instead of those that follow from the probes
  std::optional<Calibration> prior;
  /// Standard deviation, on a logarithmic axis, of a number from one cluster to another; added to the prior's own.
  double between_clusters = 0.5;
  std::string date;  ///< YYYY-MM-DD
  std::vector<std::string> sources;
  /// Called before each of `total` fits.
  std::function<void(std::size_t done, std::size_t total, const std::string& what)> progress;
  std::function<void()> evaluated;  ///< called whenever all measurements have been predicted once more
};

struct CalibratedRow {
  Probe probe;
  Seconds predicted;
  [[nodiscard]] double error_pct() const { return 100.0 * (predicted / probe.measured - 1.0); }
};

struct CalibrationResult {
  Calibration calibration;
  std::string model;  ///< name of the description that was chosen
  std::vector<CalibratedRow> rows;
  std::vector<CalibratedRow> left_out;  ///< not fitted: a token bucket passed them above its rate
  std::vector<std::string> notes;       ///< what was left as it was, and why; what to distrust
};

/// What calibrate finds besides a description's parameters.
struct FoundApart {
  std::optional<Unknown> interference;
  std::optional<Unknown> threads;  ///< of the servers
};

/// The descriptions that calibrate chooses from when it is not told what to find: parameters that the probes depend on,
/// overlaps left aside, with one, two or three protocols of collectives (LL and LL128 send flags beside the data,
/// Simple does not), with and without a pass over the payload.
std::vector<CalibrationModel> models_for(const Cluster& cluster, const std::vector<Probe>& probes);
/// The same for what is found apart.
FoundApart apart_for(const Cluster& cluster, const std::vector<Probe>& probes);

/// Robust fit of log(predicted / measured); of the descriptions that the probes identify, the one with the least
/// Bayesian information criterion.
/// @throws InputError when there are fewer probes than parameters, or a parameter is not identified by them, naming it
/// and what it trades off against; PlanError when a probe does not fit the cluster.
CalibrationResult calibrate(const Cluster& cluster, const std::vector<Probe>& probes, const CalibrateOptions& options);

/// Replays a probe's plan once from a cold start, on a cluster that grown_for has made.
Seconds predicted_time(const Probe& probe, const Cluster& cluster);
/// What a calibrated cluster predicts for each probe.
std::vector<CalibratedRow> predict_rows(const Cluster& calibrated, const std::vector<Probe>& probes);
/// Of log(predicted / measured), as percent.
Residuals residuals_of(const std::vector<CalibratedRow>& rows);

}  // namespace simsync
