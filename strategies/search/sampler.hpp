// Draws strategies from a search space: legal by construction, and the same for the same decisions.
#pragma once
#include <vector>

#include "strategies/placement.hpp"
#include "strategies/search/decisions.hpp"
#include "strategies/search/space.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

/// What strategies are drawn for. Model and cluster must outlive what is made from it.
struct SearchTarget {
  const Model& model;
  const Cluster& cluster;
  int workers = 1;
  int micro_steps = 1;
  Recompute recompute = Recompute::None;
  /// Trials run on this program's own runner, whose servers are processes of their own and hold nothing back; else
  /// servers that are read at the start of a step are TensorFlow's.
  bool own_runner = false;
};

class StrategySampler {
public:
  /// @throws InputError when the space has no strategy for the target.
  StrategySampler(SearchSpace space, const SearchTarget& target);

  /// How many variables are on servers, cut and encoded is drawn first, so that strategies differ by more than the
  /// chance of many coins; then each variable, then servers and groups of all shards together.
  [[nodiscard]] Strategy draw(Decisions& decisions) const;
  /// A copy with one thing drawn anew: some variables, the servers, the groups, or the graph level.
  [[nodiscard]] Strategy mutated(const Strategy& strategy, Decisions& decisions) const;
  /// Graph level and variables of `a`, some of them as in `b`. Of sharded strategies with others: `a`.
  [[nodiscard]] Strategy crossed(const Strategy& a, const Strategy& b, Decisions& decisions) const;

  [[nodiscard]] const SearchSpace& space() const { return space_; }
  [[nodiscard]] const SearchTarget& target() const { return target_; }

private:
  /// What the variables of one strategy have in common: shares of them.
  struct Shares {
    double served = 0.0;
    double cut = 0.0;
    double encoded = 0.0;
    double factors = 0.0;
  };
  [[nodiscard]] bool has(SynchronizerKind kind) const;
  [[nodiscard]] Shares draw_shares(Decisions& decisions) const;
  [[nodiscard]] GraphStrategy draw_graph(Schedule schedule, Decisions& decisions) const;
  void draw_scheduling(GraphStrategy& graph, Decisions& decisions) const;
  void draw_sharding(GraphStrategy& graph, Decisions& decisions) const;
  [[nodiscard]] Fusion draw_fusion(Schedule schedule, Decisions& decisions) const;
  [[nodiscard]] VariableStrategy draw_variable(VariableId id, const Shares& shares, Decisions& decisions) const;
  [[nodiscard]] std::vector<Shard> draw_shards(const Variable& variable, const Shares& shares, VariableStrategy& entry,
                                               Decisions& decisions) const;
  [[nodiscard]] Synchronizer draw_synchronizer(const Variable& variable, const Shares& shares,
                                               Decisions& decisions) const;
  void deal_servers(Strategy& strategy, const std::vector<VariableId>& of, Decisions& decisions) const;
  /// Deals all shards anew where they are on more hosts than may serve.
  void keep_servers(Strategy& strategy, Decisions& decisions) const;
  void deal_groups(Strategy& strategy, Decisions& decisions) const;
  void redraw_variables(Strategy& strategy, Decisions& decisions) const;

  SearchSpace space_;
  SearchTarget target_;
  std::vector<Place> hosts_;
  std::vector<double> bandwidths_;  ///< of their NICs
  bool has_neighbors_ = false;      ///< some node has several workers
};

/// By its graph level and variables.
Schedule schedule_of(const Strategy& strategy);

}  // namespace simsync
