// The rows of a sweep for people: best first, with a bar and with what limits each.
#pragma once
#include <string>
#include <vector>

#include "cli/terminal.hpp"

namespace simsync {

struct RankedRow {
  std::string model, cluster, strategy, workers, batch, settings;
  double step = 0.0;  ///< s
  double low = 0.0;   ///< s; equal to `step` without a calibration
  double high = 0.0;
  double throughput = 0.0;  ///< samples/s
  std::string limit;        ///< limit_phrase; may be empty
};

/// From a row of the result table (row_cells).
RankedRow ranked_row(const std::string& csv, const std::string& limit);

struct RankingOptions {
  TerminalStyle style;
  bool keep_order = false;  ///< as given, instead of best first
};

/// A table with a title that says what all rows have in common; what differs has a column. Rows of one model stand
/// together, and are compared with the best of them: by throughput, so that numbers of workers and batches compare.
/// Rows within 0.1 % of each other, to which steps are simulated, have the same number and a mark.
std::string ranking(const std::vector<RankedRow>& rows, const RankingOptions& options);

}  // namespace simsync
