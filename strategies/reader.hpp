// Strategies from files: explicit nodes or matching rules (format: strategies/README.md).
#pragma once
#include <string>
#include <vector>

#include "strategies/builders.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

/// `name_or_path` as given to --strategy: a builder, a preset of strategies/presets, or a path.
/// @throws InputError naming the closest builder or preset; what build_strategy and load_strategy throw.
Strategy find_strategy(const std::string& name_or_path, const BuildRequest& request);
/// @throws InputError with every finding, such as a device that the cluster lacks; PlanError when the file does not
/// fit the model, such as shards that do not add up.
Strategy load_strategy(const std::string& path, const BuildRequest& request);
/// The same from text; `file` stands for it in messages.
Strategy parse_strategy(const std::string& text, const std::string& file, const BuildRequest& request);
/// Names of built-in preset files, sorted.
std::vector<std::string> known_strategies();
/// The strategy as a file that load_strategy reads back to an equal value.
std::string to_yaml(const Strategy& strategy, const Model& model);

}  // namespace simsync
