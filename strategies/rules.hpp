// Strategy files with matching rules: the first rule that matches a variable decides it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/yaml.hpp"
#include "strategies/builders.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

/// What a rule applies to: all of the given conditions hold.
struct Match {
  bool any = false;
  std::optional<std::string> name;  ///< glob over the variable's name
  std::optional<bool> sparse;
  std::optional<LayerKind> kind;
  std::optional<std::int64_t> axes;
  std::optional<Bytes> bytes_at_least;
  std::optional<Bytes> bytes_at_most;

  [[nodiscard]] bool covers(const Model& model, const Variable& variable) const;
};

enum class PlacementKind { LoadBalanced, RoundRobin, First, Deal, Bandwidth };

/// One rule, read and checked.
struct Rule {
  Match match;
  Synchronizer synchronizer;   ///< a parameter server's place is filled in by `placement`
  std::vector<Place> servers;  ///< only for parameter servers
  PlacementKind placement = PlacementKind::LoadBalanced;
  std::optional<Bytes> bucket;  ///< all-reduce: a group is closed once it holds this many bytes
  std::int64_t chunk = 0;       ///< all-reduce: variables or shards per group; 0: no groups
  int axis = 0;
  std::int64_t shards = 1;     ///< at most; a shorter axis gives fewer
  std::optional<Bytes> piece;  ///< cut into pieces of this size instead of along an axis
  VariableStrategy entry;      ///< compressor, powersgd_rank, priority, sparse_as_dense
  bool priority_by_layer = false;
};

/// `*` any text, `?` one character; everything else stands for itself.
bool matches_glob(const std::string& pattern, const std::string& text);
/// Reads the list `rules`; findings are noted in the document.
std::vector<Rule> read_rules(const yaml::Node& node, const BuildRequest& request);
/// Fills in strategy.variables. The last rule must match everything.
void apply_rules(const std::vector<Rule>& rules, const BuildRequest& request, Strategy& strategy);

// Shared with files of explicit nodes.
/// `node3:cpu0` or `node3:gpu1` of the cluster; nullopt after a finding.
std::optional<Place> read_place(const yaml::Node& node, const Cluster& cluster);
/// The keys of the synchronizer that `synchronizer` names, without the server.
Synchronizer read_synchronizer(yaml::Mapping& mapping);
/// compressor, powersgd_rank and sparse_as_dense.
void read_encoding(yaml::Mapping& mapping, VariableStrategy& entry);
/// The mapping `graph`.
void read_graph(const yaml::Node& node, GraphStrategy& graph);

}  // namespace simsync
