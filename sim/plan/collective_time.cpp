// Time of a collective without simulating it, and the choice that rests on it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

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
        overlap(rates.overlap) {}
  [[nodiscard]] double slowest() const { return std::min(rate_intra, rate_inter); }
  /// What a message takes besides its time on the wire.
  [[nodiscard]] double fixed(double alpha, double message) const {
    return overlap ? std::max(0.0, alpha - message) : alpha;
  }

  int ranks, nodes;
  double per_node;
  double alpha_intra, alpha_inter;
  double rate_intra, rate_inter;
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
  const double message = share * bytes / rounds / t.slowest();
  const double alpha =
      (1.0 - inter_share) * t.fixed(t.alpha_intra, message) + inter_share * t.fixed(t.alpha_inter, message);
  return rounds * alpha + share * bytes / t.slowest();
}

/// The first message goes up and down; the others follow it at the pace of the busiest link: 4 messages of S / 2.
double tree_time(const Terms& t, double bytes, int chunks) {
  const detail::TreePath path = detail::longest_path(t.nodes);
  const double message = bytes / 2.0 / chunks / t.slowest();
  const double latency =
      2.0 * ((t.per_node - 1.0) * t.fixed(t.alpha_intra, message) + path.depth * t.fixed(t.alpha_inter, message));
  const double first = (2.0 * (t.per_node - 1.0) + path.first_message) * message;
  return latency + std::max(0.0, first - 4.0 * message) + 2.0 * bytes / t.slowest();
}

/// The first message goes to the first rank and back; the others follow at the pace of the busiest link, which in the
/// middle of the chain carries the way up and the way down.
double chain_time(const GroupShape& group, const Terms& t, double bytes, int chunks) {
  int largest = 1;
  for (int node = 0; node < t.nodes; ++node) largest = std::max(largest, group.size_of(node));
  const double message = bytes / chunks;
  const int inside = 2 * (t.ranks - t.nodes);
  const int between = 2 * (t.nodes - 1);
  const auto hop = [&](double alpha, double rate) { return t.fixed(alpha, message / rate) + message / rate; };
  const double first = inside * hop(t.alpha_intra, t.rate_intra) + between * hop(t.alpha_inter, t.rate_inter);
  const double period =
      message * std::max((largest > 2 ? 2.0 : 1.0) / t.rate_intra, (t.nodes > 2 ? 2.0 : 1.0) / t.rate_inter);
  return std::max(period, first) + (chunks - 1) * period;
}

/// Reduce-scatter inside nodes, one ring per local rank between nodes, all-gather inside nodes.
double hierarchical_time(const Terms& t, double bytes, const LinkRates& rates) {
  const double g = t.per_node;
  const double near = bytes / g / t.rate_intra;
  const double inside = 2.0 * (g - 1.0) * (t.fixed(t.alpha_intra, near) + near);
  if (t.nodes < 2) return inside;
  const double far = bytes / g / t.nodes / rate_of_each(rates, static_cast<int>(g));
  return inside + 2.0 * (t.nodes - 1) * (t.fixed(t.alpha_inter, far) + far);
}

/// One exchange: every rank with a partner sends it `bytes`. The slower kind of hop ends it.
double exchange_time(const GroupShape& group, const Terms& t, const LinkRates& rates,
                     const std::vector<std::pair<int, int>>& pairs, double bytes) {
  bool inside = false;
  std::vector<int> out(static_cast<std::size_t>(t.nodes), 0);
  std::vector<int> in(static_cast<std::size_t>(t.nodes), 0);
  for (const auto& [from, to] : pairs) {
    const int sender = group.node_of(from);
    const int receiver = group.node_of(to);
    inside = inside || sender == receiver;
    if (sender == receiver) continue;
    ++out[static_cast<std::size_t>(sender)];
    ++in[static_cast<std::size_t>(receiver)];
  }
  const int busiest = std::max(*std::max_element(out.begin(), out.end()), *std::max_element(in.begin(), in.end()));
  const auto hop = [&](double alpha, double rate) { return t.fixed(alpha, bytes / rate) + bytes / rate; };
  const double near = inside ? hop(t.alpha_intra, t.rate_intra) : 0.0;
  const double far = busiest > 0 ? hop(t.alpha_inter, rate_of_each(rates, busiest)) : 0.0;
  return std::max(near, far);
}

/// The exchanges one after another, there and back; those beyond a power of two fold in before and out after.
double halving_doubling_time(const GroupShape& group, const Terms& t, const LinkRates& rates, double bytes) {
  const int core = static_cast<int>(std::bit_floor(static_cast<unsigned>(t.ranks)));
  double time = 0.0;
  std::vector<std::pair<int, int>> pairs;
  for (int r = core; r < t.ranks; ++r) pairs.emplace_back(r, r - core);
  if (!pairs.empty()) time += exchange_time(group, t, rates, pairs, bytes);
  double share = 0.5;
  for (int distance = core / 2; distance > 0; distance /= 2, share /= 2.0) {
    pairs.clear();
    for (int r = 0; r < core; ++r) pairs.emplace_back(r, r ^ distance);
    time += exchange_time(group, t, rates, pairs, share * bytes);
  }
  return 2.0 * time;
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
  SIMSYNC_ASSERT(algorithm != CollectiveAlgorithm::Auto);
  const Terms terms(group, rates);
  const int chunks = pipeline_chunks(algorithm, group, bytes);
  if (primitive != CollectivePrimitive::AllReduce) return Seconds{ring_time(primitive, terms, bytes)};
  switch (algorithm) {
    case CollectiveAlgorithm::DoubleBinaryTree:
      return Seconds{tree_time(terms, bytes, chunks)};
    case CollectiveAlgorithm::HalvingDoubling:
      return Seconds{halving_doubling_time(group, terms, rates, bytes)};
    case CollectiveAlgorithm::Hierarchical:
      return Seconds{hierarchical_time(terms, bytes, rates)};
    case CollectiveAlgorithm::BroadcastReduce:
      return Seconds{chain_time(group, terms, bytes, chunks)};
    case CollectiveAlgorithm::Ring:
    case CollectiveAlgorithm::Auto:
      break;
  }
  return Seconds{ring_time(primitive, terms, bytes)};
}

CollectiveChoice choose(CollectivePrimitive primitive, CollectiveAlgorithm asked, const GroupShape& group, double bytes,
                        const std::vector<ProtocolRates>& protocols) {
  if (asked == CollectiveAlgorithm::Hierarchical && !group.alike()) asked = CollectiveAlgorithm::Ring;
  std::vector<CollectiveAlgorithm> algorithms{asked};
  if (asked == CollectiveAlgorithm::Auto) {
    algorithms = {CollectiveAlgorithm::Ring};
    if (group.nodes() > 1 && primitive == CollectivePrimitive::AllReduce)
      algorithms.push_back(CollectiveAlgorithm::DoubleBinaryTree);
  }
  std::optional<CollectiveChoice> best;
  for (const auto algorithm : algorithms) {
    for (const auto& [protocol, rates] : protocols) {
      const Seconds time = collective_time(primitive, algorithm, group, bytes, rates);
      if (!best || time < best->time) best = CollectiveChoice{algorithm, protocol, time};
    }
  }
  SIMSYNC_ASSERT(best.has_value());
  return *best;
}

}  // namespace simsync
