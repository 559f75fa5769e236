// Fitted numbers of a cluster, with how well they are known.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/scale.hpp"
#include "platforms/cluster.hpp"

namespace simsync {

/// One number of set_parameter, as a fit left it.
struct CalibratedParameter {
  std::string key;  ///< `link.ethernet.per_flow_cap`
  double value = 0.0;
  Scale scale;             ///< unit, and the axis on which `deviation` counts
  double deviation = 0.0;  ///< one standard deviation: a share of the value on a logarithmic axis, else in its unit

  /// The value so far away from the fitted one, on the parameter's axis.
  [[nodiscard]] double moved(double distance) const;
  friend bool operator==(const CalibratedParameter&, const CalibratedParameter&) = default;
};

/// How far the fitted model stays from the rows that it was fitted to: errors of the time, of either sign.
struct Residuals {
  double rms_pct = 0.0;
  double median_pct = 0.0;
  double worst_pct = 0.0;
  friend bool operator==(const Residuals&, const Residuals&) = default;
};

/// Laid over the nominal numbers of a Cluster.
struct Calibration {
  std::string cluster;  ///< name of the cluster that it was fitted for
  std::string date;     ///< YYYY-MM-DD
  std::vector<std::string> sources;
  std::vector<std::string> valid_for;  ///< what its rows were of, for people; empty: whatever runs on the cluster
  std::size_t rows = 0;                ///< measurements that it was fitted to
  Residuals residuals;
  double repeat_pct = 0.0;  ///< how far one run of the same is from another: one standard deviation; 0: not known
  std::vector<std::pair<std::string, std::string>> assumed;  ///< set_parameter's keys and values that were not fitted
  std::vector<CalibratedParameter> parameters;
  std::vector<std::vector<double>> correlation;  ///< symmetric, in the order of `parameters`; 1 on the diagonal
  std::vector<MeasuredRatios> measured;          ///< what the parameters leave of the collectives
  std::string file;                              ///< where it was read from, for messages

  /// Covariance of two parameters, each on its own axis.
  [[nodiscard]] double covariance(std::size_t a, std::size_t b) const {
    return correlation[a][b] * parameters[a].deviation * parameters[b].deviation;
  }
  /// Whether `valid_for` is empty or has the name, as a word of its own.
  [[nodiscard]] bool may_be_for(const std::string& name) const;
  /// Every setting that it stands for: what was assumed, then what was fitted.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> settings() const;
  /// Equal content; `file` does not count.
  friend bool operator==(const Calibration& a, const Calibration& b);
};

/// Whether `text` is a day of the calendar as YYYY-MM-DD.
bool is_date(const std::string& text);
/// Reads a calibration file (format: platforms/README.md). @throws InputError with every finding.
Calibration load_calibration(const std::string& path);
/// The same from text; `file` stands for it in messages.
Calibration parse_calibration(const std::string& text, const std::string& file);
/// Text that parse_calibration reads back to an equal value.
std::string to_yaml(const Calibration& calibration);

/// Lays the calibration over a cluster. Protocols of collectives that only the calibration knows are added.
/// @throws InputError when it names something else that the cluster does not have. A cluster of another name is
/// allowed: numbers of a machine hold for each of its sizes and variants; `is_for` tells.
void apply(Cluster& cluster, const Calibration& calibration);
/// The same for settings() of one, changed or not.
void apply_settings(Cluster& cluster, const std::vector<std::pair<std::string, std::string>>& settings);
bool is_for(const Calibration& calibration, const Cluster& cluster);

}  // namespace simsync
