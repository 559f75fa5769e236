#include "validate/fit.hpp"

#include <ceres/ceres.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace simsync {
namespace {

/// Ceres takes derivative steps relative to a parameter, so it is given 1 + share, which is never near zero.
constexpr double kOffset = 1.0;
constexpr double kDerivativeStep = 2e-3;
/// Step of the derivatives that decide whether a parameter is identified: wide, so that a kink does not hide it.
constexpr double kSpreadStep = 0.02;

class Problem {
public:
  Problem(std::size_t parameters, const ResidualFunction& residuals, const FitOptions& options)
      : parameters_(parameters), residuals_(residuals), options_(options) {}

  std::vector<double> at(std::vector<double> shares) {
    for (double& share : shares) share = std::clamp(share, 0.0, 1.0);
    ++evaluations_;
    return residuals_(shares);
  }
  /// Sum of the robust loss, as Ceres minimizes it.
  double loss(const std::vector<double>& values) const {
    const ceres::HuberLoss huber(options_.robust_scale);
    double sum = 0.0;
    for (const double r : values) {
      double out[3];
      huber.Evaluate(r * r, out);
      sum += 0.5 * out[0];
    }
    return sum;
  }
  std::vector<double> best_of_grid();
  std::vector<double> improved(const std::vector<double>& start);
  std::vector<double> spread(const std::vector<double>& shares);
  [[nodiscard]] int evaluations() const { return evaluations_; }

private:
  std::size_t parameters_;
  const ResidualFunction& residuals_;
  FitOptions options_;
  int evaluations_ = 0;
};

std::vector<double> Problem::best_of_grid() {
  const std::size_t side = parameters_ == 1 ? 9 : (parameters_ == 2 ? 5 : 4);
  std::size_t points = 1;
  for (std::size_t p = 0; p < parameters_; ++p) points *= side;
  std::vector<double> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t point = 0; point < points; ++point) {
    std::vector<double> shares;
    for (std::size_t p = 0, rest = point; p < parameters_; ++p, rest /= side)
      shares.push_back((static_cast<double>(rest % side) + 0.5) / static_cast<double>(side));
    const double value = loss(at(shares));
    if (value < least) {
      least = value;
      best = shares;
    }
  }
  return best;
}

std::vector<double> Problem::improved(const std::vector<double>& start) {
  const std::size_t residuals = at(start).size();
  const auto evaluate = [this](double const* const* x, double* out) {
    std::vector<double> shares;
    for (std::size_t p = 0; p < parameters_; ++p) shares.push_back(x[0][p] - kOffset);
    const auto values = at(shares);
    std::copy(values.begin(), values.end(), out);
    return true;
  };
  using Functor = decltype(evaluate);
  ceres::NumericDiffOptions numeric;
  numeric.relative_step_size = kDerivativeStep;
  auto* cost = new ceres::DynamicNumericDiffCostFunction<Functor, ceres::CENTRAL>(
      &evaluate, ceres::DO_NOT_TAKE_OWNERSHIP, numeric);  // owned by the ceres::Problem below
  cost->AddParameterBlock(static_cast<int>(parameters_));
  cost->SetNumResiduals(static_cast<int>(residuals));
  std::vector<double> x;
  for (const double share : start) x.push_back(share + kOffset);
  ceres::Problem problem;
  problem.AddResidualBlock(cost, nullptr, x.data());
  for (std::size_t p = 0; p < parameters_; ++p) {
    problem.SetParameterLowerBound(x.data(), static_cast<int>(p), kOffset);
    problem.SetParameterUpperBound(x.data(), static_cast<int>(p), kOffset + 1.0);
  }
  ceres::Solver::Options solver;
  solver.logging_type = ceres::SILENT;
  solver.num_threads = 1;
  solver.max_num_iterations = 25;
  solver.linear_solver_type = ceres::DENSE_QR;
  ceres::Solver::Summary summary;
  ceres::Solve(solver, &problem, &summary);
  for (double& value : x) value = std::clamp(value - kOffset, 0.0, 1.0);
  return x;
}

std::vector<double> Problem::spread(const std::vector<double>& shares) {
  const auto columns = static_cast<Eigen::Index>(parameters_);
  Eigen::MatrixXd jacobian;
  for (Eigen::Index p = 0; p < columns; ++p) {
    auto low = shares;
    auto high = shares;
    const auto at_p = static_cast<std::size_t>(p);
    low[at_p] = std::max(0.0, shares[at_p] - kSpreadStep);
    high[at_p] = std::min(1.0, shares[at_p] + kSpreadStep);
    const auto below = at(low);
    const auto above = at(high);
    if (p == 0) jacobian.resize(static_cast<Eigen::Index>(below.size()), columns);
    for (Eigen::Index r = 0; r < jacobian.rows(); ++r) {
      const auto i = static_cast<std::size_t>(r);
      jacobian(r, p) = (above[i] - below[i]) / (high[at_p] - low[at_p]);
    }
  }
  const Eigen::MatrixXd information = jacobian.transpose() * jacobian;
  const Eigen::MatrixXd damped = information + 1e-9 * Eigen::MatrixXd::Identity(columns, columns);
  const Eigen::MatrixXd covariance = damped.ldlt().solve(Eigen::MatrixXd::Identity(columns, columns));
  std::vector<double> out;
  for (Eigen::Index p = 0; p < columns; ++p)
    out.push_back(options_.measurement_error * std::sqrt(std::max(0.0, covariance(p, p))));
  return out;
}

}  // namespace

FitResult fit_shares(std::size_t parameters, const ResidualFunction& residuals, const FitOptions& options) {
  SIMSYNC_ASSERT(parameters >= 1 && parameters <= 3);
  // Huber's loss as a residual: its square is twice the loss, so plain least squares minimizes it.
  Problem plain(parameters, residuals, options);
  const ResidualFunction robust = [&](const std::vector<double>& shares) {
    auto values = residuals(shares);
    for (double& r : values) r = std::copysign(std::sqrt(2.0 * plain.loss({r})), r);
    return values;
  };
  Problem problem(parameters, robust, options);
  const auto start = plain.best_of_grid();
  auto shares = problem.improved(start);
  if (plain.loss(plain.at(start)) < plain.loss(plain.at(shares))) shares = start;  // kinks can mislead a derivative
  FitResult out;
  out.shares = shares;
  double sum = 0.0;
  const auto values = plain.at(shares);
  for (const double r : values) sum += r * r;
  out.rms = values.empty() ? 0.0 : std::sqrt(sum / static_cast<double>(values.size()));
  out.spread = plain.spread(shares);
  out.evaluations = plain.evaluations() + problem.evaluations();
  return out;
}

}  // namespace simsync
