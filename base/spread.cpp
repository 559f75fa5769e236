#include "base/spread.hpp"

#include <cmath>

namespace simsync {

Spread spread_of(double deviation) {
  const double reach = std::exp(kNormal90 * deviation);
  return {.low = 1.0 / reach, .high = reach, .rows = 0, .source = {}};
}

Spread read_spread(const yaml::Node& node) {
  constexpr double kFurthest = 100.0;
  constexpr std::int64_t kMostRows = 1'000'000'000;
  auto fields = node.mapping();
  Spread out;
  out.low = fields.require("low").number({1.0 / kFurthest, 1.0});
  out.high = fields.require("high").number({1.0, kFurthest});
  out.rows = static_cast<int>(fields.require("rows").integer(1, kMostRows));
  out.source = fields.require("source").text();
  return out;
}

}  // namespace simsync
