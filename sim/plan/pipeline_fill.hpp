// How long messages that flow through trees or a chain take to fill and drain it, found by running them on paper.
#pragma once
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/plan/collectives.hpp"

namespace simsync {

/// One message of a hop, in seconds.
struct MessageCost {
  double latency = 0.0;
  double alone = 0.0;  ///< on its link when nothing else is there: a stream may be capped below the link's rate
  double link = 0.0;   ///< of the link's whole rate; at most `alone`
  friend auto operator<=>(const MessageCost&, const MessageCost&) = default;
};

/// Messages flow through: each hop sends them in turn, and passes one on once its predecessors have delivered it. On a
/// NIC the traffic up and down two trees meets, but not from the start: the first messages up have it to themselves
/// and run ahead, and the last ones down do. So the time is not that of the first message plus a steady pace. Here the
/// messages run one by one over ports that they share max-min fairly: one for each direction of a node's NIC and of
/// every rank's link to the ranks beside it. That model needs no simulator and is the same for a job and for a
/// representative of it.
class PipelineFill {
public:
  /// `whole` is the pipeline of the schedule of `group`. Groups of more than 128 ranks are cut to fewer nodes, and what
  /// the first message saves on the shorter way is added again: exact for one message, late by up to 7 % of the
  /// collective for 8 to 32 of them on 2,048 ranks, where the ones behind it have more levels to catch up on.
  PipelineFill(const CollectiveKind& kind, const GroupShape& group, int chunks, const Pipeline& whole);

  /// Time of all messages beyond what the busiest port needs for them. Cost: O(hops x messages of the transient) for
  /// costs that it was not asked for before. Not thread-safe.
  [[nodiscard]] Seconds time(const MessageCost& intra, const MessageCost& inter) const;

private:
  [[nodiscard]] Seconds time_anew(const MessageCost& intra, const MessageCost& inter) const;

  GroupShape group_;
  CollectiveSchedule schedule_;
  Pipeline whole_;
  int rounds_ = 1;
  mutable std::map<std::pair<MessageCost, MessageCost>, Seconds> known_;
};

/// The fills that schedules have asked for: many plans, and many replays of a search, ask for the same ones.
class PipelineFills {
public:
  /// PipelineFill's arguments, of which `whole` follows from the others. Lives as long as this does.
  const PipelineFill& of(const CollectiveKind& kind, const GroupShape& group, int chunks, const Pipeline& whole);

private:
  std::map<std::tuple<CollectiveKind, std::vector<int>, int>, PipelineFill> known_;
};

}  // namespace simsync
