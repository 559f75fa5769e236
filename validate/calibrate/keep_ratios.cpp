#include "validate/calibrate/keep_ratios.hpp"

#include <cmath>
#include <map>
#include <tuple>

#include "platforms/measured_ratios.hpp"
#include "sim/plan/compile.hpp"

namespace simsync::detail {
namespace {

constexpr std::size_t kLeastSizes = 3;

/// Sum of what is left when every size but one gives the ratio of that one.
double left_out_of(const MeasuredRatios& group) {
  double sum = 0.0;
  for (std::size_t i = 0; i < group.points.size(); ++i) {
    MeasuredRatios others = group;
    others.points.erase(others.points.begin() + static_cast<std::ptrdiff_t>(i));
    const auto& [bytes, ratio] = group.points[i];
    const double given =
        measured_ratio({others}, group.primitive, group.nodes, group.ranks, static_cast<double>(bytes.count));
    sum += std::abs(std::log(ratio / given));
  }
  return sum;
}

}  // namespace

bool Ratios::help() const {
  constexpr std::size_t kLeastTested = 8;
  return tested >= kLeastTested && left_out < without;
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
      out.left_out += left_out_of(group);
    }
    out.groups.push_back(std::move(group));
  }
  if (out.tested > 0) {
    out.without /= static_cast<double>(out.tested);
    out.left_out /= static_cast<double>(out.tested);
  }
  return out;
}

}  // namespace simsync::detail
