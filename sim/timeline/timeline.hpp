// A recorded replay as a trace in Chrome's JSON format, which ui.perfetto.dev and chrome://tracing open.
#pragma once
#include <iosfwd>

#include "sim/timeline/prediction.hpp"

namespace simsync {

/// Writes every whole iteration of `prediction`, which must be the replay of `plan` on `cluster` with
/// ReplayOptions::record. Events are written one by one.
///
/// One process per node, with a row for each GPU's compute and communication, the host's work and messages, and each
/// link that carried anything; one process for what belongs to no node (`network`: leaf uplinks) and one for the
/// boundaries of iterations (`job`). Events of one row never overlap: what runs at the same time gets a row of the
/// same name with a number, up to nine, the last of which says how many found no row. The flows of one op that cross a
/// link together are one event. Times are microseconds, on a grid of a nanosecond. In a folded replay the names of the
/// processes say how many nodes each stands for.
void write_timeline(std::ostream& out, const Plan& plan, const Cluster& cluster, const Prediction& prediction);

}  // namespace simsync
