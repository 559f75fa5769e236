// Making the hops of a schedule. Private to sim/plan.
#pragma once
#include <utility>
#include <vector>

#include "sim/plan/collectives.hpp"

namespace simsync::detail {

/// Collects hops; leaves out what a representative does not do.
class Maker {
public:
  Maker(const GroupShape& group, int only_node) : group_(group), only_node_(only_node) {}

  int pipeline(bool ring) { return pipeline(Pipeline{.ring = ring}); }
  int pipeline(const Pipeline& line) {
    out_.pipelines.push_back(line);
    return static_cast<int>(out_.pipelines.size()) - 1;
  }
  [[nodiscard]] bool wanted(int from) const { return only_node_ < 0 || group_.node_of(from) == only_node_; }
  /// The id of the new hop, or -1 when it was left out.
  int add(Hop hop) {
    if (!wanted(hop.from)) return -1;
    std::erase(hop.needs, -1);
    std::erase(hop.after, -1);
    out_.hops.push_back(std::move(hop));
    return static_cast<int>(out_.hops.size()) - 1;
  }
  Hop& hop(int id) { return out_.hops[static_cast<std::size_t>(id)]; }
  CollectiveSchedule take() { return std::move(out_); }

  /// Ring over `order`; hop i leaves order[i]. `after[i]` are hops that order[i] must have done before.
  std::vector<int> ring(const std::vector<int>& order, double bytes, int rounds,
                        const std::vector<std::vector<int>>& after = {}) {
    const int n = static_cast<int>(order.size());
    std::vector<int> ids(order.size(), -1);
    if (n < 2) return ids;
    const int line = pipeline(true);
    for (std::size_t i = 0; i < order.size(); ++i) {
      ids[i] = add({.from = order[i],
                    .to = order[(i + 1) % order.size()],
                    .bytes = bytes,
                    .rounds = rounds,
                    .pipeline = line,
                    .needs = {},
                    .lag = 1,
                    .after = after.empty() ? std::vector<int>{} : after[i]});
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      const int previous = ids[(i + order.size() - 1) % order.size()];
      if (ids[i] >= 0 && previous >= 0) hop(ids[i]).needs = {previous};
    }
    return ids;
  }

private:
  const GroupShape& group_;
  int only_node_;
  CollectiveSchedule out_;
};

/// Whether its messages flow from the root through a chain, or to it.
bool is_chain(CollectivePrimitive primitive);

/// Share of the payload that a hop of a ring over `n` ranks carries, and the number of rounds.
std::pair<double, int> ring_amount(CollectivePrimitive primitive, int n);

/// Two trees over the nodes, each with half of the payload; inside nodes they are chains from and to the leader.
void make_double_tree(Maker& maker, const GroupShape& group, int chunks);
/// The node whose hops of a double tree are the most; all hops of a representative are made to look like its own.
int busiest_tree_node(const GroupShape& group);

/// Binary blocks: `ranks` as a sum of powers of two, the largest first; each block is a range of ranks.
struct BinaryBlock {
  int begin = 0;
  int size = 1;
};
std::vector<BinaryBlock> binary_blocks(int ranks);
/// Vector halving and distance doubling inside every block; partial sums go from each block to the next larger one, and
/// the result comes back.
void make_halving_doubling(Maker& maker, int ranks);

/// The most that a node sends, or receives, over its NIC by the two trees together, as a share of the payload.
double busiest_tree_share(int nodes);

/// Way of the first message over a tree of nodes.
struct TreePath {
  int depth = 0;               ///< hops from the deepest leaf to the root
  double first_message = 0.0;  ///< up and down, in messages that have a NIC to themselves
};
TreePath longest_path(int nodes);

}  // namespace simsync::detail
