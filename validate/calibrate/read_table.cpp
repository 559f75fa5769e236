// Tables of measurements: our probes, and collections of collective and of point-to-point runs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.hpp"
#include "strategies/names.hpp"
#include "validate/calibrate/readers.hpp"

namespace simsync {
namespace {

constexpr int kMostRanks = 1'000'000;
constexpr double kLeastTime = 1e-12;
constexpr const char* kCompute = "compute_s";
constexpr double k10To90 = 2.5631;  // standard deviations from 10 % to 90 % of a normal distribution

class TableReader {
public:
  TableReader(const CsvTable& table, const ReadOptions& options) : table_(table), options_(options) {}
  std::vector<Probe> read();

private:
  [[nodiscard]] bool taken(std::size_t row) const;
  [[nodiscard]] double number(std::size_t row, const char* column, double least) const;
  [[nodiscard]] int whole(std::size_t row, const char* column, int least) const;
  template <class E>
  [[nodiscard]] E word(std::size_t row, const char* column, const Words<E>& words) const;
  [[nodiscard]] Seconds compute(std::size_t row, ProbeKind kind) const;
  [[nodiscard]] std::optional<Probe> own(std::size_t row) const;
  [[nodiscard]] std::optional<Probe> collective(std::size_t row) const;
  [[nodiscard]] std::optional<Probe> point_to_point(std::size_t row) const;

  const CsvTable& table_;
  const ReadOptions& options_;
};

bool TableReader::taken(std::size_t row) const {
  return passes(table_, row, options_.where);
}

double TableReader::number(std::size_t row, const char* column, double least) const {
  const auto value = table_.number(row, column);
  if (!value) table_.refuse(row, fmt::format("column '{}' is empty", column));
  if (*value < least)
    table_.refuse(row, fmt::format("column '{}': expected at least {:g}, got {:g}", column, least, *value));
  return *value;
}

int TableReader::whole(std::size_t row, const char* column, int least) const {
  const double value = number(row, column, least);
  if (value != std::floor(value) || value > kMostRanks)
    table_.refuse(row,
                  fmt::format("column '{}': expected a whole number up to {}, got {:g}", column, kMostRanks, value));
  return static_cast<int>(value);
}

template <class E>
E TableReader::word(std::size_t row, const char* column, const Words<E>& words) const {
  const std::string& text = table_.cell(row, column);
  if (const auto known = find_word(words, text)) return *known;
  const auto known = names_in(words);
  table_.refuse(row, fmt::format("column '{}': '{}' is not one of {}", column, text, fmt::join(known, ", ")),
                did_you_mean(text, known));
}

Seconds TableReader::compute(std::size_t row, ProbeKind kind) const {
  const bool told = table_.has(kCompute) && !table_.cell(row, kCompute).empty();
  if (kind == ProbeKind::Overlap) {
    if (told) return Seconds{number(row, kCompute, kLeastTime)};
    table_.refuse(row,
                  fmt::format("an overlap without '{}': what each device computes beside the all-reduces", kCompute));
  }
  if (told)
    table_.refuse(row, fmt::format("column '{}': nothing is computed during a probe '{}'", kCompute, name_of(kind)));
  return {};
}

std::optional<Probe> TableReader::own(std::size_t row) const {
  Probe probe;
  probe.kind = word<ProbeKind>(row, "kind",
                               {{"all-reduce", ProbeKind::AllReduce},
                                {"push", ProbeKind::Push},
                                {"pull", ProbeKind::Pull},
                                {"message", ProbeKind::Message},
                                {"overlap", ProbeKind::Overlap},
                                {"reads", ProbeKind::Reads}});
  probe.ranks = whole(row, "ranks", probe.to_server() ? 1 : 2);
  if (probe.kind == ProbeKind::Message || probe.kind == ProbeKind::Reads) probe.per_node = 1;
  probe.bytes = number(row, "bytes", 1.0);
  probe.count = whole(row, "count", 1);
  if (!table_.cell(row, "algorithm").empty()) probe.algorithm = word(row, "algorithm", collective_algorithm_words());
  probe.compute = compute(row, probe.kind);
  probe.measured = Seconds{number(row, "time_s", kLeastTime)};
  if (table_.has("time_p10_s") && table_.has("time_p90_s"))
    probe.repeat = std::max(0.0, number(row, "time_p90_s", 0.0) - number(row, "time_p10_s", 0.0)) / k10To90 /
                   probe.measured.value();
  return probe;
}

std::optional<Probe> TableReader::collective(std::size_t row) const {
  const std::string& name = table_.cell(row, "collective");
  Probe probe;
  if (name == "all_reduce") {
    probe.kind = ProbeKind::AllReduce;
  } else if (name == "all_gather") {
    probe.kind = ProbeKind::AllGather;
  } else if (name == "reduce_scatter") {
    probe.kind = ProbeKind::ReduceScatter;
  } else {
    return std::nullopt;
  }
  if (table_.has("in_place") && table_.cell(row, "in_place") == "1") return std::nullopt;
  if (!table_.number(row, "time_us") || !table_.number(row, "size_bytes")) return std::nullopt;  // a peak figure
  probe.per_node = whole(row, "gpus_per_node", 1);
  const int nodes = whole(row, "nodes", 1);
  if (nodes > kMostRanks / probe.per_node)
    table_.refuse(row,
                  fmt::format("{} nodes of {} devices: expected at most {} ranks", nodes, probe.per_node, kMostRanks));
  probe.ranks = probe.per_node * nodes;
  if (probe.ranks < 2) return std::nullopt;
  const double size = number(row, "size_bytes", 1.0);
  probe.bytes = probe.kind == ProbeKind::AllGather ? size / probe.ranks : size;
  probe.measured = Seconds{number(row, "time_us", 1e-6) * 1e-6};
  return probe;
}

std::optional<Probe> TableReader::point_to_point(std::size_t row) const {
  const std::string& test = table_.cell(row, "test");
  if (test != "osu_latency" && test != "osu_bw") return std::nullopt;
  Probe probe;
  probe.kind = ProbeKind::Message;
  probe.per_node = word<int>(row, "intra_or_inter", {{"inter-node", 1}, {"intra-node", 2}});
  probe.bytes = number(row, "size_bytes", 0.0);
  if (probe.bytes <= 0.0) return std::nullopt;
  if (test == "osu_bw") {
    probe.count = kOsuWindow;
    probe.measured = Seconds{kOsuWindow * probe.bytes / (number(row, "bandwidth_MBps", 1e-9) * 1e6)};
  } else {
    probe.measured = Seconds{number(row, "latency_us", 1e-6) * 1e-6};
  }
  return probe;
}

std::vector<Probe> TableReader::read() {
  std::vector<Probe> out;
  for (std::size_t row = 0; row < table_.size(); ++row) {
    if (!taken(row)) continue;
    auto probe = table_.has("kind") ? own(row) : table_.has("collective") ? collective(row) : point_to_point(row);
    if (!probe) continue;
    probe->where = fmt::format("{}:{}", table_.file(), table_.line(row));
    out.push_back(std::move(*probe));
  }
  if (out.empty())
    throw InputError(Diagnostic{.origin = {table_.file(), 0, 0},
                                .message = "no row is left to calibrate from",
                                .key = {},
                                .source_line = {},
                                .note = {},
                                .help = options_.where.empty() ? "" : "look at the values that --rows asks for"});
  return out;
}

}  // namespace

std::vector<Probe> read_table(const CsvTable& table, const ReadOptions& options) {
  return TableReader(table, options).read();
}

std::vector<Probe> read_probes(const std::string& path, const ReadOptions& options) {
  return parse_probes(read_file(path), path, options);
}

std::vector<Probe> parse_probes(const std::string& text, const std::string& file, const ReadOptions& options) {
  if (text.find("OSU") != std::string::npos && text.starts_with("#")) return read_osu(text, file, options);
  if (text.find("busbw") != std::string::npos && text.find('#') != std::string::npos &&
      text.find("size_bytes") == std::string::npos)
    return read_nccl_tests(text, file);
  const auto table = CsvTable::parse(text, file);
  if (table.has("kind") || table.has("collective") || table.has("test")) return read_table(table, options);
  throw InputError(Diagnostic{
      .origin = {file, 1, 1},
      .message =
          "expected measurements: nccl-tests or OSU output, or a table with a column 'kind', 'collective' or 'test'",
      .key = {},
      .source_line = {},
      .note = {},
      .help = "the formats are in validate/calibrate/README.md"});
}

bool passes(const CsvTable& table, std::size_t row, const std::vector<ColumnFilter>& filters) {
  return std::all_of(filters.begin(), filters.end(), [&](const ColumnFilter& filter) {
    const auto& values = filter.values;
    return std::find(values.begin(), values.end(), table.cell(row, filter.column)) != values.end();
  });
}

}  // namespace simsync
