// Known strategies by name, each after the published rule it is named for.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "strategies/strategy.hpp"

namespace simsync {

/// What a builder looks at. Names and defaults of `options`: strategies/README.md.
struct BuildRequest {
  const Model& model;
  const Cluster& cluster;
  int workers = 1;
  std::int64_t batch = 1;                      ///< per device; Poseidon's rule depends on it
  std::map<std::string, std::string> options;  ///< `--set strategy.<option>=value`
  std::uint64_t seed = 1;                      ///< for builders that draw at random
};

/// @throws InputError for an unknown builder or option (naming the closest), PlanError when the builder does not
/// apply (such as parameter servers on a cluster without hosts).
Strategy build_strategy(const std::string& builder, const BuildRequest& request);
/// Names of all builders, sorted.
std::vector<std::string> known_builders();
/// Whether `builder` is one, with this option.
bool has_option(const std::string& builder, const std::string& option);
/// One sentence and the options of a builder, for `simsync list strategies`.
std::string describe_builder(const std::string& builder);

}  // namespace simsync
