// What real runs of a few strategies teach of the predicted steps of others.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "strategies/search/trial_table.hpp"

namespace simsync {

/// One strategy that was run.
struct MeasuredStep {
  std::vector<double> features;  ///< strategy_features() with the prediction as what was simulated
  double predicted = 0.0;        ///< s
  double measured = 0.0;         ///< s
};

/// What measured steps are of predicted ones: the middle, and the bounds of 90 %.
struct StepFactor {
  double middle = 1.0;
  double low = 1.0;
  double high = 1.0;
};

/// Standard deviations of log(measured / predicted), and a distance.
struct CorrectionKernel {
  double shared = 0.1;      ///< of a constant, which is the same for all strategies
  double particular = 0.1;  ///< of a smooth function of what kind of strategy it is
  double length = 1.0;  ///< how unlike strategies are before one says little of the other's; 1: a share of all bytes
  double noise = 0.02;  ///< of one run
  friend bool operator==(const CorrectionKernel&, const CorrectionKernel&) = default;
};

/// A Gaussian process on log(measured / predicted) (Rasmussen and Williams, Gaussian Processes for Machine Learning,
/// 2006, chapters 2 and 5). For strategies unlike all that were run, the middle is what these have in common, and the
/// interval is wide.
class Correction {
public:
  static constexpr std::size_t kMostSteps = 1000;  // a minute

  /// With the kernel of a grid under which what was measured is most likely. Time grows with the cube of the number of
  /// steps. @throws InputError for fewer than two steps, and for more than kMostSteps.
  static Correction learn(const std::vector<MeasuredStep>& steps);

  [[nodiscard]] StepFactor at(const std::vector<double>& features) const;
  /// log(measured / predicted) of each step once all others have corrected it, in their order.
  [[nodiscard]] std::vector<double> left_out_errors() const;
  /// log(measured / predicted), uncorrected.
  [[nodiscard]] const std::vector<double>& errors() const { return errors_; }
  [[nodiscard]] const CorrectionKernel& kernel() const { return kernel_; }

private:
  friend struct SavedCorrection;
  struct Factored;
  Correction(std::vector<std::vector<double>> places, std::vector<double> errors, const CorrectionKernel& kernel);

  std::vector<std::vector<double>> places_;  ///< of each step, as place_of() has it
  std::vector<double> errors_;
  CorrectionKernel kernel_;
  std::shared_ptr<const Factored> factored_;  ///< the covariances of all steps
};

/// What the predictions rest on that a correction was learned for: of all trials together.
struct CorrectionBasis {
  std::set<std::string> settings;      ///< TrialBasis::settings
  std::set<std::string> calibrations;  ///< TrialBasis::calibration
  std::set<std::string> runners;       ///< TrialBasis::runner
  friend bool operator==(const CorrectionBasis&, const CorrectionBasis&) = default;
};

/// As a file, with what it was learned from.
struct SavedCorrection {
  std::set<std::string> models;
  std::set<std::string> clusters;
  std::set<int> workers;                 ///< empty: not known, of an older file
  std::set<std::int64_t> batches;        ///< samples of a worker in a step; empty: not known
  std::optional<CorrectionBasis> basis;  ///< none: not known of every trial
  Correction correction;

  /// JSON that ends with a line end.
  [[nodiscard]] std::string to_json() const;
  /// `file`: its name in messages. @throws InputError for what is no such file, and for one of other features.
  static SavedCorrection read(const std::string& text, const std::string& file);
};

/// From the measured trials of a table. Rows without a step are left out. @throws InputError for trials that are not
/// measured: simulated steps teach nothing of real ones; and for one without a predicted step.
SavedCorrection learn_correction(const std::vector<TrialRow>& trials);

}  // namespace simsync
