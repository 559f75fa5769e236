// Measurements in the formats of the tools that made them.
#pragma once
#include <string>
#include <vector>

#include "base/csv.hpp"
#include "sim/problem/probe.hpp"

namespace simsync {

inline constexpr int kOsuWindow = 64;  ///< messages that osu_bw keeps on their way

/// Which rows of a table to take: all columns must have one of the values.
struct ColumnFilter {
  std::string column;
  std::vector<std::string> values;
};

/// Whether a row passes all of them. @throws InputError for a column that the table lacks.
bool passes(const CsvTable& table, std::size_t row, const std::vector<ColumnFilter>& filters);

struct ReadOptions {
  int ranks = 0;                    ///< of a file whose format does not say how many took part; 0: unknown
  std::vector<ColumnFilter> where;  ///< tables only
};

/// Reads a file of any format below, told by its content:
///   our probes CSV (kind,ranks,bytes,count,algorithm,time_s; of overlaps also compute_s; others may follow), tables
///   with the columns of collective or point-to-point collections (collective,gpus_per_node,nodes,size_bytes,time_us;
///   test,intra_or_inter,size_bytes,...), nccl-tests text output, OSU micro-benchmark text output.
/// @throws InputError with the line, when it is none of them, a value is missing or wrong, or nothing is left.
std::vector<Probe> read_probes(const std::string& path, const ReadOptions& options = {});
/// The same from text; `file` stands for it in messages.
std::vector<Probe> parse_probes(const std::string& text, const std::string& file, const ReadOptions& options);

/// The formats one by one.
std::vector<Probe> read_table(const CsvTable& table, const ReadOptions& options);
std::vector<Probe> read_nccl_tests(const std::string& text, const std::string& file);
std::vector<Probe> read_osu(const std::string& text, const std::string& file, const ReadOptions& options);

}  // namespace simsync
