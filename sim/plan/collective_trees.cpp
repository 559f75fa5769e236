// Double binary tree: hops, and how long its first message is on its way.
#include <algorithm>
#include <functional>

#include "sim/plan/collective_maker.hpp"

namespace simsync::detail {
namespace {

/// A rooted tree over nodes: parent of each node, -1 at the root.
using Parents = std::vector<int>;

/// In-order binary tree: nodes at odd positions of each power of two are inner, so every even node is a leaf.
Parents in_order_tree(int nodes) {
  Parents parent(static_cast<std::size_t>(nodes), -1);
  const std::function<int(int, int)> build = [&](int low, int high) -> int {
    if (low >= high) return -1;
    int half = 1;
    while (half * 2 <= high - low) half *= 2;
    const int root = low + half - 1;
    for (const int child : {build(low, root), build(root + 1, high)}) {
      if (child >= 0) parent[static_cast<std::size_t>(child)] = root;
    }
    return root;
  };
  build(0, nodes);
  return parent;
}

int depth_of(const Parents& parent) {
  std::vector<int> depth(parent.size(), -1);
  int deepest = 0;
  for (std::size_t v = 0; v < parent.size(); ++v) {
    int steps = 0;
    for (int u = static_cast<int>(v); parent[static_cast<std::size_t>(u)] >= 0; u = parent[static_cast<std::size_t>(u)])
      ++steps;
    deepest = std::max(deepest, steps);
  }
  return deepest;
}

/// Time of the first message up and down a tree when a message on a NIC of its own takes 1. Children that arrive
/// together share their parent's NIC; on the way down they always do.
class FirstMessage {
public:
  explicit FirstMessage(const Parents& parent) : children_(parent.size()) {
    for (std::size_t v = 0; v < parent.size(); ++v) {
      if (parent[v] < 0) root_ = v;
      if (parent[v] >= 0) children_[static_cast<std::size_t>(parent[v])].push_back(v);
    }
  }
  [[nodiscard]] double up_and_down() const { return up(root_) + down(root_); }

private:
  [[nodiscard]] double up(std::size_t v) const {
    std::vector<double> starts;
    for (const std::size_t child : children_[v]) starts.push_back(up(child));
    std::sort(starts.begin(), starts.end());
    double busy = 0.0;  // the NIC never rests while something is on its way, however it is shared
    for (const double start : starts) busy = std::max(busy, start) + 1.0;
    return busy;
  }
  [[nodiscard]] double down(std::size_t v) const {
    double last = 0.0;
    for (const std::size_t child : children_[v])
      last = std::max(last, static_cast<double>(children_[v].size()) + down(child));
    return last;
  }

  std::vector<std::vector<std::size_t>> children_;
  std::size_t root_ = 0;
};

/// Reduce up and broadcast down one tree whose inner-node part is a chain to and from the leader.
class TreeMaker {
public:
  TreeMaker(Maker& maker, const GroupShape& group, Parents parent, double bytes, int chunks, bool reversed)
      : maker_(maker), group_(group), parent_(std::move(parent)), bytes_(bytes), chunks_(chunks), reversed_(reversed) {}

  void make() {
    const int nodes = group_.nodes();
    line_ = maker_.pipeline({.ring = false,
                             .fill_intra = 2 * (size_of_largest_node() - 1),
                             .fill_inter = 2 * depth_of(parent_),
                             .fill_shared = FirstMessage(parent_).up_and_down()});
    std::vector<std::vector<int>> arriving(static_cast<std::size_t>(nodes));  // upward hops into each leader
    for (int node = 0; node < nodes; ++node) {
      int previous = -1;
      const auto chain = chain_of(node);
      for (std::size_t i = chain.size() - 1; i >= 1; --i) previous = edge(chain[i], chain[i - 1], {previous});
      arriving[static_cast<std::size_t>(node)].push_back(previous);
    }
    std::vector<int> order(static_cast<std::size_t>(nodes));  // children before parents
    for (int v = 0; v < nodes; ++v) order[static_cast<std::size_t>(v)] = v;
    std::vector<int> level(static_cast<std::size_t>(nodes), 0);
    for (int v = 0; v < nodes; ++v)
      for (int u = v; parent_of(u) >= 0; u = parent_of(u)) ++level[static_cast<std::size_t>(v)];
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return level[static_cast<std::size_t>(a)] > level[static_cast<std::size_t>(b)];
    });
    for (const int v : order) {
      if (parent_of(v) < 0) continue;
      arriving[static_cast<std::size_t>(parent_of(v))].push_back(
          edge(leader(v), leader(parent_of(v)), arriving[static_cast<std::size_t>(v)]));
    }
    std::vector<std::vector<int>> down(static_cast<std::size_t>(nodes));
    for (auto v = order.rbegin(); v != order.rend(); ++v) {
      const auto i = static_cast<std::size_t>(*v);
      if (parent_of(*v) < 0) {
        down[i] = arriving[i];
      } else {
        down[i] = {edge(leader(parent_of(*v)), leader(*v), down[static_cast<std::size_t>(parent_of(*v))])};
      }
      std::vector<int> previous = down[i];
      const auto chain = chain_of(*v);
      for (std::size_t k = 1; k < chain.size(); ++k) previous = {edge(chain[k - 1], chain[k], previous)};
    }
  }

private:
  [[nodiscard]] int parent_of(int node) const { return parent_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] int size_of_largest_node() const {
    int largest = 0;
    for (int node = 0; node < group_.nodes(); ++node)
      largest = std::max(largest, static_cast<int>(chain_of(node).size()));
    return largest;
  }
  /// Ranks of a node from its leader on.
  [[nodiscard]] std::vector<int> chain_of(int node) const {
    std::vector<int> ranks;
    for (int r = group_.node_begin[static_cast<std::size_t>(node)];
         r < group_.node_begin[static_cast<std::size_t>(node) + 1]; ++r)
      ranks.push_back(r);
    if (reversed_) std::reverse(ranks.begin(), ranks.end());
    return ranks;
  }
  [[nodiscard]] int leader(int node) const {
    return reversed_ ? group_.node_begin[static_cast<std::size_t>(node) + 1] - 1
                     : group_.node_begin[static_cast<std::size_t>(node)];
  }
  int edge(int from, int to, std::vector<int> needs) {
    return maker_.add({.from = from,
                       .to = to,
                       .bytes = bytes_,
                       .rounds = chunks_,
                       .pipeline = line_,
                       .needs = std::move(needs),
                       .lag = 0,
                       .after = {}});
  }

  Maker& maker_;
  const GroupShape& group_;
  Parents parent_;
  double bytes_;
  int chunks_;
  bool reversed_;
  int line_ = 0;
};

/// The second tree is the first one shifted by one node: a leaf of one is inner in the other.
Parents shifted(const Parents& parent) {
  const int n = static_cast<int>(parent.size());
  Parents out(parent.size(), -1);
  for (int v = 0; v < n; ++v) {
    const int p = parent[static_cast<std::size_t>(v)];
    out[static_cast<std::size_t>((v + 1) % n)] = p < 0 ? -1 : (p + 1) % n;
  }
  return out;
}

}  // namespace

void make_double_tree(Maker& maker, const GroupShape& group, int chunks) {
  const Parents first = in_order_tree(group.nodes());
  if (group.nodes() == 1) {
    TreeMaker(maker, group, first, 0.5, chunks, false).make();
    TreeMaker(maker, group, first, 0.5, chunks, true).make();
    return;
  }
  TreeMaker(maker, group, first, 0.5, chunks, false).make();
  TreeMaker(maker, group, shifted(first), 0.5, chunks, true).make();
}

int busiest_tree_node(const GroupShape& group) {
  const Parents first = in_order_tree(group.nodes());
  std::vector<int> hops(static_cast<std::size_t>(group.nodes()), 0);
  for (const Parents& tree : {first, shifted(first)}) {
    for (std::size_t v = 0; v < tree.size(); ++v) {
      if (tree[v] < 0) continue;
      ++hops[v];
      ++hops[static_cast<std::size_t>(tree[v])];
    }
  }
  return static_cast<int>(std::max_element(hops.begin(), hops.end()) - hops.begin());
}

double busiest_tree_share(int nodes) {
  const Parents first = in_order_tree(nodes);
  std::vector<double> bytes(static_cast<std::size_t>(nodes), 0.0);
  for (const Parents& tree : {first, shifted(first)}) {
    for (std::size_t v = 0; v < tree.size(); ++v) {
      if (tree[v] < 0) continue;
      bytes[v] += 0.5;
      bytes[static_cast<std::size_t>(tree[v])] += 0.5;
    }
  }
  return *std::max_element(bytes.begin(), bytes.end());
}

TreePath longest_path(int nodes) {
  const Parents parent = in_order_tree(nodes);
  return {depth_of(parent), FirstMessage(parent).up_and_down()};
}

}  // namespace simsync::detail
