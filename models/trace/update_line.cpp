#include "models/trace/update_line.hpp"

#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace simsync {
namespace {

constexpr std::size_t kFewestSizes = 3;
constexpr double kStandardErrors = 2.0;

/// (bytes, seconds) of every update operation.
std::vector<std::pair<double, double>> points_of(const Trace& trace) {
  std::vector<std::pair<double, double>> points;
  for (const TraceStep& step : trace.steps) {
    for (const TraceOp& op : step.ops) {
      if (op.kind == TraceOpKind::Update)
        points.emplace_back(static_cast<double>(op.bytes.count), (op.end - op.start).value());
    }
  }
  return points;
}

}  // namespace

std::optional<UpdateLine> fit_updates(const Trace& trace) {
  const auto points = points_of(trace);
  std::set<double> sizes;
  double mean_x = 0.0;
  double mean_y = 0.0;
  const auto count = static_cast<double>(points.size());
  for (const auto& [x, y] : points) {
    sizes.insert(x);
    mean_x += x / count;
    mean_y += y / count;
  }
  if (sizes.size() < kFewestSizes) return std::nullopt;
  double xx = 0.0;
  double xy = 0.0;
  for (const auto& [x, y] : points) {
    xx += (x - mean_x) * (x - mean_x);
    xy += (x - mean_x) * (y - mean_y);
  }
  const double slope = xy / xx;
  const double constant = mean_y - slope * mean_x;
  double squares = 0.0;
  for (const auto& [x, y] : points) squares += (y - constant - slope * x) * (y - constant - slope * x);
  const double variance = points.size() > 2 ? squares / (count - 2.0) : 0.0;
  UpdateLine line{.per_tensor = std::nullopt,
                  .rate = std::nullopt,
                  .residual = Seconds{std::sqrt(squares / count)},
                  .operations = points.size(),
                  .sizes = sizes.size()};
  if (slope > kStandardErrors * std::sqrt(variance / xx)) line.rate = BytesPerSecond{1.0 / slope};
  if (constant > kStandardErrors * std::sqrt(variance * (1.0 / count + mean_x * mean_x / xx)))
    line.per_tensor = Seconds{constant};
  return line;
}

}  // namespace simsync
