// The rows of a sweep for people: best first, with a bar and with what limits each.
#pragma once
#include <string>
#include <vector>

#include "cli/terminal.hpp"

namespace simsync {

struct RankedRow {
  std::string model, cluster, strategy, workers, batch, settings;
  double step = 0.0;  ///< s
  double low = 0.0;   ///< s; equal to `step` without an interval
  double high = 0.0;
  double throughput = 0.0;  ///< samples/s
  double needed = 0.0;      ///< bytes of memory that a worker needs
  double memory = 0.0;      ///< bytes of the smallest device; 0: not known, and everything fits
  std::string limit;        ///< limit_phrase; may be empty
  [[nodiscard]] bool fits() const { return memory == 0.0 || needed <= memory; }
};

/// From a row of the result table (row_cells).
RankedRow ranked_row(const std::string& csv, const std::string& limit);

struct RankingOptions {
  TerminalStyle style;
  bool keep_order = false;  ///< as given, instead of best first
};

/// A table with a title that says what all rows have in common; what differs has a column. Rows of one model stand
/// together, and are compared with the best of them: by throughput, so that numbers of workers and batches compare.
/// Rows within 0.1 % of each other, to which steps are simulated, have the same number and a mark. Rows that need more
/// memory than the device has come after the others of their model, with a mark and without a bar.
std::string ranking(const std::vector<RankedRow>& rows, const RankingOptions& options);

/// Better rows before worse ones: those that fit into memory, then by throughput.
bool is_better(const RankedRow& a, const RankedRow& b);

/// Which rows do not fit into memory and what they need, behind `mark`, in lines of at most `width` characters, the
/// last one not ended; empty where all fit.
std::string misfit_note(const std::vector<RankedRow>& rows, const std::string& mark, std::size_t width);

}  // namespace simsync
