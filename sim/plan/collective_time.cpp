// Time of a collective without simulating it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "sim/plan/collective_maker.hpp"
#include "sim/plan/collectives.hpp"

namespace simsync {
namespace {

/// A group and its links as plain numbers; kinds of hops that do not occur cost nothing.
struct Terms {
  Terms(const GroupShape& group, const LinkRates& rates)
      : ranks(group.ranks()),
        nodes(group.nodes()),
        per_node(static_cast<double>(ranks) / nodes),
        alpha_intra(ranks > nodes ? rates.alpha_intra.value() : 0.0),
        alpha_inter(nodes > 1 ? rates.alpha_inter.value() : 0.0),
        rate_intra(ranks > nodes ? rates.rate_intra.value() : std::numeric_limits<double>::infinity()),
        rate_inter(nodes > 1 ? rates.rate_inter.value() : std::numeric_limits<double>::infinity()),
        half_intra(ranks > nodes ? rates.half_intra : 0.0),
        half_inter(nodes > 1 ? rates.half_inter : 0.0),
        overlap(rates.overlap) {}
  /// What a message takes besides its time on the wire.
  [[nodiscard]] double fixed(double alpha, double message) const {
    return overlap ? std::max(0.0, alpha - message) : alpha;
  }

  int ranks, nodes;
  double per_node;
  double alpha_intra, alpha_inter;
  double rate_intra, rate_inter;
  double half_intra, half_inter;
  bool overlap;
};

/// Rate of one of `senders` ranks of a node that send to other nodes at the same time, each on a way of its own.
double rate_of_each(const LinkRates& rates, int senders) {
  return std::min(rates.rate_rank.value(), rates.rate_node.value() / senders);
}

/// Every round pays the latency of its hop, on average over the ring; the slowest link sets the pace.
double ring_time(CollectivePrimitive primitive, const Terms& t, double bytes) {
  const auto [share, rounds] = detail::ring_amount(primitive, t.ranks);
  const double inter_share = t.nodes > 1 ? static_cast<double>(t.nodes) / t.ranks : 0.0;
  const double part = share * bytes / rounds;
  const double message = std::max((part + t.half_intra) / t.rate_intra, (part + t.half_inter) / t.rate_inter);
  const double alpha =
      (1.0 - inter_share) * t.fixed(t.alpha_intra, message) + inter_share * t.fixed(t.alpha_inter, message);
  return rounds * (alpha + message);
}

/// The first message goes up and down; the others follow it at the pace of the busiest link or of a hop's own streams.
double tree_time(const Terms& t, double bytes, int chunks, const LinkRates& rates) {
  const detail::TreePath path = detail::longest_path(t.nodes);
  const double message = bytes / 2.0 / chunks;
  const bool far = t.nodes > 1;
  const double on_nic = far ? (message + t.half_inter) / rates.rate_wire.value() : 0.0;
  const double hop = far ? std::max(on_nic, (message + t.half_inter) / rates.rate_tree.value()) : 0.0;
  const bool inside = t.ranks > t.nodes;
  const double near = (message + t.half_intra) / t.rate_intra;
  const double near_hop = inside ? std::max(near, (message + t.half_intra) / rates.rate_intra_tree.value()) : 0.0;
  const double latency =
      2.0 * ((t.per_node - 1.0) * t.fixed(t.alpha_intra, near_hop) + path.depth * t.fixed(t.alpha_inter, hop));
  const double first =
      2.0 * (t.per_node - 1.0) * near_hop + std::max(path.first_message * on_nic, 2.0 * path.depth * hop);
  // Messages that the busiest NIC and the busiest rank inside a node pass in a period, in which each hop passes one.
  const double at_nic = 2.0 * detail::busiest_tree_share(t.nodes);
  const double at_rank = t.per_node > 2.0 ? 4.0 : 2.0;
  const double period = std::max({at_nic * on_nic, hop, at_rank * near, near_hop});
  return latency + std::max(first, period) + (chunks - 1) * period;
}

/// The first message goes to the first rank and back; the others follow at the pace of the busiest link, which in the
/// middle of the chain carries the way up and the way down.
double chain_time(const GroupShape& group, const Terms& t, double bytes, int chunks) {
  int largest = 1;
  for (int node = 0; node < t.nodes; ++node) largest = std::max(largest, group.size_of(node));
  const double message = bytes / chunks;
  const int inside = 2 * (t.ranks - t.nodes);
  const int between = 2 * (t.nodes - 1);
  const double near = (message + t.half_intra) / t.rate_intra;
  const double far = (message + t.half_inter) / t.rate_inter;
  const double first = inside * (t.fixed(t.alpha_intra, near) + near) + between * (t.fixed(t.alpha_inter, far) + far);
  const double period = std::max((largest > 2 ? 2.0 : 1.0) * near, (t.nodes > 2 ? 2.0 : 1.0) * far);
  return std::max(period, first) + (chunks - 1) * period;
}

/// Reduce-scatter inside nodes, one ring per local rank between nodes, all-gather inside nodes.
double hierarchical_time(const Terms& t, double bytes, const LinkRates& rates) {
  const double g = t.per_node;
  const double near = (bytes / g + t.half_intra) / t.rate_intra;
  const double inside = 2.0 * (g - 1.0) * (t.fixed(t.alpha_intra, near) + near);
  if (t.nodes < 2) return inside;
  const double far = (bytes / g / t.nodes + t.half_inter) / rate_of_each(rates, static_cast<int>(g));
  return inside + 2.0 * (t.nodes - 1) * (t.fixed(t.alpha_inter, far) + far);
}

using Pairs = std::vector<std::pair<int, int>>;  ///< sender and receiver

/// Every sender sends its receivers `bytes` each, all at a time. The slower kind of hop ends it.
double exchange_time(const GroupShape& group, const Terms& t, const LinkRates& rates, const Pairs& pairs,
                     double bytes) {
  std::vector<int> inside(static_cast<std::size_t>(t.ranks), 0);  // messages that a rank sends inside its node
  std::vector<int> out(static_cast<std::size_t>(t.nodes), 0);
  std::vector<int> in(static_cast<std::size_t>(t.nodes), 0);
  for (const auto& [from, to] : pairs) {
    const int sender = group.node_of(from);
    const int receiver = group.node_of(to);
    if (sender == receiver) {
      ++inside[static_cast<std::size_t>(from)];
      continue;
    }
    ++out[static_cast<std::size_t>(sender)];
    ++in[static_cast<std::size_t>(receiver)];
  }
  const int busiest = std::max(*std::max_element(out.begin(), out.end()), *std::max_element(in.begin(), in.end()));
  const int at_rank = *std::max_element(inside.begin(), inside.end());
  const auto hop = [&](double alpha, double message) { return t.fixed(alpha, message) + message; };
  const double near = at_rank > 0 ? hop(t.alpha_intra, at_rank * (bytes + t.half_intra) / t.rate_intra) : 0.0;
  const double far = busiest > 0 ? hop(t.alpha_inter, (bytes + t.half_inter) / rate_of_each(rates, busiest)) : 0.0;
  return std::max(near, far);
}

/// Reduce-scatter in all blocks at a time, then their sums from each to the next larger one; and the same back. What
/// comes from a smaller block early shares the receiver's link with the reduce-scatter there.
double halving_doubling_time(const GroupShape& group, const Terms& t, const LinkRates& rates, double bytes) {
  const std::vector<detail::BinaryBlock> blocks = detail::binary_blocks(t.ranks);
  double ready = 0.0;
  for (std::size_t i = blocks.size(); i-- > 0;) {
    const detail::BinaryBlock& block = blocks[i];
    double scattered = 0.0;
    Pairs pairs;
    for (int distance = 1; distance < block.size; distance *= 2) {
      pairs.clear();
      for (int r = 0; r < block.size; ++r) pairs.emplace_back(block.begin + r, block.begin + (r ^ distance));
      scattered += exchange_time(group, t, rates, pairs, 0.5 * bytes / distance);
    }
    if (i + 1 == blocks.size()) {
      ready = scattered;
      continue;
    }
    const detail::BinaryBlock& smaller = blocks[i + 1];
    pairs.clear();
    for (int r = 0; r < block.size; ++r) pairs.emplace_back(smaller.begin + r % smaller.size, block.begin + r);
    const double share = bytes / block.size;
    ready = std::max(scattered + share / (t.nodes > 1 ? rates.rate_rank.value() : t.rate_intra),
                     ready + exchange_time(group, t, rates, pairs, share));
  }
  return 2.0 * ready;
}

}  // namespace

int pipeline_chunks(CollectiveAlgorithm algorithm, const GroupShape& group, double bytes) {
  constexpr double kKiB = 1024.0;
  const bool tree = algorithm == CollectiveAlgorithm::DoubleBinaryTree;
  if (!tree && algorithm != CollectiveAlgorithm::BroadcastReduce) return 1;
  const double share = tree ? bytes / 2.0 : bytes;
  const int per_node = group.ranks() / group.nodes();  // as NCCL counts, rounded down
  const double depth = per_node - 1 + std::floor(std::log2(group.nodes()));
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

Seconds collective_time(CollectivePrimitive primitive, CollectiveAlgorithm algorithm, const GroupShape& group,
                        double bytes, const LinkRates& rates) {
  if (group.ranks() < 2) return Seconds{0.0};
  SIMSYNC_ASSERT(!is_choice(algorithm));
  const Terms terms(group, rates);
  const int chunks = pipeline_chunks(algorithm, group, bytes);
  if (primitive != CollectivePrimitive::AllReduce) return Seconds{ring_time(primitive, terms, bytes)};
  switch (algorithm) {
    case CollectiveAlgorithm::DoubleBinaryTree:
      return Seconds{tree_time(terms, bytes, chunks, rates)};
    case CollectiveAlgorithm::HalvingDoubling:
      return Seconds{halving_doubling_time(group, terms, rates, bytes)};
    case CollectiveAlgorithm::Hierarchical:
      return Seconds{hierarchical_time(terms, bytes, rates)};
    case CollectiveAlgorithm::BroadcastReduce:
      return Seconds{chain_time(group, terms, bytes, chunks)};
    case CollectiveAlgorithm::Ring:
    case CollectiveAlgorithm::Auto:
    case CollectiveAlgorithm::Best:
      break;
  }
  return Seconds{ring_time(primitive, terms, bytes)};
}

}  // namespace simsync
