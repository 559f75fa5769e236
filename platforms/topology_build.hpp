// Numbers the links of a Topology. For its own implementation.
#pragma once
#include <string>
#include <vector>

#include "platforms/topology.hpp"

namespace simsync {

/// Fills one Topology; used by its constructors only.
class TopologyBuilder {
public:
  explicit TopologyBuilder(Topology& topology) : topology_(topology), cluster_(topology.cluster_) {}
  void build(const std::vector<int>& node_numbers);

private:
  /// A port charges half of its class's fixed costs: a hop crosses two ports.
  enum class Charge { Whole, Half };

  [[nodiscard]] const LinkClass& link_class(const std::string& name, const NodeGroup& group) const;
  [[nodiscard]] double payload_rate(const LinkClass& link) const;
  detail::LinkRow row(detail::NodeLayout& layout, const LinkClass& link, int units, Charge charge) const;
  [[nodiscard]] detail::NodeLayout layout_of(const NodeGroup& group) const;
  void add_fabric(detail::NodeLayout& layout, const NodeGroup& group) const;
  void add_names_and_rates(const NodeGroup& group, const detail::NodeLayout& layout, int node, int nics);
  [[nodiscard]] int nics_of(const NodeGroup& group, int node) const;
  void add_row(const detail::LinkRow& row, int units, const std::string& prefix, const char* kind, double rate);
  void add_leaves();
  void add_pairs();
  void check_size(std::size_t nodes) const;
  [[nodiscard]] double leaf_rate(int leaf) const;

  Topology& topology_;
  const Cluster& cluster_;
};

}  // namespace simsync
