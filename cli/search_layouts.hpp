// `simsync search --space layouts`: tensor, pipeline and data parallelism instead of variables one by one.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/problem/problem.hpp"
#include "strategies/layouts/layout_search.hpp"

namespace simsync {

struct LayoutSearchFlags {
  PredictRequest request;
  std::int64_t samples = 0;  ///< of a step over all replicas
  std::vector<std::pair<std::string, std::string>> settings;
  LayoutSearchOptions options;
  int replays = 5;                            ///< of the best layouts
  std::optional<double> price_per_node_hour;  ///< in any currency; also asks for the cheapest
  std::string out;
  std::string csv;
  int jobs = 1;
};

/// Searches, replays the best and reports. @throws InputError, PlanError where no layout can be or none fits.
void search_for_layout(const LayoutSearchFlags& flags);

}  // namespace simsync
