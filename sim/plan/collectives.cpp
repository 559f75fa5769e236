#include "sim/plan/collectives.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/error.hpp"

namespace simsync {

int GroupShape::node_of(int rank) const {
  const auto after = std::upper_bound(node_begin.begin(), node_begin.end(), rank);
  return static_cast<int>(after - node_begin.begin()) - 1;
}

namespace {

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
      ids[i] = add({.from = order[i], .to = order[(i + 1) % order.size()], .bytes = bytes, .rounds = rounds, .pipeline = line,
                    .needs = {}, .lag = 1, .after = after.empty() ? std::vector<int>{} : after[i]});
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

/// Share of the payload that a ring hop carries and the number of rounds.
std::pair<double, int> ring_amount(CollectivePrimitive primitive, int n) {
  switch (primitive) {
    case CollectivePrimitive::AllReduce: return {2.0 * (n - 1) / n, 2 * (n - 1)};
    case CollectivePrimitive::ReduceScatter: return {1.0 * (n - 1) / n, n - 1};
    case CollectivePrimitive::AllGather: return {1.0 * (n - 1), n - 1};  // every rank contributes the payload
  }
  return {0.0, 0};
}

/// One ring through all ranks, node by node, so that every node is entered and left once.
void make_ring(Maker& maker, CollectivePrimitive primitive, const GroupShape& group, int only_node) {
  const auto [bytes, rounds] = ring_amount(primitive, group.ranks());
  std::vector<int> order;
  for (int node = 0; node < group.nodes(); ++node) {
    const bool next_to_it = node == only_node || node == (only_node + 1) % group.nodes();
    if (only_node >= 0 && !next_to_it) continue;
    for (int r = group.node_begin[static_cast<std::size_t>(node)]; r < group.node_begin[static_cast<std::size_t>(node) + 1]; ++r) order.push_back(r);
  }
  maker.ring(order, bytes, rounds);
}

/// Recursive doubling over the largest power of two; the ranks beyond it fold in before and out after.
void make_halving_doubling(Maker& maker, const GroupShape& group) {
  const int n = group.ranks();
  int core = 1;
  int levels = 0;
  for (; core * 2 <= n; core *= 2) ++levels;
  std::vector<std::vector<int>> before(static_cast<std::size_t>(n));  // what each rank last sent or received
  const auto exchange = [&](const std::vector<std::pair<int, int>>& pairs, double bytes) {
    const int line = maker.pipeline(false);
    std::vector<std::vector<int>> next = before;
    for (const auto& [from, to] : pairs) {
      next[static_cast<std::size_t>(from)].clear();
      next[static_cast<std::size_t>(to)].clear();
    }
    for (const auto& [from, to] : pairs) {
      // Both partners must have done with the round before: the receiver adds into what it received there.
      std::vector<int> after = before[static_cast<std::size_t>(from)];
      after.insert(after.end(), before[static_cast<std::size_t>(to)].begin(), before[static_cast<std::size_t>(to)].end());
      std::sort(after.begin(), after.end());
      after.erase(std::unique(after.begin(), after.end()), after.end());
      const int id = maker.add({.from = from, .to = to, .bytes = bytes, .rounds = 1, .pipeline = line, .needs = {}, .lag = 0,
                                .after = std::move(after)});
      next[static_cast<std::size_t>(from)].push_back(id);
      next[static_cast<std::size_t>(to)].push_back(id);
    }
    before = std::move(next);
  };
  std::vector<std::pair<int, int>> fold;
  for (int r = core; r < n; ++r) fold.emplace_back(r, r - core);
  if (!fold.empty()) exchange(fold, 1.0);
  const auto partners = [&](int distance) {
    std::vector<std::pair<int, int>> pairs;
    for (int r = 0; r < core; ++r) pairs.emplace_back(r, r ^ distance);
    return pairs;
  };
  // Halving sends half of what is left to the farthest partner first; doubling retraces the way.
  for (int level = 0; level < levels; ++level) exchange(partners(core >> (level + 1)), std::ldexp(1.0, -(level + 1)));
  for (int level = levels - 1; level >= 0; --level) exchange(partners(core >> (level + 1)), std::ldexp(1.0, -(level + 1)));
  for (auto& [from, to] : fold) std::swap(from, to);
  if (!fold.empty()) exchange(fold, 1.0);
}

/// Reduce-scatter in each node, a ring between nodes for each local rank, all-gather in each node.
void make_hierarchical(Maker& maker, const GroupShape& group, int only_node) {
  const auto begin = [&](int node) { return group.node_begin[static_cast<std::size_t>(node)]; };
  const int nodes = group.nodes();
  const int g = begin(1) - begin(0);
  std::vector<std::vector<int>> done(static_cast<std::size_t>(group.ranks()));
  const auto inside = [&](double bytes) {
    for (int node = 0; node < nodes; ++node) {
      if (only_node >= 0 && node != only_node) continue;
      std::vector<int> order;
      std::vector<std::vector<int>> after;
      for (int r = begin(node); r < begin(node + 1); ++r) {
        order.push_back(r);
        after.push_back(done[static_cast<std::size_t>(r)]);
      }
      const auto ids = maker.ring(order, bytes, g - 1, after);
      for (std::size_t i = 0; i < order.size() && g > 1; ++i)
        done[static_cast<std::size_t>(order[i])] = {ids[i], ids[(i + order.size() - 1) % order.size()]};
    }
  };
  inside(1.0 * (g - 1) / g);
  for (int local = 0; local < g && nodes > 1; ++local) {
    std::vector<int> order;
    std::vector<std::vector<int>> after;
    for (int node = 0; node < nodes; ++node) {
      order.push_back(begin(node) + local);
      after.push_back(done[static_cast<std::size_t>(order.back())]);
    }
    const auto ids = maker.ring(order, 2.0 * (nodes - 1) / nodes / g, 2 * (nodes - 1), after);
    for (std::size_t i = 0; i < order.size(); ++i)
      done[static_cast<std::size_t>(order[i])] = {ids[i], ids[(i + order.size() - 1) % order.size()]};
  }
  inside(1.0 * (g - 1) / g);
}

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
    for (int u = static_cast<int>(v); parent[static_cast<std::size_t>(u)] >= 0; u = parent[static_cast<std::size_t>(u)]) ++steps;
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
    for (const std::size_t child : children_[v]) last = std::max(last, static_cast<double>(children_[v].size()) + down(child));
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
    line_ = maker_.pipeline({.ring = false, .fill_intra = 2 * (size_of_largest_node() - 1), .fill_inter = 2 * depth_of(parent_),
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
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return level[static_cast<std::size_t>(a)] > level[static_cast<std::size_t>(b)]; });
    for (const int v : order) {
      if (parent_of(v) < 0) continue;
      arriving[static_cast<std::size_t>(parent_of(v))].push_back(edge(leader(v), leader(parent_of(v)), arriving[static_cast<std::size_t>(v)]));
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
    for (int node = 0; node < group_.nodes(); ++node) largest = std::max(largest, static_cast<int>(chain_of(node).size()));
    return largest;
  }
  /// Ranks of a node from its leader on.
  [[nodiscard]] std::vector<int> chain_of(int node) const {
    std::vector<int> ranks;
    for (int r = group_.node_begin[static_cast<std::size_t>(node)]; r < group_.node_begin[static_cast<std::size_t>(node) + 1]; ++r) ranks.push_back(r);
    if (reversed_) std::reverse(ranks.begin(), ranks.end());
    return ranks;
  }
  [[nodiscard]] int leader(int node) const {
    return reversed_ ? group_.node_begin[static_cast<std::size_t>(node) + 1] - 1 : group_.node_begin[static_cast<std::size_t>(node)];
  }
  int edge(int from, int to, std::vector<int> needs) {
    return maker_.add({.from = from, .to = to, .bytes = bytes_, .rounds = chunks_, .pipeline = line_, .needs = std::move(needs),
                       .lag = 0, .after = {}});
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

/// The node whose hops of a double tree are the most; all hops of a representative are made to look like its own.
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

/// A chain up to the first rank and back: reduce, then broadcast, pipelined.
void make_broadcast_reduce(Maker& maker, const GroupShape& group, int chunks) {
  const int n = group.ranks();
  const int line = maker.pipeline({.ring = false, .fill_intra = 2 * (n - group.nodes()), .fill_inter = 2 * (group.nodes() - 1),
                                   .fill_shared = 2.0 * (group.nodes() - 1)});
  int previous = -1;
  for (int r = n - 1; r > 0; --r)
    previous = maker.add({.from = r, .to = r - 1, .bytes = 1.0, .rounds = chunks, .pipeline = line, .needs = {previous}, .lag = 0, .after = {}});
  for (int r = 1; r < n; ++r)
    previous = maker.add({.from = r - 1, .to = r, .bytes = 1.0, .rounds = chunks, .pipeline = line, .needs = {previous}, .lag = 0, .after = {}});
}

}  // namespace

CollectiveSchedule schedule_of(CollectivePrimitive primitive, CollectiveAlgorithm algorithm, const GroupShape& group, int chunks,
                               int only_node) {
  if (group.ranks() < 2) return {};
  // Only all-reduce has more than one algorithm; the other primitives run on a ring.
  if (primitive != CollectivePrimitive::AllReduce) algorithm = CollectiveAlgorithm::Ring;
  const bool alike = [&] {
    for (std::size_t i = 1; i < group.node_begin.size(); ++i)
      if (group.node_begin[i] - group.node_begin[i - 1] != group.node_begin[1]) return false;
    return true;
  }();
  if (algorithm == CollectiveAlgorithm::Hierarchical && !alike) algorithm = CollectiveAlgorithm::Ring;
  const bool tree = algorithm == CollectiveAlgorithm::DoubleBinaryTree;
  const int made_for = only_node >= 0 && tree ? busiest_tree_node(group) : only_node;
  Maker maker(group, made_for);
  switch (algorithm) {
    case CollectiveAlgorithm::Auto: SIMSYNC_ASSERT(algorithm != CollectiveAlgorithm::Auto); break;
    case CollectiveAlgorithm::Ring: make_ring(maker, primitive, group, only_node); break;
    case CollectiveAlgorithm::DoubleBinaryTree: make_double_tree(maker, group, chunks); break;
    case CollectiveAlgorithm::HalvingDoubling: make_halving_doubling(maker, group); break;
    case CollectiveAlgorithm::Hierarchical: make_hierarchical(maker, group, only_node); break;
    case CollectiveAlgorithm::BroadcastReduce: make_broadcast_reduce(maker, group, chunks); break;
  }
  CollectiveSchedule schedule = maker.take();
  if (made_for != only_node) {
    // Same local ranks, but of the node that was asked for; a hop that left the busiest node leaves this one.
    const auto begin = [&](int node) { return group.node_begin[static_cast<std::size_t>(node)]; };
    for (auto& hop : schedule.hops) {
      const int to_node = group.node_of(hop.to);
      const int stand_in = to_node == made_for ? only_node : (only_node + 1) % group.nodes();
      hop.to = begin(stand_in) + (hop.to - begin(to_node));
      hop.from = begin(only_node) + (hop.from - begin(made_for));
    }
  }
  return schedule;
}

int pipeline_chunks(CollectiveAlgorithm algorithm, const GroupShape& group, double bytes) {
  constexpr double kKiB = 1024.0;
  const bool tree = algorithm == CollectiveAlgorithm::DoubleBinaryTree;
  if (!tree && algorithm != CollectiveAlgorithm::BroadcastReduce) return 1;
  const double share = tree ? bytes / 2.0 : bytes;
  const double depth = group.ranks() / group.nodes() - 1 + std::floor(std::log2(group.nodes()));
  double chunk = 512.0 * kKiB;
  const auto shrink = [&](double pieces_per_level, double least) {
    while (tree && share / chunk < pieces_per_level * depth && chunk > least) chunk /= 2.0;
  };
  shrink(8.0, 128.0 * kKiB);
  shrink(4.0, 64.0 * kKiB);
  shrink(1.0, 32.0 * kKiB);
  constexpr int kMost = 512;
  return std::clamp(static_cast<int>(std::ceil(share / chunk)), 1, kMost);
}

Seconds collective_time(CollectivePrimitive primitive, CollectiveAlgorithm algorithm, const GroupShape& group, double bytes,
                        const LinkRates& rates) {
  const int n = group.ranks();
  if (n < 2) return Seconds{0.0};
  const int nodes = group.nodes();
  const double g = static_cast<double>(n) / nodes;
  const double slowest = nodes > 1 ? std::min(rates.rate_inter.value(), rates.rate_intra.value()) : rates.rate_intra.value();
  const double alpha_intra = n > nodes ? rates.alpha_intra.value() : 0.0;
  const double alpha_inter = nodes > 1 ? rates.alpha_inter.value() : 0.0;
  if (algorithm == CollectiveAlgorithm::DoubleBinaryTree && primitive == CollectivePrimitive::AllReduce) {
    // The first message goes up and down; the others follow it at the pace of the busiest link: 4 messages of S / 2.
    const Parents parent = in_order_tree(nodes);
    const double message = bytes / 2.0 / pipeline_chunks(algorithm, group, bytes) / slowest;
    const double latency = 2.0 * ((g - 1.0) * alpha_intra + depth_of(parent) * alpha_inter);
    const double first = (2.0 * (g - 1.0) + FirstMessage(parent).up_and_down()) * message;
    return Seconds{latency + std::max(0.0, first - 4.0 * message) + 2.0 * bytes / slowest};
  }
  const auto [share, rounds] = ring_amount(primitive, n);
  const double inter_share = nodes > 1 ? static_cast<double>(nodes) / n : 0.0;
  const double alpha = (1.0 - inter_share) * alpha_intra + inter_share * alpha_inter;
  return Seconds{rounds * alpha + share * bytes / slowest};
}

CollectiveAlgorithm choose_algorithm(CollectiveAlgorithm asked, const GroupShape& group, double bytes, const LinkRates& rates) {
  if (asked != CollectiveAlgorithm::Auto) return asked;
  if (group.nodes() < 2) return CollectiveAlgorithm::Ring;
  const auto time = [&](CollectiveAlgorithm a) { return collective_time(CollectivePrimitive::AllReduce, a, group, bytes, rates); };
  return time(CollectiveAlgorithm::DoubleBinaryTree) < time(CollectiveAlgorithm::Ring) ? CollectiveAlgorithm::DoubleBinaryTree
                                                                                      : CollectiveAlgorithm::Ring;
}

}  // namespace simsync
