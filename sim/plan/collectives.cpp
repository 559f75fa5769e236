#include "sim/plan/collectives.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/error.hpp"
#include "sim/plan/collective_maker.hpp"

namespace simsync {

const char* name_of(CollectivePrimitive primitive) {
  switch (primitive) {
    case CollectivePrimitive::AllReduce:
      return "all-reduce";
    case CollectivePrimitive::ReduceScatter:
      return "reduce-scatter";
    case CollectivePrimitive::AllGather:
      return "all-gather";
    case CollectivePrimitive::Broadcast:
      return "broadcast";
    case CollectivePrimitive::Reduce:
      return "reduce";
    case CollectivePrimitive::AllToAll:
      return "all-to-all";
    case CollectivePrimitive::SendReceive:
      return "send-receive";
  }
  return "?";
}

int GroupShape::node_of(int rank) const {
  const auto after = std::upper_bound(node_begin.begin(), node_begin.end(), rank);
  return static_cast<int>(after - node_begin.begin()) - 1;
}

int GroupShape::size_of(int node) const {
  return node_begin[static_cast<std::size_t>(node) + 1] - node_begin[static_cast<std::size_t>(node)];
}

bool GroupShape::alike() const {
  for (int node = 1; node < nodes(); ++node)
    if (size_of(node) != size_of(0)) return false;
  return true;
}

std::optional<CollectiveAlgorithm> only_algorithm(CollectivePrimitive primitive) {
  switch (primitive) {
    case CollectivePrimitive::AllReduce:
      return std::nullopt;
    case CollectivePrimitive::ReduceScatter:
    case CollectivePrimitive::AllGather:
    case CollectivePrimitive::Broadcast:
    case CollectivePrimitive::Reduce:
      return CollectiveAlgorithm::Ring;
    case CollectivePrimitive::AllToAll:
    case CollectivePrimitive::SendReceive:
      return CollectiveAlgorithm::Pairwise;
  }
  return std::nullopt;
}

bool detail::is_chain(CollectivePrimitive primitive) {
  return primitive == CollectivePrimitive::Broadcast || primitive == CollectivePrimitive::Reduce ||
         primitive == CollectivePrimitive::SendReceive;
}

std::pair<double, int> detail::ring_amount(CollectivePrimitive primitive, int n) {
  switch (primitive) {
    case CollectivePrimitive::AllReduce:
      return {2.0 * (n - 1) / n, 2 * (n - 1)};
    case CollectivePrimitive::ReduceScatter:
      return {1.0 * (n - 1) / n, n - 1};
    case CollectivePrimitive::AllGather:
      return {1.0 * (n - 1), n - 1};  // every rank contributes the payload
    case CollectivePrimitive::Broadcast:
    case CollectivePrimitive::Reduce:
    case CollectivePrimitive::AllToAll:
    case CollectivePrimitive::SendReceive:
      SIMSYNC_ASSERT(false);  // they go round no ring
  }
  return {0.0, 0};
}

using detail::Maker;
using detail::ring_amount;

namespace {

/// One ring through all ranks, node by node, so that every node is entered and left once.
void make_ring(Maker& maker, CollectivePrimitive primitive, const GroupShape& group, int only_node) {
  const auto [bytes, rounds] = ring_amount(primitive, group.ranks());
  std::vector<int> order;
  for (int node = 0; node < group.nodes(); ++node) {
    const bool next_to_it = node == only_node || node == (only_node + 1) % group.nodes();
    if (only_node >= 0 && !next_to_it) continue;
    for (int r = group.node_begin[static_cast<std::size_t>(node)];
         r < group.node_begin[static_cast<std::size_t>(node) + 1]; ++r)
      order.push_back(r);
  }
  maker.ring(order, bytes, rounds);
}

/// Reduce-scatter in each node, a ring between nodes for each local rank, all-gather in each node.
void make_hierarchical(Maker& maker, const GroupShape& group, int only_node) {
  const auto begin = [&](int node) { return group.node_begin[static_cast<std::size_t>(node)]; };
  const int nodes = group.nodes();
  const int g = group.size_of(0);
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

/// The ring cut open before the root (broadcast, send/receive) or behind it (reduce), so that it is the first or the
/// last: messages flow through.
void make_chain(Maker& maker, const CollectiveKind& kind, int ranks, int chunks) {
  const int first = kind.root + (kind.primitive == CollectivePrimitive::Reduce ? 1 : 0);
  const int line = maker.pipeline({.chain = true});
  int previous = -1;
  for (int place = 0; place + 1 < ranks; ++place)
    previous = maker.add({.from = (first + place) % ranks,
                          .to = (first + place + 1) % ranks,
                          .bytes = 1.0,
                          .rounds = chunks,
                          .pipeline = line,
                          .needs = {previous},
                          .lag = 0,
                          .after = {}});
}

/// One message from every rank to every other, all at a time.
void make_all_to_all(Maker& maker, int ranks) {
  const int line = maker.pipeline(false);
  for (int distance = 1; distance < ranks; ++distance)
    for (int from = 0; from < ranks; ++from)
      maker.add({.from = from,
                 .to = (from + distance) % ranks,
                 .bytes = 1.0 / ranks,
                 .rounds = 1,
                 .pipeline = line,
                 .needs = {},
                 .lag = 0,
                 .after = {}});
}

/// A chain up to the first rank and back: reduce, then broadcast, pipelined.
void make_broadcast_reduce(Maker& maker, const GroupShape& group, int chunks) {
  const int n = group.ranks();
  const int line = maker.pipeline({.ring = false,
                                   .fill_intra = 2 * (n - group.nodes()),
                                   .fill_inter = 2 * (group.nodes() - 1),
                                   .fill_shared = 2.0 * (group.nodes() - 1)});
  int previous = -1;
  const auto pass_on = [&](int from, int to) {
    previous = maker.add({.from = from,
                          .to = to,
                          .bytes = 1.0,
                          .rounds = chunks,
                          .pipeline = line,
                          .needs = {previous},
                          .lag = 0,
                          .after = {}});
  };
  for (int r = n - 1; r > 0; --r) pass_on(r, r - 1);
  for (int r = 1; r < n; ++r) pass_on(r - 1, r);
}

/// Same local ranks, but of another node; a hop that left `from` leaves `to`.
void move_to_node(CollectiveSchedule& schedule, const GroupShape& group, int from, int to) {
  const auto begin = [&](int node) { return group.node_begin[static_cast<std::size_t>(node)]; };
  for (auto& hop : schedule.hops) {
    const int far = group.node_of(hop.to);
    hop.to = begin(far == from ? to : (to + 1) % group.nodes()) + (hop.to - begin(far));
    hop.from = begin(to) + (hop.from - begin(from));
  }
}

}  // namespace

bool is_rotatable(const CollectiveKind& kind) {
  return only_algorithm(kind.primitive).value_or(kind.algorithm) == CollectiveAlgorithm::Ring &&
         !detail::is_chain(kind.primitive);
}

CollectiveSchedule schedule_of(const CollectiveKind& kind, const GroupShape& group, int chunks, int only_node) {
  if (group.ranks() < 2) return {};
  SIMSYNC_ASSERT(kind.root >= 0 && kind.root < group.ranks());
  SIMSYNC_ASSERT(kind.primitive != CollectivePrimitive::SendReceive || group.ranks() == 2);
  const CollectiveAlgorithm algorithm = only_algorithm(kind.primitive).value_or(kind.algorithm);
  SIMSYNC_ASSERT(algorithm != CollectiveAlgorithm::Hierarchical || group.alike());
  const bool tree = algorithm == CollectiveAlgorithm::DoubleBinaryTree;
  const int made_for = only_node >= 0 && tree ? detail::busiest_tree_node(group) : only_node;
  Maker maker(group, made_for);
  switch (algorithm) {
    case CollectiveAlgorithm::Auto:
    case CollectiveAlgorithm::Best:
      SIMSYNC_ASSERT(!is_choice(algorithm));
      break;
    case CollectiveAlgorithm::Ring:
    case CollectiveAlgorithm::Pairwise:
      if (detail::is_chain(kind.primitive)) {
        make_chain(maker, kind, group.ranks(), chunks);
      } else if (kind.primitive == CollectivePrimitive::AllToAll) {
        make_all_to_all(maker, group.ranks());
      } else {
        make_ring(maker, kind.primitive, group, only_node);
      }
      break;
    case CollectiveAlgorithm::DoubleBinaryTree:
      detail::make_double_tree(maker, group, chunks);
      break;
    case CollectiveAlgorithm::HalvingDoubling:
      detail::make_halving_doubling(maker, group.ranks());
      break;
    case CollectiveAlgorithm::Hierarchical:
      make_hierarchical(maker, group, only_node);
      break;
    case CollectiveAlgorithm::BroadcastReduce:
      make_broadcast_reduce(maker, group, chunks);
      break;
  }
  CollectiveSchedule schedule = maker.take();
  if (made_for != only_node) move_to_node(schedule, group, made_for, only_node);
  return schedule;
}

}  // namespace simsync
