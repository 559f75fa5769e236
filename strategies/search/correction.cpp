#include "strategies/search/correction.hpp"

#include <fmt/format.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "strategies/search/features.hpp"
#include "strategies/search/vectors.hpp"

namespace simsync {
namespace {

using detail::as_vector;
using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kNormal90 = 1.6449;  // 90 % of a normal distribution are within so many deviations

/// Features that say what kind of strategy it is: shares of the bytes, and flags. Each is between 0 and 1.
const std::vector<std::string>& compared_features() {
  static const std::vector<std::string> kNames{
      "served_share", "reduced_share",    "factors_share",    "sharded_share",       "encoded_share",
      "cut_share",    "replicated_share", "read_at_start",    "wait_free",           "priority",
      "sharded",      "update_at_worker", "aggregate_on_gpu", "largest_server_share"};
  return kNames;
}

/// Where a strategy is among others: what kind it is, and the share of its step that is not compute, which is all that
/// habits of a framework can make longer.
std::vector<double> place_of(const std::vector<double>& features) {
  const std::vector<std::string>& names = strategy_schema().names;
  SIMSYNC_ASSERT(features.size() == names.size());
  const auto value = [&](const std::string& name) {
    return features[static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin())];
  };
  std::vector<double> out;
  for (const std::string& name : compared_features()) out.push_back(value(name));
  out.push_back(1.0 - std::exp(-std::max(0.0, value("log_simulated"))));
  return out;
}

double covariance(const CorrectionKernel& kernel, const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  return kernel.shared * kernel.shared +
         kernel.particular * kernel.particular * std::exp(-0.5 * squares / (kernel.length * kernel.length));
}

/// Of all steps, with their noise.
MatrixXd covariances(const CorrectionKernel& kernel, const std::vector<std::vector<double>>& places) {
  const auto size = static_cast<Index>(places.size());
  MatrixXd out(size, size);
  for (Index i = 0; i < size; ++i)
    for (Index j = 0; j <= i; ++j)
      out(i, j) = out(j, i) =
          covariance(kernel, places[static_cast<std::size_t>(i)], places[static_cast<std::size_t>(j)]);
  out.diagonal().array() += kernel.noise * kernel.noise;
  return out;
}

/// But for a constant.
double log_likelihood(const CorrectionKernel& kernel, const std::vector<std::vector<double>>& places,
                      const std::vector<double>& errors) {
  const Eigen::LLT<MatrixXd> factored(covariances(kernel, places));
  const MatrixXd lower = factored.matrixL();
  return -0.5 * as_vector(errors).dot(factored.solve(as_vector(errors))) - lower.diagonal().array().log().sum();
}

[[noreturn]] void refuse(const std::string& file, const std::string& message) {
  throw InputError(Diagnostic{.origin = {file},
                              .message = message,
                              .key = {},
                              .source_line = {},
                              .note = {},
                              .help = "corrections are written by 'simsync calibrate --from TRIALS --out FILE'"});
}

constexpr const char* kSchema = "simsync/correction/v1";

}  // namespace

struct Correction::Factored {
  Eigen::LLT<MatrixXd> covariances;
  VectorXd weights;  ///< of each step in what is expected of another
};

Correction::Correction(std::vector<std::vector<double>> places, std::vector<double> errors,
                       const CorrectionKernel& kernel)
    : places_(std::move(places)), errors_(std::move(errors)), kernel_(kernel) {
  Eigen::LLT<MatrixXd> factored(covariances(kernel_, places_));
  VectorXd weights = factored.solve(as_vector(errors_));
  factored_ = std::make_shared<const Factored>(Factored{std::move(factored), std::move(weights)});
}

Correction Correction::learn(const std::vector<MeasuredStep>& steps) {
  if (steps.size() < 2)
    throw InputError(
        fmt::format("a correction is learned from two measured strategies at least, not from {}", steps.size()));
  if (steps.size() > kMostSteps)
    throw InputError(
        fmt::format("{} measured strategies: a correction is learned from at most {}", steps.size(), kMostSteps),
        "take some of them: --rows column=value,value");
  std::vector<std::vector<double>> places;
  std::vector<double> errors;
  for (const MeasuredStep& step : steps) {
    SIMSYNC_ASSERT(step.predicted > 0.0 && step.measured > 0.0);
    places.push_back(place_of(step.features));
    errors.push_back(std::log(step.measured / step.predicted));
  }
  // From what nobody would notice to what no model could be forgiven.
  constexpr double kDeviations[] = {0.01, 0.03, 0.1, 0.3, 1.0};
  constexpr double kLengths[] = {0.25, 0.5, 1.0, 2.0};
  constexpr double kNoises[] = {0.01, 0.02, 0.04, 0.08};
  double most = -std::numeric_limits<double>::infinity();
  CorrectionKernel likeliest;
  for (const double shared : kDeviations)
    for (const double particular : kDeviations)
      for (const double length : kLengths)
        for (const double noise : kNoises) {
          const CorrectionKernel kernel{shared, particular, length, noise};
          const double likelihood = log_likelihood(kernel, places, errors);
          if (likelihood <= most) continue;
          most = likelihood;
          likeliest = kernel;
        }
  return {std::move(places), std::move(errors), likeliest};
}

StepFactor Correction::at(const std::vector<double>& features) const {
  const std::vector<double> place = place_of(features);
  VectorXd with(static_cast<Index>(places_.size()));
  for (std::size_t i = 0; i < places_.size(); ++i) with(static_cast<Index>(i)) = covariance(kernel_, place, places_[i]);
  const double mean = with.dot(factored_->weights);
  const double known = with.dot(factored_->covariances.solve(with));
  const double variance = covariance(kernel_, place, place) - known + kernel_.noise * kernel_.noise;
  const double reach = kNormal90 * std::sqrt(std::max(0.0, variance));
  return {std::exp(mean), std::exp(mean - reach), std::exp(mean + reach)};
}

std::vector<double> Correction::left_out_errors() const {
  // Rasmussen and Williams, 5.12.
  const auto size = static_cast<Index>(places_.size());
  const MatrixXd inverse = factored_->covariances.solve(MatrixXd::Identity(size, size));
  std::vector<double> out;
  for (Index i = 0; i < size; ++i) out.push_back(factored_->weights(i) / inverse(i, i));
  return out;
}

std::string SavedCorrection::to_json() const {
  nlohmann::ordered_json out;
  out["schema"] = kSchema;
  out["features"] = strategy_schema().name;
  out["learned_from"] = {{"models", models}, {"clusters", clusters}, {"workers", workers}, {"batches", batches}};
  if (basis) {
    out["learned_from"]["settings"] = basis->settings;
    out["learned_from"]["calibrations"] = basis->calibrations;
    out["learned_from"]["runners"] = basis->runners;
  }
  const CorrectionKernel& kernel = correction.kernel_;
  out["kernel"] = {
      {"shared", kernel.shared}, {"particular", kernel.particular}, {"length", kernel.length}, {"noise", kernel.noise}};
  out["places"] = correction.places_;
  out["log_measured_over_predicted"] = correction.errors_;
  return out.dump(1) + "\n";
}

namespace {

/// @throws nlohmann::json::exception
std::optional<CorrectionBasis> basis_of(const nlohmann::json& learned_from) {
  using Texts = std::set<std::string>;
  if (!learned_from.contains("settings")) return std::nullopt;
  return CorrectionBasis{.settings = learned_from.at("settings").get<Texts>(),
                         .calibrations = learned_from.at("calibrations").get<Texts>(),
                         .runners = learned_from.at("runners").get<Texts>()};
}

}  // namespace

SavedCorrection SavedCorrection::read(const std::string& text, const std::string& file) {
  using Json = nlohmann::json;
  try {
    const Json all = Json::parse(text);
    if (all.at("schema") != kSchema) refuse(file, fmt::format("its schema is not '{}'", kSchema));
    if (all.at("features") != strategy_schema().name)
      refuse(file, fmt::format("it is for features other than '{}': learn it anew", strategy_schema().name));
    const Json& from = all.at("kernel");
    const CorrectionKernel kernel{from.at("shared"), from.at("particular"), from.at("length"), from.at("noise")};
    auto places = all.at("places").get<std::vector<std::vector<double>>>();
    auto errors = all.at("log_measured_over_predicted").get<std::vector<double>>();
    const auto has_width = [](const std::vector<double>& place) {
      return place.size() == compared_features().size() + 1;
    };
    if (errors.empty() || errors.size() != places.size() || !std::all_of(places.begin(), places.end(), has_width) ||
        kernel.shared < 0.0 || kernel.particular < 0.0 || kernel.length <= 0.0 || kernel.noise <= 0.0)
      refuse(file, "its numbers do not belong together");
    const Json& learned_from = all.at("learned_from");
    return {.models = learned_from.at("models").get<std::set<std::string>>(),
            .clusters = learned_from.at("clusters").get<std::set<std::string>>(),
            .workers = learned_from.value("workers", std::set<int>{}),
            .batches = learned_from.value("batches", std::set<std::int64_t>{}),
            .basis = basis_of(learned_from),
            .correction = Correction(std::move(places), std::move(errors), kernel)};
  } catch (const Json::exception&) {
    refuse(file, "not a correction");
  }
}

namespace {

/// Adds what one trial rests on to that of the others; where one does not tell, that of all is not known.
void add_basis(const TrialRow& trial, std::optional<CorrectionBasis>& basis) {
  if (!trial.basis) basis.reset();
  if (!basis) return;
  basis->settings.insert(trial.basis->settings);
  basis->calibrations.insert(trial.basis->calibration);
  basis->runners.insert(trial.basis->runner);
}

}  // namespace

SavedCorrection learn_correction(const std::vector<TrialRow>& trials) {
  std::vector<MeasuredStep> steps;
  std::set<std::string> models;
  std::set<std::string> clusters;
  std::set<int> workers;
  std::set<std::int64_t> batches;
  std::optional<CorrectionBasis> basis(std::in_place);
  for (const TrialRow& trial : trials) {
    if (trial.evaluator != "measure")
      throw InputError(
          fmt::format("trial {} of {} was not measured (evaluator {}): a correction is learned from real runs",
                      trial.trial, trial.model, trial.evaluator));
    if (!trial.step) continue;
    const double predicted = trial.replayed.value_or(trial.estimated).value();
    if (predicted <= 0.0)
      throw InputError(
          fmt::format("trial {} of {} has no predicted step that it could correct", trial.trial, trial.model));
    steps.push_back({.features = trial.features, .predicted = predicted, .measured = trial.step->value()});
    models.insert(trial.model);
    clusters.insert(trial.cluster);
    workers.insert(trial.workers);
    batches.insert(trial.batch);
    add_basis(trial, basis);
  }
  return {.models = std::move(models),
          .clusters = std::move(clusters),
          .workers = std::move(workers),
          .batches = std::move(batches),
          .basis = std::move(basis),
          .correction = Correction::learn(steps)};
}

}  // namespace simsync
