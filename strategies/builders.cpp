#include "strategies/builders.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "strategies/families.hpp"

namespace simsync {
namespace {

/// Every builder, sorted by name; all of them also take what is added here.
const std::vector<BuilderInfo>& builders() {
  static const std::vector<BuilderInfo> kBuilders = [] {
    std::vector<BuilderInfo> all;
    for (const auto& family :
         {autodist_ps_builders(), autodist_all_reduce_builders(), collective_builders(), sharded_builders(),
          poseidon_builders(), byteps_builders(), scheduled_builders(), tictac_builders()})
      all.insert(all.end(), family.begin(), family.end());
    for (auto& builder : all) {
      builder.options.push_back({"per_operation_cost", "0s", "software cost of every collective or push"});
      builder.options.push_back(
          {"micro_steps", "1", "gradient accumulation: parts that a worker's batch is computed in before one update"});
      builder.options.push_back({"recompute", "none",
                                 "activations of blocks that are dropped and computed again: none, selective (all but "
                                 "those of products and fused attention), selective-op (every second product, too: "
                                 "torchtitan) or full"});
    }
    std::sort(all.begin(), all.end(), [](const BuilderInfo& a, const BuilderInfo& b) { return a.name < b.name; });
    return all;
  }();
  return kBuilders;
}

const BuilderInfo& find_builder(const std::string& name) {
  const auto& all = builders();
  const auto found = std::find_if(all.begin(), all.end(), [&](const BuilderInfo& b) { return b.name == name; });
  if (found != all.end()) return *found;
  std::string help = did_you_mean(name, known_builders());
  if (help.empty()) help = "'simsync list strategies' shows the known names";
  throw InputError(fmt::format("unknown strategy builder '{}'", name), help);
}

}  // namespace

Strategy build_strategy(const std::string& builder, const BuildRequest& request) {
  const BuilderInfo& info = find_builder(builder);
  const Options options(fmt::format("strategy '{}'", builder), info.options, request.options);
  Strategy strategy;
  strategy.name = builder;
  strategy.graph.workers = request.workers;
  strategy.variables.reserve(request.model.variables().size());
  info.build(request, options, strategy);
  apply_common_options(options, strategy);
  check(strategy, request.model, request.cluster);
  return strategy;
}

std::vector<std::string> known_builders() {
  std::vector<std::string> names;
  for (const auto& builder : builders()) names.push_back(builder.name);
  return names;
}

bool has_option(const std::string& builder, const std::string& option) {
  return std::any_of(builders().begin(), builders().end(), [&](const BuilderInfo& info) {
    return info.name == builder && std::any_of(info.options.begin(), info.options.end(),
                                               [&](const OptionInfo& known) { return known.name == option; });
  });
}

std::string describe_builder(const std::string& builder) {
  const BuilderInfo& info = find_builder(builder);
  std::string text = info.summary;
  for (const auto& option : info.options)
    text += fmt::format("\n  {}={}: {}", option.name, option.fallback, option.meaning);
  return text;
}

}  // namespace simsync
