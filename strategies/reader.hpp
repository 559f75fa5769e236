// Strategies from files: explicit nodes or matching rules (format: strategies/README.md).
#pragma once
#include <string>
#include <vector>

#include "strategies/builders.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

/// `name_or_path` as given to --strategy: a builder, a preset of strategies/presets, or a path.
/// @throws InputError with every finding, such as a device that the cluster lacks.
Strategy find_strategy(const std::string& name_or_path, const BuildRequest& request);
Strategy load_strategy(const std::string& path, const BuildRequest& request);
/// Names of built-in preset files, sorted.
std::vector<std::string> known_strategies();
/// The strategy as a file that load_strategy reads back to an equal value.
std::string to_yaml(const Strategy& strategy, const Model& model);

}  // namespace simsync
