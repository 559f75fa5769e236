// From rules to one entry per variable.
#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "strategies/partition.hpp"
#include "strategies/placement.hpp"
#include "strategies/rules.hpp"

namespace simsync {
namespace {

/// Loads are shared by all rules that name the same servers, so that two rules do not both begin at the first one.
class Placer {
public:
  explicit Placer(const Cluster& cluster) : cluster_(cluster) {}

  std::vector<Place> place(const Rule& rule, const Variable& variable, const std::vector<std::int64_t>& elements) {
    if (rule.placement == PlacementKind::First) return std::vector<Place>(elements.size(), rule.servers.front());
    Placement& placement = placement_for(rule);
    if (rule.placement == PlacementKind::Deal)
      return placement.deal(elements.size(), static_cast<double>(variable.bytes().count));
    std::vector<Place> places;
    places.reserve(elements.size());
    for (const std::int64_t count : elements) {
      const auto bytes = static_cast<double>(count * size_of(variable.dtype));
      if (rule.placement == PlacementKind::RoundRobin) places.push_back(placement.next_in_turn());
      if (rule.placement == PlacementKind::LoadBalanced) places.push_back(placement.least_loaded(bytes));
      if (rule.placement == PlacementKind::Bandwidth) places.push_back(placement.largest_deficit(bytes));
    }
    return places;
  }

private:
  Placement& placement_for(const Rule& rule) {
    const bool weighted = rule.placement == PlacementKind::Bandwidth;
    const auto key = std::pair{rule.servers, weighted};
    const auto found = placements_.find(key);
    if (found != placements_.end()) return found->second;
    return placements_
        .emplace(key,
                 Placement(rule.servers, weighted ? nic_bandwidths(cluster_, rule.servers) : std::vector<double>{}))
        .first->second;
  }

  const Cluster& cluster_;
  std::map<std::pair<std::vector<Place>, bool>, Placement> placements_;
};

struct Cut {
  int axis = kWholeVariable;
  std::vector<std::int64_t> elements;
};

Cut cut(const Rule& rule, const Variable& variable) {
  if (rule.piece) {
    const std::int64_t slice = std::max<std::int64_t>(1, rule.piece->count / size_of(variable.dtype));
    const bool rows = travels_sparse(variable, rule.entry);
    return {rows ? 0 : kFlatAxis, rows ? cut_rows(variable, slice) : cut_flat(variable.elements(), slice)};
  }
  const auto axis = static_cast<std::size_t>(rule.axis);
  if (axis >= variable.shape.size()) return {kWholeVariable, {variable.elements()}};
  return {rule.axis, split_axis(variable, rule.axis, std::min(rule.shards, variable.shape[axis]))};
}

/// Gives each rule's all-reduced shards their groups, in the order in which backward produces gradients.
class Grouper {
public:
  explicit Grouper(const std::vector<Rule>& rules) : rules_(rules), open_(rules.size()) {}

  void add(std::size_t rule, const Variable& variable, VariableStrategy& entry) {
    const bool grouped = rules_[rule].bucket || rules_[rule].chunk > 0;
    if (!grouped) return;
    for (auto& shard : entry.shards) {
      Open& open = open_[rule];
      if (open.group < 0) open = {.group = next_group_++, .members = 0, .bytes = {}};
      std::get<AllReduceSynchronizer>(shard.synchronizer).group = open.group;
      ++open.members;
      open.bytes += Bytes{shard.elements * size_of(variable.dtype)};
      const bool full = rules_[rule].bucket ? open.bytes >= *rules_[rule].bucket : open.members >= rules_[rule].chunk;
      if (full) open.group = -1;
    }
  }

private:
  struct Open {
    int group = -1;
    std::int64_t members = 0;
    Bytes bytes;
  };
  const std::vector<Rule>& rules_;
  std::vector<Open> open_;
  int next_group_ = 0;
};

VariableStrategy make_entry(const Rule& rule, const Model& model, VariableId id, Placer& placer) {
  const Variable& variable = model.variable(id);
  const Cut shards = cut(rule, variable);
  VariableStrategy entry = rule.entry;
  entry.variable = id;
  entry.sparse_as_dense = entry.sparse_as_dense && variable.sparse;
  entry.partition_axis = shards.elements.size() > 1 ? shards.axis : kWholeVariable;
  if (rule.priority_by_layer) entry.priority = static_cast<int>(variable.layer);
  for (const std::int64_t elements : shards.elements)
    entry.shards.push_back({.elements = elements, .synchronizer = rule.synchronizer});
  if (!std::holds_alternative<PsSynchronizer>(rule.synchronizer)) return entry;
  const auto places = placer.place(rule, variable, shards.elements);
  for (std::size_t k = 0; k < places.size(); ++k)
    std::get<PsSynchronizer>(entry.shards[k].synchronizer).server = places[k];
  return entry;
}

}  // namespace

void apply_rules(const std::vector<Rule>& rules, const BuildRequest& request, Strategy& strategy) {
  const Model& model = request.model;
  Placer placer(request.cluster);
  std::vector<std::size_t> decided(model.variables().size());
  std::int64_t shards = 0;
  for (VariableId id = 0; id < model.variables().size(); ++id) {
    const auto rule = std::find_if(rules.begin(), rules.end(),
                                   [&](const Rule& r) { return r.match.covers(model, model.variable(id)); });
    SIMSYNC_ASSERT(rule != rules.end());
    decided[id] = static_cast<std::size_t>(rule - rules.begin());
    strategy.variables.push_back(make_entry(*rule, model, id, placer));
    shards += static_cast<std::int64_t>(strategy.variables.back().shards.size());
    expect_few_shards(shards);
  }
  Grouper grouper(rules);
  for (const VariableId id : model.backward_order())
    grouper.add(decided[id], model.variable(id), strategy.variables[id]);
}

}  // namespace simsync
