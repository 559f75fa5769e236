// One description of a cluster fitted to probes. Private to this folder.
#pragma once
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validate/calibrate/calibrate.hpp"
#include "validate/calibrate/known_times.hpp"
#include "validate/calibrate/prior_distance.hpp"
#include "validate/calibrate/robust.hpp"
#include "validate/fit.hpp"

namespace simsync::detail {

/// Why a parameter is not identified.
inline constexpr const char* kHardly = "they hardly depend on it";
/// @throws InputError always.
[[noreturn]] void refuse(const std::string& key, const std::string& why);
/// Adds a parameter that was found apart from the others.
void add_alone(Calibration& calibration, CalibratedParameter parameter);

/// One description fitted to the probes.
class ModelFit {
public:
  ModelFit(const Cluster& cluster, const std::vector<Probe>& probes, const CalibrateOptions& options,
           CalibrationModel model)
      : cluster_(cluster), probes_(probes), options_(options), told_(std::move(model)), model_(told_) {}

  /// `before` are values that a simpler description found, by key; what this one finds is added. False when the probes
  /// do not speak about the description: none takes a protocol of it, or nothing depends on any of its parameters.
  [[nodiscard]] bool run(std::map<std::string, double>& before);
  /// Goes on from what the closed forms led to, by replay. False as in `run`.
  [[nodiscard]] bool refine();
  /// `refine` of all parameters, those that were dropped too, from values by key; without one a parameter starts in the
  /// middle. False as in `run`.
  [[nodiscard]] bool run_from(const std::map<std::string, double>& values);
  /// The same with outliers cut at `cut`, whatever the spread of the others.
  [[nodiscard]] bool run_from(const std::map<std::string, double>& values, double cut);
  /// Where the first of the costs that the cluster states was found in the place of another: the description in which
  /// it is 0, and the next may be found. Which of the two the rows speak for is seen from both.
  [[nodiscard]] std::optional<CalibrationModel> with_next_stated() const;
  /// Sets a whole number that no derivative finds; it is told as found.
  void choose(const std::string& key, int value) { chosen_.emplace_back(key, std::to_string(value)); }
  void note(std::string text) { notes_.push_back(std::move(text)); }
  /// Bayesian information criterion: the smaller, the better described for its number of parameters.
  [[nodiscard]] double criterion() const { return criterion_; }
  /// The same where it stands now, with outliers cut at `cut`.
  [[nodiscard]] double criterion(double cut) const;
  [[nodiscard]] double cut() const { return cut_; }
  [[nodiscard]] const std::string& name() const { return model_.name; }
  [[nodiscard]] const std::vector<Unknown>& unknowns() const { return model_.unknowns; }
  /// What it found, by key.
  [[nodiscard]] std::map<std::string, double> values() const;
  /// The cluster as it describes it.
  [[nodiscard]] Cluster fitted() const { return cluster_at(fit_.shares); }
  /// Parameters and notes; what is the same for all descriptions is left out.
  [[nodiscard]] CalibrationResult result() const;
  [[nodiscard]] bool identified() const;
  void expect_identified() const;

private:
  [[nodiscard]] std::string text_at(std::size_t p, double share) const {
    const Unknown& unknown = model_.unknowns[p];
    return Scale{.dimension = unknown.dimension, .logarithmic = true}.text(unknown.value_at(share));
  }
  [[nodiscard]] std::vector<double> start_from(const std::map<std::string, double>& before, double steps) const;
  [[nodiscard]] double width(std::size_t p) const { return std::log(model_.unknowns[p].high / model_.unknowns[p].low); }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> settings_at(const std::vector<double>& shares) const;
  [[nodiscard]] Cluster cluster_at(const std::vector<double>& shares) const;
  [[nodiscard]] std::vector<double> residuals(const std::vector<double>& shares) const;
  void start_again(const std::map<std::string, double>& values, double cut);
  /// From where it stands. False as in `run`.
  bool fit_on();
  void fit_from(std::vector<std::vector<double>> starts, bool search);
  /// Whether no residual takes a replay.
  [[nodiscard]] bool closed() const;
  /// `held_` as FitOptions has it.
  [[nodiscard]] std::vector<std::optional<double>> held_shares() const;
  enum class Drop { Nothing, Parameter, Description };
  Drop drop_without_effect();
  void find_stated();
  [[nodiscard]] bool is_nothing(std::size_t p) const;
  [[nodiscard]] double error() const;
  [[nodiscard]] double deviation(std::size_t p) const {
    return error() * width(p) * std::sqrt(std::max(0.0, fit_.covariance[p][p]));
  }

  const Cluster& cluster_;
  const std::vector<Probe>& probes_;
  const CalibrateOptions& options_;
  CalibrationModel told_;
  CalibrationModel model_;  ///< without what was dropped
  std::vector<std::pair<std::string, std::string>> chosen_;
  std::vector<std::string> notes_;
  FitResult fit_;
  std::map<std::string, double> held_;  ///< by key, what a search leaves as simpler descriptions found it
  double criterion_ = 0.0;
  mutable KnownTimes known_times_;
  bool by_replay_ = false;  ///< collectives are replayed, else taken in closed form
  PriorDistance prior_;
  double cut_ = kFirstCut;  ///< residuals beyond count linearly; to refine, beyond the spread of most
};

}  // namespace simsync::detail
