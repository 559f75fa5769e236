// A recorded replay as a trace in Chrome's JSON format, which ui.perfetto.dev and chrome://tracing open.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "sim/timeline/prediction.hpp"

namespace simsync {

/// What a timeline is drawn of: `prediction` must be the replay of `plan` on `cluster` with ReplayOptions::record.
struct Recorded {
  const Plan& plan;
  const Cluster& cluster;
  const Prediction& prediction;
};

struct TimelineOptions {
  std::vector<Place> ranks{};  ///< whose rows are drawn, besides those of servers and of the job; none: all
  int last_steps = 0;          ///< draws only so many; 0: all, of many the first
  /// Boxes that are drawn. Where there are more, the shortest ones are merged with their neighbors.
  std::size_t most_boxes = 100'000;
};

/// Writes whole iterations, each event on a line, in order of time. Returns what was left out, for people: one text for
/// each reason. A file has at most some 50 MB.
///
/// One process per node, with a row for each GPU's passes of a pipeline (`F3` and `B3` of micro-batch 3, also what
/// they wait for inside), compute and communication, the host's work and messages, and each link that carried anything
/// of the ranks drawn; one process for what belongs to no node (`network`: leaf uplinks) and one for the boundaries of
/// iterations (`job`). Events of one row never overlap: what runs at the same time gets a row of the same name with a
/// number, up to nine, the last of which says how many found no row. The flows of one op that cross a link together are
/// one event. Arrows lead from what ended to what it let begin, where that is on another row, also from and to merged
/// boxes; where there are too many, those of the critical path stay. Counters show the rate of each link, whoever sends
/// (Traffic::rates). Times are microseconds, on a grid of a nanosecond. In a folded replay the names of the processes
/// say how many nodes each stands for.
std::vector<std::string> write_timeline(std::ostream& out, const Recorded& recorded,
                                        const TimelineOptions& options = {});

}  // namespace simsync
