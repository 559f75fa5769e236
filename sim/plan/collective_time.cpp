// Time of a collective without simulating it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "sim/plan/collective_maker.hpp"
#include "sim/plan/collectives.hpp"

namespace simsync {
namespace {

constexpr double kKiB = 1024.0;
constexpr double kChunk = 512.0 * kKiB;  ///< of NCCL's buffers
constexpr int kMostChunks = 512;

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
        rate_rank(nodes > 1 ? rates.rate_rank.value() : std::numeric_limits<double>::infinity()),
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
  double rate_intra, rate_inter, rate_rank;
  double half_intra, half_inter;
  bool overlap;
};

/// Rate of one of `senders` ranks of a node that send to other nodes at the same time, each on a way of its own.
double rate_of_each(const LinkRates& rates, int senders) {
  return std::min(rates.rate_rank.value(), rates.rate_node.value() / senders);
}

/// A kind of hop of a ring: what one message of it adds to a round of the slowest hop, which may be less than nothing.
struct RingHop {
  double on_wire = 0.0;
  double fixed = 0.0;
  [[nodiscard]] double gain(double slowest) const { return fixed + on_wire - slowest; }
};

/// The most that `rounds` hops in a row add on a ring of alike nodes: `near` hops inside a node, then one between two.
/// A message may also wait at the slowest hop for the next one, which adds nothing, so the row may be shorter; it has
/// the slowest hop. Sums are linear in the number of hops of either kind: the most is at an end of their ranges.
double most_gain(const RingHop& inside, const RingHop& between, int near, int rounds) {
  const double slowest = std::max(inside.on_wire, between.on_wire);
  const double i = inside.gain(slowest);
  const double b = between.gain(slowest);
  const int period = near + 1;
  // A row that begins between nodes has the most hops of that kind, one that begins behind one has the fewest.
  const int most = (rounds + near) / period;
  const int fewest = rounds / period;
  const double whole = std::max(most * b + (rounds - most) * i, fewest * b + (rounds - fewest) * i);
  if (between.on_wire >= inside.on_wire) return std::max({whole, b, most * b + (most - 1) * near * i});
  // Rows of hops inside `crossed + 1` nodes. From where they do not fit whole, every hop between costs one inside.
  const auto ends_inside = [&](int crossed) {
    return std::min((crossed + 1) * near, rounds - crossed) * i + crossed * b;
  };
  return std::max({whole, ends_inside(0), ends_inside(fewest - 1), ends_inside(fewest)});
}

/// Every round pays the latency of its hop; the slowest link sets the pace. Where nodes have unequal numbers of ranks
/// the latency is that of the average hop.
double ring_time(CollectivePrimitive primitive, const GroupShape& group, const Terms& t, double bytes) {
  const auto [share, rounds] = detail::ring_amount(primitive, t.ranks);
  const double part = share * bytes / rounds;
  const double near = (part + t.half_intra) / t.rate_intra;
  const double far = (part + t.half_inter) / t.rate_inter;
  const double message = std::max(near, far);
  if (t.nodes == 1) return rounds * (t.fixed(t.alpha_intra, near) + near);
  if (t.nodes == t.ranks) return rounds * (t.fixed(t.alpha_inter, far) + far);
  const RingHop inside{near, t.fixed(t.alpha_intra, near)};
  const RingHop between{far, t.fixed(t.alpha_inter, far)};
  if (group.alike()) return rounds * message + most_gain(inside, between, group.size_of(0) - 1, rounds);
  const double inter_share = static_cast<double>(t.nodes) / t.ranks;
  return rounds * ((1.0 - inter_share) * inside.fixed + inter_share * between.fixed + message);
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

/// The first message passes all hops; the others follow at the pace of the slowest hop.
double one_way_chain_time(const CollectiveKind& kind, const GroupShape& group, const Terms& t, double bytes) {
  const int chunks = pipeline_chunks(kind, group, bytes);
  const double message = bytes / chunks;
  const bool own_nic = kind.primitive == CollectivePrimitive::SendReceive;
  const double near = (message + t.half_intra) / t.rate_intra;
  const double far = (message + t.half_inter) / (own_nic ? t.rate_rank : t.rate_inter);
  const int first = kind.root + (kind.primitive == CollectivePrimitive::Reduce ? 1 : 0);
  double sum = 0.0;
  double slowest = 0.0;
  for (int place = 0; place + 1 < t.ranks; ++place) {
    const int from = group.node_of((first + place) % t.ranks);
    const bool inside = from == group.node_of((first + place + 1) % t.ranks);
    const double on_wire = inside ? near : far;
    sum += t.fixed(inside ? t.alpha_intra : t.alpha_inter, on_wire) + on_wire;
    slowest = std::max(slowest, on_wire);
  }
  return sum + (chunks - 1) * slowest;
}

/// Every rank sends all others its parts at a time: the busiest port of a rank and the busiest NIC end it.
double all_to_all_time(const GroupShape& group, const Terms& t, const LinkRates& rates, double bytes) {
  const double part = bytes / t.ranks;
  double near = 0.0;
  double far = 0.0;
  for (int node = 0; node < t.nodes; ++node) {
    const int here = group.size_of(node);
    const int away = t.ranks - here;
    if (here > 1) near = std::max(near, (here - 1) * (part + t.half_intra) / t.rate_intra);
    if (away == 0) continue;
    const double on_nic = here * away * (part + t.half_inter) / rates.rate_node.value();
    far = std::max(far, std::max(on_nic, (part + t.half_inter) / t.rate_rank));
  }
  const double inside = near > 0.0 ? t.fixed(t.alpha_intra, near) + near : 0.0;
  return std::max(inside, far > 0.0 ? t.fixed(t.alpha_inter, far) + far : 0.0);
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

int chain_chunks(double bytes) {
  return std::clamp(static_cast<int>(std::ceil(bytes / kChunk)), 1, kMostChunks);
}

int pipeline_chunks(const CollectiveKind& kind, const GroupShape& group, double bytes) {
  if (detail::is_chain(kind.primitive)) return chain_chunks(bytes);
  if (kind.primitive != CollectivePrimitive::AllReduce) return 1;
  if (kind.algorithm == CollectiveAlgorithm::BroadcastReduce) return chain_chunks(bytes);
  if (kind.algorithm != CollectiveAlgorithm::DoubleBinaryTree) return 1;
  const double share = bytes / 2.0;
  const int per_node = group.ranks() / group.nodes();  // as NCCL counts, rounded down
  const double depth = per_node - 1 + std::floor(std::log2(group.nodes()));
  double chunk = kChunk;
  const auto shrink = [&](double pieces_per_level, double least) {
    while (share / chunk < pieces_per_level * depth && chunk > least) chunk /= 2.0;
  };
  shrink(8.0, 128.0 * kKiB);
  shrink(4.0, 64.0 * kKiB);
  shrink(1.0, 32.0 * kKiB);
  return std::clamp(static_cast<int>(std::ceil(share / chunk)), 1, kMostChunks);
}

Seconds collective_time(const CollectiveKind& kind, const GroupShape& group, double bytes, const LinkRates& rates) {
  if (group.ranks() < 2) return Seconds{0.0};
  SIMSYNC_ASSERT(!is_choice(kind.algorithm));
  const Terms terms(group, rates);
  const int chunks = pipeline_chunks(kind, group, bytes);
  if (detail::is_chain(kind.primitive)) return Seconds{one_way_chain_time(kind, group, terms, bytes)};
  if (kind.primitive == CollectivePrimitive::AllToAll) return Seconds{all_to_all_time(group, terms, rates, bytes)};
  switch (only_algorithm(kind.primitive).value_or(kind.algorithm)) {
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
    case CollectiveAlgorithm::Pairwise:
      break;
  }
  return Seconds{ring_time(kind.primitive, group, terms, bytes)};
}

}  // namespace simsync
