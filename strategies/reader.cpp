#include "strategies/reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/parse_units.hpp"
#include "base/yaml.hpp"
#include "strategies/builders.hpp"
#include "strategies/names.hpp"
#include "strategies/rules.hpp"

namespace simsync {
namespace {

constexpr const char* kSchema = "simsync/strategy/v1";
constexpr std::int64_t kMostElements = std::int64_t{1} << 40;  ///< of a shard, as of a variable: sums stay exact
constexpr const char* kRoom = "strategies/presets";
constexpr const char* kExtension = ".yaml";

Shard read_shard(const yaml::Node& node, const Cluster& cluster, std::optional<std::int64_t> only) {
  Shard shard;
  auto m = node.mapping();
  const yaml::Node elements = only ? m.optional("elements") : m.require("elements");
  shard.elements = elements ? elements.integer(1, kMostElements) : only.value_or(1);
  shard.synchronizer = read_synchronizer(m);
  if (auto* ps = std::get_if<PsSynchronizer>(&shard.synchronizer))
    ps->server = read_place(m.require("server"), cluster).value_or(Place{});
  if (auto* all_reduce = std::get_if<AllReduceSynchronizer>(&shard.synchronizer))
    m.maybe("group", [&](const yaml::Node& n) {
      all_reduce->group = static_cast<int>(n.integer(0, std::numeric_limits<int>::max()));
    });
  return shard;
}

int read_axis(const yaml::Node& node, const Variable& variable) {
  if (node.is_scalar() && node.text() == "flat") return kFlatAxis;
  if (variable.shape.empty()) {
    node.fail(fmt::format("'{}' is a scalar and cannot be split", variable.name));
    return kWholeVariable;
  }
  return static_cast<int>(node.integer(0, static_cast<std::int64_t>(variable.shape.size()) - 1));
}

/// Explicit nodes: every variable by name.
class NodesReader {
public:
  NodesReader(const BuildRequest& request, Strategy& strategy) : request_(request), strategy_(strategy) {
    for (VariableId id = 0; id < request.model.variables().size(); ++id) ids_[request.model.variable(id).name] = id;
    strategy_.variables.resize(ids_.size());
    seen_.resize(ids_.size(), false);
  }

  void read(const yaml::Node& node) {
    for (const auto& item : node.items()) read_entry(item);
    std::vector<std::string> missing;
    for (VariableId id = 0; id < seen_.size(); ++id) {
      if (!seen_[id]) missing.push_back(request_.model.variable(id).name);
    }
    if (missing.empty()) return;
    constexpr std::size_t kShown = 3;
    const std::size_t count = missing.size();
    missing.resize(std::min(count, kShown));
    node.fail(fmt::format("{} of the {} variables of model '{}' have no entry: {}{}", count, seen_.size(),
                          request_.model.name(), fmt::join(missing, ", "), count > kShown ? ", ..." : ""));
  }

private:
  /// The variable's id, or nullopt after a finding.
  std::optional<VariableId> find(const yaml::Node& node) {
    const std::string name = node.text();
    const auto found = ids_.find(name);
    if (found == ids_.end()) {
      std::vector<std::string> names;
      for (const auto& variable : request_.model.variables()) names.push_back(variable.name);
      if (!name.empty())
        node.fail(fmt::format("model '{}' has no variable '{}'", request_.model.name(), name),
                  did_you_mean(name, names));
      return std::nullopt;
    }
    if (seen_[found->second]) node.fail(fmt::format("'{}' has an entry already", name));
    seen_[found->second] = true;
    return found->second;
  }

  void read_entry(const yaml::Node& node) {
    VariableStrategy entry;
    auto m = node.mapping();
    const auto id = find(m.require("variable"));
    read_encoding(m, entry);
    m.maybe("priority", [&](const yaml::Node& n) {
      constexpr std::int64_t kMost = std::numeric_limits<int>::max();
      entry.priority = static_cast<int>(n.integer(-kMost, kMost));
    });
    const yaml::Node axis = m.optional("axis");
    const yaml::Node shards = m.require("shards");
    if (!id) {
      // Their keys are still worth a look, against a variable that takes anything.
      for (const auto& item : shards.items()) (void)read_shard(item, request_.cluster, 1);
      return;
    }
    const Variable& variable = request_.model.variable(*id);
    const auto items = shards.items();
    if (shards.is_sequence() && items.empty()) shards.fail("expected at least one shard");
    const auto only = items.size() == 1 ? std::optional{variable.elements()} : std::nullopt;
    for (const auto& item : items) entry.shards.push_back(read_shard(item, request_.cluster, only));
    expect_sum(shards, entry, variable);
    if (axis) entry.partition_axis = read_axis(axis, variable);
    if (!axis && items.size() > 1) shards.fail("several shards need the key `axis`: a number, or `flat`");
    if (axis && items.size() == 1) axis.fail("one shard is the whole variable; drop `axis`");
    entry.variable = *id;
    strategy_.variables[*id] = std::move(entry);
  }

  static void expect_sum(const yaml::Node& shards, const VariableStrategy& entry, const Variable& variable) {
    std::int64_t sum = 0;
    for (const Shard& shard : entry.shards) sum += shard.elements;
    if (!entry.shards.empty() && sum != variable.elements())
      shards.fail(
          fmt::format("the shards have {} elements, variable '{}' has {}", sum, variable.name, variable.elements()));
  }

  const BuildRequest& request_;
  Strategy& strategy_;
  std::unordered_map<std::string, VariableId> ids_;
  std::vector<bool> seen_;
};

void read_header(yaml::Mapping& m, const BuildRequest& request, Strategy& strategy) {
  (void)m.require("schema").choice({kSchema});
  strategy.name = m.require("name").text();
  m.maybe("description", [](const yaml::Node& n) { (void)n.text(); });
  m.maybe("model", [&](const yaml::Node& n) {
    const std::string model = n.text();
    if (!model.empty() && model != request.model.name())
      n.fail(fmt::format("this strategy is for model '{}', and the model is '{}'", model, request.model.name()));
  });
  m.maybe("workers", [&](const yaml::Node& n) {
    const std::int64_t workers = n.integer(1, std::numeric_limits<int>::max());
    const bool readable = n.is_scalar() && parse_integer(n.text()) == workers;
    if (readable && workers != request.workers)
      n.fail(fmt::format("this strategy is for {} workers, and {} take part", workers, request.workers));
  });
  strategy.graph.workers = request.workers;
  m.maybe("graph", [&](const yaml::Node& n) { read_graph(n, strategy.graph); });
}

void check_groups_are_used(const yaml::Node& node, const std::vector<Rule>& rules, const GraphStrategy& graph) {
  const bool grouped = std::any_of(rules.begin(), rules.end(), [](const Rule& r) { return r.bucket || r.chunk > 0; });
  if (grouped && graph.fusion.kind != FusionKind::Groups)
    node.fail(
        fmt::format("`bucket` and `chunk` make groups, which fusion kind '{}' ignores", name_of(graph.fusion.kind)),
        "drop graph.fusion.kind or say groups");
}

/// Rules, when the file has them; nodes are read in place.
std::vector<Rule> read_body(yaml::Mapping& m, const BuildRequest& request, Strategy& strategy) {
  std::vector<Rule> rules;
  const yaml::Node rules_node = m.optional("rules");
  const yaml::Node nodes = m.optional("nodes");
  if (static_cast<bool>(rules_node) == static_cast<bool>(nodes)) {
    m.node().fail(rules_node ? "`rules` and `nodes` exclude each other"
                             : "expected the key `rules` or the key `nodes`");
    return rules;
  }
  if (nodes) {
    NodesReader(request, strategy).read(nodes);
  } else {
    rules = read_rules(rules_node, request);
    check_groups_are_used(rules_node, rules, strategy.graph);
  }
  return rules;
}

Strategy read(const yaml::Document& document, const BuildRequest& request) {
  if (!request.options.empty())
    throw InputError(
        fmt::format("strategy file '{}' takes no option '{}'", document.file(), request.options.begin()->first),
        has_option("fsdp", request.options.begin()->first)
            ? "options belong to builders: 'fsdp' takes it; or edit a copy of the file"
            : "options belong to builders; edit a copy of the file instead");
  Strategy strategy;
  std::vector<Rule> rules;
  {
    auto m = document.root().mapping();
    read_header(m, request, strategy);
    rules = read_body(m, request, strategy);
  }
  document.finish();
  if (!rules.empty()) apply_rules(rules, request, strategy);
  check(strategy, request.model, request.cluster);
  return strategy;
}

}  // namespace

Strategy load_strategy(const std::string& path, const BuildRequest& request) {
  return read(yaml::Document::load(path), request);
}

Strategy parse_strategy(const std::string& text, const std::string& file, const BuildRequest& request) {
  return read(yaml::Document::parse(text, file), request);
}

std::vector<std::string> known_strategies() {
  return list_files(data_folder(kRoom), kExtension);
}

Strategy find_strategy(const std::string& name_or_path, const BuildRequest& request) {
  const auto builders = known_builders();
  if (std::find(builders.begin(), builders.end(), name_or_path) != builders.end())
    return build_strategy(name_or_path, request);
  const bool path = name_or_path.find('/') != std::string::npos || name_or_path.ends_with(kExtension);
  auto names = known_strategies();
  if (path || std::find(names.begin(), names.end(), name_or_path) != names.end())
    return load_strategy(resolve_name(name_or_path, kRoom, kExtension, "strategy"), request);
  names.insert(names.end(), builders.begin(), builders.end());
  std::string help = did_you_mean(name_or_path, names);
  if (help.empty()) help = "'simsync list strategies' shows the known names; a path must contain '/' or end in .yaml";
  throw InputError(fmt::format("unknown strategy '{}'", name_or_path), help);
}

}  // namespace simsync
