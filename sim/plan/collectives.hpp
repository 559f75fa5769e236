// Collective algorithms as hops: who sends how much to whom, in how many rounds, waiting for what.
//
// P is the number of ranks, S the payload in bytes, N the number of nodes, g = P/N the ranks per node.
//
//   algorithm             rounds of latency      bytes sent by the busiest rank      busiest NIC, each way
//   ring                  2(P-1)                 2 S (P-1)/P                         2 S (P-1)/P
//   double binary tree    2 depth + chunks - 1   up to 2 S                           up to 2 S
//   halving-doubling      2 log2 P               2 S (P-1)/P                         2 S (N-1)/N
//   hierarchical          2(g-1) + 2(N-1)        2 S (g-1)/g + 2 S (N-1)/(N g)       2 S (N-1)/N
//   broadcast + reduce    2 (P-1) + chunks - 1   2 S (the ends of the chain: S)      2 S
//
// These are all-reduces. The other primitives have one algorithm each, as NCCL has:
//
//   primitive             rounds of latency      bytes sent by the busiest rank      busiest NIC, each way
//   reduce-scatter        P-1                    S (P-1)/P                           S (P-1)/P
//   all-gather            P-1                    S (P-1), S from each rank           S (P-1)
//   broadcast, reduce     P-1 + chunks - 1       S                                   S
//   all-to-all            1                      S (P-1)/P                           S g (P-g)/P
//   send/receive          1 + chunks - 1         S                                   S
//
// The first two are half a ring all-reduce; all-gather means that every rank contributes S bytes and receives the other
// P-1 contributions. Broadcast and reduce flow along the ring from the root, or to it: the ring cut open there. In an
// all-to-all each rank has a part of S/P for every rank, and sends all at a time, directly. Send/receive is of two
// ranks.
//
// Halving-doubling exchanges the largest share with the nearest rank. Over P that is no power of two it is run in
// binary blocks, as Gloo's is: blocks of the powers of two that P is the sum of, the largest first. Each runs its
// reduce-scatter; then sums go from the smallest block to the next larger one and so on, 1/b S to every rank of the
// larger block of b; and back after the all-gather has begun. In all 2 S (P-1) bytes; the busiest rank sends 2 S if it
// is in a block between two others, else 2 S - S/b in one of b ranks. Blocks work at the same time, so it takes 2 S at
// the rate of a link when there are two blocks.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/group_shape.hpp"
#include "sim/plan/nccl_tuner.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

/// One neighbor relation of an algorithm. Its bytes travel in `rounds` equal messages.
struct Hop {
  int from = 0;  ///< rank in the group
  int to = 0;
  double bytes = 0.0;  ///< over all rounds, as a share of the payload
  int rounds = 1;
  int pipeline = 0;  ///< hops of one pipeline pass messages on to each other
  /// Message r waits for message r - lag of these hops, which arrive at `from`: lag 1 on a ring, 0 on a tree.
  std::vector<int> needs;
  int lag = 0;
  /// Hops of an earlier stage that must have ended: what `from` has sent and received there.
  std::vector<int> after;
};

/// Hops that run as one stream of messages.
struct Pipeline {
  bool ring = false;   ///< messages go round, so every round pays the latency; else they flow through
  bool chain = false;  ///< through-flow from one end to the other: no two hops share a port
  int fill_intra = 0;  ///< through-flow: hops inside nodes and ...
  int fill_inter = 0;  ///< ... between nodes that a message passes one after another; neither: a single round
  /// Through-flow: time of the first message on its hops between nodes, in messages that have a link to themselves;
  /// more than fill_inter where siblings of a tree share their parent's NIC.
  double fill_shared = 0.0;
};

struct CollectiveSchedule {
  std::vector<Hop> hops;
  std::vector<Pipeline> pipelines;
};

/// Hops of a collective over the group. `chunks` is the number of messages that trees and chains cut
/// the payload into. When `only_node` is not -1, only hops that leave that node are made, as many and as large as
/// those of the busiest node: what a representative of alike nodes does. Auto and Best are not allowed here, nor
/// Hierarchical over nodes with unequal numbers of ranks.
CollectiveSchedule schedule_of(const CollectiveKind& kind, const GroupShape& group, int chunks, int only_node = -1);

/// Whether the hops are one ring round the group: they remain the same when each rank takes the next one's place.
bool is_rotatable(const CollectiveKind& kind);

/// Messages per hop that a collective cuts a payload into; 1 unless messages flow through a tree or a chain, at most
/// 512. Pieces are of 512 KiB; on a tree, whose two halves carry half of the payload each, they are halved as NCCL
/// does while the pipeline is short for its depth: down to 128 KiB below 8 pieces per level, to 64 KiB below 4, to
/// 32 KiB below 1.
int pipeline_chunks(const CollectiveKind& kind, const GroupShape& group, double bytes);

/// Messages that a chain from or to one root cuts a payload into: of 512 KiB, as NCCL's, at most 512.
int chain_chunks(double bytes);

/// What a hop costs, the same for all hops of a kind. Rates are payload.
struct LinkRates {
  Seconds alpha_intra;                   ///< one message inside a node
  BytesPerSecond rate_intra{1e12};       ///< one hop inside a node
  BytesPerSecond rate_intra_tree{1e12};  ///< the same of one of the two trees, which has half of a stream
  Seconds alpha_inter;                   ///< one message between nodes
  BytesPerSecond rate_inter{1e12};       ///< one hop that leaves a node alone and uses all its NICs: ring, trees, chain
  BytesPerSecond rate_wire{1e12};        ///< the same if a stream had no limit of its own
  BytesPerSecond rate_tree{1e12};  ///< one hop between nodes of one of the two trees, which has half of the streams
  BytesPerSecond rate_rank{1e12};  ///< one rank's own route to another node: halving-doubling, hierarchical
  BytesPerSecond rate_node{1e12};  ///< all of these routes of one node together
  double half_intra = 0.0;         ///< payload by which a message is dearer (LinkClass::half_size)
  double half_inter = 0.0;
  bool overlap = false;  ///< the alpha of a message passes while its bytes travel (Protocol::overlap)
};

/// Closed form of the time when nothing else is under way, by rounds and bytes of the schedule. Hops inside a node are
/// taken to share links as those of a ring do; ranks that send to other nodes at the same time share their node's NICs.
/// Exact where schedule_of has one kind of hop per stage, else within the difference of its kinds. Trees and chains add
/// the way of the first message, of which those behind it hide a part (PipelineFill has what remains). Hierarchical
/// needs alike nodes. Used to choose between protocols and by MG-WFBP. Cost: O(P log P) for halving-doubling, O(N) for
/// trees and chains, else O(1). Auto and Best are not allowed here.
Seconds collective_time(const CollectiveKind& kind, const GroupShape& group, double bytes, const LinkRates& rates);

/// Rates of one protocol; the name is empty where the cluster tells none apart.
struct ProtocolRates {
  std::string protocol;
  LinkRates rates;
};

class CollectiveAlone;

/// What collectives over one group are chosen by.
struct GroupCosts {
  GroupShape shape;
  std::vector<ProtocolRates> protocols;  ///< one at least
  NcclView nccl;                         ///< what NCCL's tuner would see of the group's hardware
  /// What Auto means (CollectiveCosts::algorithm); Auto: the choice of NCCL's tuner.
  CollectiveAlgorithm library = CollectiveAlgorithm::Auto;
  /// What Best goes by; none: collective_time.
  std::shared_ptr<CollectiveAlone> alone;
  /// Whether each group that runs the collective at the same time, too, has as many ranks on all of its nodes: one
  /// algorithm is chosen for them all.
  bool others_alike = true;

  [[nodiscard]] bool alike() const { return shape.alike() && others_alike; }
};

/// How a collective of a certain size runs.
struct CollectiveChoice {
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Ring;
  std::string protocol;
  Seconds time;  ///< by collective_time, of Best by CollectiveAlone
};

/// The algorithm that runs where `asked` is wished for, and the protocol of the cluster that is fastest for it by
/// collective_time. Auto: that of the cluster's library, or what NCCL's tuner would choose on that hardware
/// (nccl_choice), whether or not it is the fastest. Best: the fastest algorithm by CollectiveAlone. Hierarchical over
/// nodes with unequal numbers of ranks, of this group or of another that runs it: ring. The first of equals.
CollectiveChoice choose(CollectivePrimitive primitive, CollectiveAlgorithm asked, const GroupCosts& costs,
                        double bytes);

}  // namespace simsync
