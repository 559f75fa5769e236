// `--timeline`, and what of a run it draws.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "sim/timeline/timeline.hpp"

namespace simsync {

struct TimelineFlags {
  std::string file;
  std::string ranks;  ///< `all`, or numbers of ranks separated by commas; empty: one of each kind
  std::string steps;  ///< `all`, or how many of the last; empty: the last, or all of asynchronous workers
  [[nodiscard]] bool given() const { return !file.empty(); }
};

void add_timeline_flags(CLI::App& command, TimelineFlags& flags);

/// What to draw. @throws InputError for ranks that the plan does not have.
TimelineOptions timeline_options(const TimelineFlags& flags, const Plan& plan, const Cluster& cluster);

/// Writes the file and says on standard error what it leaves out.
/// @throws InputError when a rank was asked for that others stand for.
void write_timeline_file(const TimelineFlags& flags, const Recorded& recorded, const TimelineOptions& options);

}  // namespace simsync
