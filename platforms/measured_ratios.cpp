#include "platforms/measured_ratios.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parse_units.hpp"
#include "platforms/field_text.hpp"

namespace simsync {
namespace {

constexpr std::size_t kMostGroups = 1000;
constexpr std::size_t kMostPoints = 1000;
constexpr yaml::Range kRatio{1e-3, 1e3};
const std::vector<std::string> kPrimitives{"all-reduce", "all-gather", "reduce-scatter"};

double on_line(const std::vector<std::pair<Bytes, double>>& points, double bytes) {
  const auto after = std::find_if(points.begin(), points.end(),
                                  [&](const auto& point) { return static_cast<double>(point.first.count) >= bytes; });
  if (after == points.begin()) return after->second;
  if (after == points.end()) return points.back().second;
  const auto before = after - 1;
  const double low = std::log(static_cast<double>(before->first.count));
  const double share = (std::log(bytes) - low) / (std::log(static_cast<double>(after->first.count)) - low);
  return std::exp((1.0 - share) * std::log(before->second) + share * std::log(after->second));
}

MeasuredRatios read_group(const yaml::Node& node) {
  MeasuredRatios out;
  auto m = node.mapping();
  out.primitive = kPrimitives[m.require("primitive").choice(kPrimitives)];
  const auto nodes = m.require("nodes");
  const auto ranks = m.require("ranks");
  out.nodes = static_cast<int>(nodes.integer(1, kMaxNodes));
  out.ranks = static_cast<int>(ranks.integer(2, std::int64_t{kMaxNodes} * kMaxGpusPerNode));
  if (ranks && nodes && out.ranks % out.nodes != 0)
    ranks.fail(fmt::format("{} ranks are not alike on {} nodes", out.ranks, out.nodes));
  const auto sizes = m.require("payload");
  const auto ratios = m.require("ratio");
  const auto x = sizes.items();
  const auto y = ratios.items();
  if (sizes && (x.empty() || x.size() > kMostPoints))
    sizes.fail(fmt::format("{} sizes: expected from 1 to {}", x.size(), kMostPoints));
  if (x.size() != y.size() && ratios)
    ratios.fail(fmt::format("expected a ratio for each of the {} sizes, got {}", x.size(), y.size()));
  for (std::size_t i = 0; i < std::min({x.size(), y.size(), kMostPoints}); ++i) {
    const Bytes bytes = x[i].bytes(yaml::kPositive);
    if (i > 0 && bytes <= out.points.back().first) x[i].fail("expected sizes in ascending order");
    out.points.emplace_back(bytes, y[i].number(kRatio));
  }
  return out;
}

}  // namespace

double measured_ratio(const std::vector<MeasuredRatios>& measured, std::string_view primitive, int nodes, int ranks,
                      double bytes) {
  const MeasuredRatios* nearest = nullptr;
  double least = std::numeric_limits<double>::infinity();
  for (const MeasuredRatios& group : measured) {
    const bool alike = std::int64_t{group.ranks} * nodes == std::int64_t{ranks} * group.nodes;
    if (group.primitive != primitive || !alike || (group.nodes > 1) != (nodes > 1)) continue;
    const double distance = std::abs(std::log(static_cast<double>(group.nodes) / nodes));
    const bool equally = nearest != nullptr && distance == least && group.nodes < nearest->nodes;
    if (distance < least || equally) nearest = &group;
    least = std::min(least, distance);
  }
  return nearest == nullptr || bytes <= 0.0 ? 1.0 : on_line(nearest->points, bytes);
}

std::vector<MeasuredRatios> read_measured_ratios(const yaml::Node& node) {
  std::vector<MeasuredRatios> out;
  const auto items = node.items();
  if (items.size() > kMostGroups) node.fail(fmt::format("{} groups: expected at most {}", items.size(), kMostGroups));
  for (std::size_t i = 0; i < std::min(items.size(), kMostGroups); ++i) {
    MeasuredRatios group = read_group(items[i]);
    if (group.points.empty()) continue;  // told
    const auto same = [&](const MeasuredRatios& o) {
      return o.primitive == group.primitive && o.nodes == group.nodes && o.ranks == group.ranks;
    };
    if (std::any_of(out.begin(), out.end(), same))
      items[i].fail(
          fmt::format("a second list for {} of {} ranks on {} nodes", group.primitive, group.ranks, group.nodes));
    out.push_back(std::move(group));
  }
  return out;
}

std::string measured_ratios_text(const std::vector<MeasuredRatios>& measured, std::size_t indent) {
  if (measured.empty()) return {};
  const std::string margin(indent, ' ');
  std::string out = margin + "measured:\n";
  for (const MeasuredRatios& group : measured) {
    std::vector<std::string> sizes;
    std::vector<std::string> ratios;
    for (const auto& [bytes, ratio] : group.points) {
      sizes.push_back(field_text(bytes));
      ratios.push_back(format_shortest(ratio));
    }
    out += fmt::format("{0}  - primitive: {1}\n{0}    nodes: {2}\n{0}    ranks: {3}\n", margin, group.primitive,
                       group.nodes, group.ranks);
    out += fmt::format("{0}    payload: [{1}]\n{0}    ratio: [{2}]\n", margin, fmt::join(sizes, ", "),
                       fmt::join(ratios, ", "));
  }
  return out;
}

}  // namespace simsync
