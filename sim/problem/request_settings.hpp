// `--set` of a question, sorted by what it is for. Private to sim/problem.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/optimizer.hpp"
#include "models/reader.hpp"
#include "sim/problem/problem.hpp"

namespace simsync::detail {

struct Settings {
  std::optional<Seconds> step_time;
  std::optional<std::string> precision;
  std::string profile = "auto";
  OptimizerState optimizer;
  bool ignore_memory = false;
  std::uint64_t seed = 1;
  std::vector<int> placement;  ///< GPUs per node; empty: filled node by node
  std::optional<double> straggler;
  std::optional<double> variable_scale;
  double step_variation = 0.0;
  std::optional<double> compute_error;
  std::optional<double> network_error;
  ReplayOptions options;
  std::map<std::string, std::string> strategy;
  std::vector<std::pair<std::string, std::string>> cluster;  ///< in the user's order
};

/// What `model.X=VALUE` among the settings says. @throws InputError for a value that is no whole number.
ModelParameters model_parameters(const std::vector<std::pair<std::string, std::string>>& settings);

/// @throws InputError for an unknown key or a value that does not fit one of the program's own keys.
Settings read_settings(const PredictRequest& request, const Cluster& cluster);

}  // namespace simsync::detail
