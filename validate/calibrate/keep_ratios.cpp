#include "validate/calibrate/keep_ratios.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "platforms/measured_ratios.hpp"
#include "sim/plan/compile.hpp"

namespace simsync::detail {
namespace {

constexpr std::size_t kLeastSizes = 3;
constexpr std::size_t kLeastWidened = 5;

/// Sum of what is left when the sizes that are at least `distance` places away give the ratio of each one.
double left_out_of(const MeasuredRatios& group, std::size_t distance) {
  double sum = 0.0;
  for (std::size_t i = 0; i < group.points.size(); ++i) {
    MeasuredRatios others = group;
    others.points.clear();
    for (std::size_t j = 0; j < group.points.size(); ++j)
      if (j + distance <= i || i + distance <= j) others.points.push_back(group.points[j]);
    const auto& [bytes, ratio] = group.points[i];
    const double given =
        measured_ratio({others}, group.primitive, group.nodes, group.ranks, static_cast<double>(bytes.count));
    sum += std::abs(std::log(ratio / given));
  }
  return sum;
}

}  // namespace

double Ratios::at_use() const {
  return left_out / std::max(1.0, widened);
}

bool Ratios::help() const {
  constexpr std::size_t kLeastTested = 8;
  constexpr double kBetter = 0.875;
  return tested >= kLeastTested && at_use() < kBetter * without;
}

Ratios ratios_of(const Cluster& cluster, const std::vector<CalibratedRow>& rows) {
  struct Sum {
    double log_ratio = 0.0;
    double rows = 0.0;
  };
  std::map<std::tuple<std::string, int, int>, std::map<std::int64_t, Sum>> groups;
  for (const CalibratedRow& row : rows) {
    const Probe& probe = row.probe;
    if (!probe.collective() || !is_own(cluster.collective, probe.algorithm)) continue;
    const auto places = places_of(probe, cluster);
    const int nodes = places.back().node - places.front().node + 1;
    Sum& sum = groups[{name_of(probe.kind), nodes, probe.ranks}][std::llround(probe.bytes)];
    sum.log_ratio += std::log(probe.measured / row.predicted);
    sum.rows += 1.0;
  }
  Ratios out;
  double near = 0.0;
  double wide = 0.0;
  for (const auto& [key, sizes] : groups) {
    const auto& [primitive, nodes, ranks] = key;
    if (ranks % nodes != 0) continue;
    MeasuredRatios group{.primitive = primitive, .nodes = nodes, .ranks = ranks, .points = {}};
    double without = 0.0;
    for (const auto& [bytes, sum] : sizes) {
      const double log_ratio = sum.log_ratio / sum.rows;
      group.points.emplace_back(Bytes{bytes}, std::exp(log_ratio));
      without += std::abs(log_ratio);
    }
    if (sizes.size() >= kLeastSizes) {
      out.tested += sizes.size();
      out.without += without;
      out.left_out += left_out_of(group, 1);
    }
    if (sizes.size() >= kLeastWidened) {
      near += left_out_of(group, 1);
      wide += left_out_of(group, 2);
    }
    out.groups.push_back(std::move(group));
  }
  if (out.tested > 0) {
    out.without /= static_cast<double>(out.tested);
    out.left_out /= static_cast<double>(out.tested);
  }
  if (near > 0.0) out.widened = wide / near;
  return out;
}

}  // namespace simsync::detail
