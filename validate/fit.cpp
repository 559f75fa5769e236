#include "validate/fit.hpp"

#include <ceres/ceres.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
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
/// So many parameters are searched by a grid.
constexpr std::size_t kMostOfGrid = 3;
/// So many of the points searched by more than that are improved.
constexpr std::size_t kKeptPoints = 8;

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
    double sum = 0.0;
    for (std::size_t i = 0; i < values.size(); ++i) sum += 0.5 * huber(values[i], is_plain(i, values.size()))[0];
    return sum;
  }
  /// Loss, and its derivative (a weight), of one squared residual.
  [[nodiscard]] std::array<double, 3> huber(double r, bool plain) const {
    std::array<double, 3> out{r * r, 1.0, 0.0};
    if (!plain) ceres::HuberLoss(options_.robust_scale).Evaluate(r * r, out.data());
    return out;
  }
  [[nodiscard]] bool is_plain(std::size_t i, std::size_t count) const { return i + options_.plain_tail >= count; }
  std::vector<std::vector<double>> starts();
  /// By at most so many steps.
  std::vector<double> improved(const std::vector<double>& start, int steps);
  void describe(const std::vector<double>& shares, FitResult& out);
  [[nodiscard]] int evaluations() const { return evaluations_; }

private:
  std::size_t parameters_;
  const ResidualFunction& residuals_;
  FitOptions options_;
  int evaluations_ = 0;
};

/// Points of the unit cube: a grid for few parameters, a Halton sequence for more.
std::vector<std::vector<double>> points_of_cube(std::size_t parameters) {
  constexpr std::size_t kPoints = 200;
  constexpr std::array<std::size_t, 16> kPrimes{2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
  const std::size_t side = parameters == 1 ? 9 : (parameters == 2 ? 5 : 4);
  std::size_t points = kPoints;
  if (parameters <= kMostOfGrid) points = static_cast<std::size_t>(std::llround(std::pow(side, parameters)));
  std::vector<std::vector<double>> out;
  for (std::size_t point = 0; point < points; ++point) {
    std::vector<double> shares;
    for (std::size_t p = 0, rest = point; p < parameters; ++p, rest /= side) {
      if (parameters <= kMostOfGrid) {
        shares.push_back((static_cast<double>(rest % side) + 0.5) / static_cast<double>(side));
        continue;
      }
      const std::size_t base = kPrimes.at(p);
      double share = 0.0;
      double digit = 1.0 / static_cast<double>(base);
      for (std::size_t left = point + 1; left > 0; left /= base, digit /= static_cast<double>(base))
        share += digit * static_cast<double>(left % base);
      shares.push_back(share);
    }
    out.push_back(std::move(shares));
  }
  return out;
}

std::vector<std::vector<double>> Problem::starts() {
  if (!options_.search) return options_.starts;
  std::vector<double> middle(parameters_, 0.5);
  std::vector<std::size_t> searched;
  for (std::size_t p = 0; p < parameters_; ++p) {
    if (p < options_.held.size() && options_.held[p]) {
      middle[p] = *options_.held[p];
    } else {
      searched.push_back(p);
    }
  }
  if (searched.empty()) return options_.starts;
  std::vector<std::pair<double, std::vector<double>>> found;
  for (const auto& point : points_of_cube(searched.size())) {
    auto shares = middle;
    for (std::size_t i = 0; i < searched.size(); ++i) shares[searched[i]] = point[i];
    found.emplace_back(loss(at(shares)), std::move(shares));
  }
  const std::size_t kept = searched.size() <= kMostOfGrid ? 1 : kKeptPoints;
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::vector<double>> out;
  for (std::size_t i = 0; i < kept; ++i) out.push_back(std::move(found[i].second));
  out.insert(out.end(), options_.starts.begin(), options_.starts.end());
  return out;
}

std::vector<double> Problem::improved(const std::vector<double>& start, int steps) {
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
  solver.max_num_iterations = steps;
  solver.linear_solver_type = ceres::DENSE_QR;
  // Bounds make every step a line search. Cubic interpolation asks for a gradient at each of its points, which takes
  // three quarters of all evaluations.
  if (options_.costly) solver.line_search_interpolation_type = ceres::BISECTION;
  ceres::Solver::Summary summary;
  ceres::Solve(solver, &problem, &summary);
  for (double& value : x) value = std::clamp(value - kOffset, 0.0, 1.0);
  return x;
}

void Problem::describe(const std::vector<double>& shares, FitResult& out) {
  const auto columns = static_cast<Eigen::Index>(parameters_);
  const auto values = at(shares);
  const auto rows = static_cast<Eigen::Index>(values.size());
  Eigen::MatrixXd jacobian(rows, columns);
  Eigen::VectorXd weights(rows);
  for (Eigen::Index r = 0; r < rows; ++r) {
    const auto i = static_cast<std::size_t>(r);
    weights[r] = huber(values[i], is_plain(i, values.size()))[1];
  }
  for (Eigen::Index p = 0; p < columns; ++p) {
    auto low = shares;
    auto high = shares;
    const auto at_p = static_cast<std::size_t>(p);
    low[at_p] = std::max(0.0, shares[at_p] - kSpreadStep);
    high[at_p] = std::min(1.0, shares[at_p] + kSpreadStep);
    const auto below = at(low);
    const auto above = at(high);
    for (Eigen::Index r = 0; r < rows; ++r) {
      const auto i = static_cast<std::size_t>(r);
      jacobian(r, p) = (above[i] - below[i]) / (high[at_p] - low[at_p]);
    }
  }
  constexpr double kDamping = 1e-9;  // a direction that nothing depends on gets a huge variance, not an infinite one
  const auto identity = Eigen::MatrixXd::Identity(columns, columns);
  const Eigen::MatrixXd plain = jacobian.transpose() * jacobian + kDamping * identity;
  const Eigen::MatrixXd information = jacobian.transpose() * weights.asDiagonal() * jacobian + kDamping * identity;
  const Eigen::MatrixXd unweighted = plain.ldlt().solve(identity);
  const Eigen::MatrixXd inverse = information.ldlt().solve(identity);
  const Eigen::MatrixXd covariance = 0.5 * (inverse + inverse.transpose());  // symmetric to the last bit
  for (Eigen::Index p = 0; p < columns; ++p) {
    out.spread.push_back(options_.measurement_error * std::sqrt(std::max(0.0, unweighted(p, p))));
    out.effect.push_back(std::sqrt(information(p, p)));
    auto& row = out.covariance.emplace_back();
    for (Eigen::Index q = 0; q < columns; ++q) row.push_back(covariance(p, q));
  }
}

/// The points with the least loss, each after some steps: going on from all of them would take several times as long.
std::vector<std::vector<double>> most_promising(Problem& plain, Problem& robust,
                                                std::vector<std::vector<double>> points, std::size_t kept) {
  constexpr int kFirstSteps = 8;
  if (points.size() <= kept) return points;
  std::vector<std::pair<double, std::vector<double>>> found;
  for (const auto& point : points) {
    auto moved = robust.improved(point, kFirstSteps);
    const double before = plain.loss(plain.at(point));
    const double after = plain.loss(plain.at(moved));
    // Kinks can mislead a derivative: the point itself may be better than what it led to.
    if (after <= before) {
      found.emplace_back(after, std::move(moved));
    } else {
      found.emplace_back(before, point);
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  points.clear();
  for (std::size_t i = 0; i < kept; ++i) points.push_back(std::move(found[i].second));
  return points;
}

}  // namespace

FitResult fit_shares(std::size_t parameters, const ResidualFunction& residuals, const FitOptions& options) {
  SIMSYNC_ASSERT(parameters >= 1 && parameters <= kMostFitted);
  SIMSYNC_ASSERT(options.search || !options.starts.empty());
  // Huber's loss as a residual: its square is twice the loss, so plain least squares minimizes it.
  Problem plain(parameters, residuals, options);
  const ResidualFunction robust = [&](const std::vector<double>& shares) {
    auto values = residuals(shares);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = std::copysign(std::sqrt(plain.huber(values[i], plain.is_plain(i, values.size()))[0]), values[i]);
    return values;
  };
  Problem problem(parameters, robust, options);
  FitResult out;
  double least = std::numeric_limits<double>::infinity();
  const int steps = parameters <= kMostOfGrid ? 25 : 40;
  for (const auto& start : most_promising(plain, problem, plain.starts(), options.followed)) {
    // Here too the start may be better than what it led to.
    for (const auto& shares : {problem.improved(start, steps), start}) {
      const double value = plain.loss(plain.at(shares));
      if (value >= least) continue;
      least = value;
      out.shares = shares;
    }
  }
  double sum = 0.0;
  const auto values = plain.at(out.shares);
  for (const double r : values) sum += r * r;
  out.rms = values.empty() ? 0.0 : std::sqrt(sum / static_cast<double>(values.size()));
  plain.describe(out.shares, out);
  out.evaluations = plain.evaluations() + problem.evaluations();
  return out;
}

void simsync_fit_shares(std::size_t parameters, const ResidualFunction& residuals, const FitOptions& options,
                        FitResult& out) {
  out = fit_shares(parameters, residuals, options);
}

}  // namespace simsync
