#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "base/csv.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "models/trace/trace.hpp"

namespace simsync {
namespace {

constexpr double kMostSteps = 100'000;
constexpr double kMostBytes = 1e15;
constexpr double kLatestSecond = 1e12;

/// Steps by number, each with the line of every operation.
struct StepRows {
  TraceStep step;
  std::vector<std::size_t> rows;
  std::unordered_map<std::string, std::size_t> index;  ///< position by name
};

class TraceReader {
public:
  explicit TraceReader(const CsvTable& table) : table_(table) {}
  Trace read();

private:
  [[nodiscard]] double number(std::size_t row, const char* column, double low, double high) const;
  [[nodiscard]] std::int64_t whole(std::size_t row, const char* column, double low, double high) const;
  [[nodiscard]] TraceOpKind kind(std::size_t row) const;
  [[nodiscard]] std::vector<std::string> names(std::size_t row, const char* column) const;
  [[nodiscard]] TraceOp op(std::size_t row) const;
  void check_kind(std::size_t row, const TraceOp& op) const;
  void check_reads(const StepRows& step) const;
  void check_step(const StepRows& step) const;
  void check_order(const StepRows& step) const;
  void expect_trace() const;

  const CsvTable& table_;
};

double TraceReader::number(std::size_t row, const char* column, double low, double high) const {
  const auto value = table_.number(row, column);
  if (!value) table_.refuse(row, fmt::format("column '{}' is empty", column));
  if (*value < low || *value > high)
    table_.refuse(row, fmt::format("column '{}': expected {:g} to {:g}, got {:g}", column, low, high, *value));
  return *value;
}

std::int64_t TraceReader::whole(std::size_t row, const char* column, double low, double high) const {
  const double value = number(row, column, low, high);
  if (value != std::floor(value))
    table_.refuse(row, fmt::format("column '{}': expected a whole number, got {:g}", column, value));
  return static_cast<std::int64_t>(value);
}

TraceOpKind TraceReader::kind(std::size_t row) const {
  const std::string& text = table_.cell(row, "kind");
  std::vector<std::string> known;
  for (const TraceOpKind kind :
       {TraceOpKind::Receive, TraceOpKind::Compute, TraceOpKind::Send, TraceOpKind::Update, TraceOpKind::AllReduce}) {
    if (text == name_of(kind)) return kind;
    known.emplace_back(name_of(kind));
  }
  table_.refuse(row, fmt::format("column 'kind': '{}' is not one of {}", text, fmt::join(known, ", ")),
                did_you_mean(text, known));
}

/// The names in a column.
std::vector<std::string> TraceReader::names(std::size_t row, const char* column) const {
  std::vector<std::string> out = split_names(table_.cell(row, column));
  for (const std::string& name : out) {
    if (name.empty()) table_.refuse(row, fmt::format("column '{}': a name between two ';' is empty", column));
  }
  return out;
}

void TraceReader::check_kind(std::size_t row, const TraceOp& op) const {
  if (op.kind == TraceOpKind::Compute) {
    (void)names(row, "variable");
    if (op.bytes.count != 0) table_.refuse(row, "column 'bytes': a compute operation moves none");
    return;
  }
  if (op.variable.empty())
    table_.refuse(row, fmt::format("column 'variable' is empty, which no '{}' is", name_of(op.kind)));
}

TraceOp TraceReader::op(std::size_t row) const {
  TraceOp op;
  op.name = table_.cell(row, "op");
  if (op.name.empty()) table_.refuse(row, "column 'op' is empty");
  if (op.name.find(';') != std::string::npos)
    table_.refuse(row,
                  fmt::format("column 'op': the name '{}' holds a ';', which separates names in 'after'", op.name));
  op.kind = kind(row);
  op.variable = table_.cell(row, "variable");
  if (!table_.cell(row, "bytes").empty()) op.bytes = {whole(row, "bytes", 0.0, kMostBytes)};
  op.start = Seconds{number(row, "start_s", -kLatestSecond, kLatestSecond)};
  op.end = Seconds{number(row, "end_s", -kLatestSecond, kLatestSecond)};
  if (op.end < op.start)
    table_.refuse(row, fmt::format("operation '{}' ends at {:g} s, before it starts at {:g} s", op.name, op.end.value(),
                                   op.start.value()));
  op.after = names(row, "after");
  check_kind(row, op);
  return op;
}

/// Compute names what it reads only of variables that are all-reduced: of others, the receives tell.
void TraceReader::check_reads(const StepRows& step) const {
  std::set<std::string> summed;
  for (const TraceOp& op : step.step.ops) {
    if (op.kind == TraceOpKind::AllReduce) summed.insert(op.variable);
  }
  for (std::size_t i = 0; i < step.rows.size(); ++i) {
    const TraceOp& op = step.step.ops[i];
    if (op.kind != TraceOpKind::Compute) continue;
    for (const std::string& name : split_names(op.variable)) {
      if (summed.contains(name)) continue;
      table_.refuse(
          step.rows[i],
          fmt::format("column 'variable': a compute operation names the all-reduced variables that it reads, and "
                      "step {} all-reduces no '{}'",
                      step.step.number, name),
          did_you_mean(name, {summed.begin(), summed.end()}));
    }
  }
}

void TraceReader::check_step(const StepRows& step) const {
  check_reads(step);
  bool computes = false;
  for (std::size_t i = 0; i < step.rows.size(); ++i) {
    const TraceOp& op = step.step.ops[i];
    computes = computes || op.kind == TraceOpKind::Compute;
    for (const std::string& name : op.after) {
      if (step.index.contains(name)) continue;
      std::vector<std::string> known;
      for (const auto& [other, position] : step.index) known.push_back(other);
      table_.refuse(step.rows[i], fmt::format("column 'after': step {} has no operation '{}'", step.step.number, name),
                    did_you_mean(name, known));
    }
  }
  if (!computes) table_.refuse(step.rows.front(), fmt::format("step {} has no compute operation", step.step.number));
}

/// Takes operations away that wait for none that is left, until none is left.
void TraceReader::check_order(const StepRows& step) const {
  const auto& ops = step.step.ops;
  std::vector<std::vector<std::size_t>> readers(ops.size());
  std::vector<std::size_t> waits(ops.size());
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    waits[i] = ops[i].after.size();
    for (const std::string& name : ops[i].after) readers[step.index.at(name)].push_back(i);
    if (waits[i] == 0) ready.push_back(i);
  }
  for (std::size_t next = 0; next < ready.size(); ++next) {
    for (const std::size_t reader : readers[ready[next]]) {
      if (--waits[reader] == 0) ready.push_back(reader);
    }
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (waits[i] > 0)
      table_.refuse(step.rows[i],
                    fmt::format("operation '{}' of step {} waits for itself, or for others that wait for each other",
                                ops[i].name, step.step.number));
  }
}

void TraceReader::expect_trace() const {
  const auto& columns = trace_header();
  if (std::any_of(columns.begin(), columns.end(), [&](const std::string& name) { return table_.has(name); })) return;
  Diagnostic found;
  found.origin = {table_.file(), 1, 1};
  found.message = fmt::format("expected a table whose first line is '{}'", fmt::join(columns, ","));
  throw InputError(found);
}

Trace TraceReader::read() {
  expect_trace();
  std::map<int, StepRows> steps;
  for (std::size_t row = 0; row < table_.size(); ++row) {
    const int number = static_cast<int>(whole(row, "step", 0, kMostSteps));
    StepRows& step = steps[number];
    step.step.number = number;
    TraceOp read = op(row);
    const auto [known, fresh] = step.index.emplace(read.name, step.rows.size());
    if (!fresh)
      table_.refuse(row, fmt::format("step {} has the operation '{}' already, in line {}", number, read.name,
                                     table_.line(step.rows[known->second])));
    step.step.ops.push_back(std::move(read));
    step.rows.push_back(row);
  }
  Trace trace;
  for (auto& [number, step] : steps) {
    check_step(step);
    check_order(step);
    trace.steps.push_back(std::move(step.step));
  }
  if (trace.steps.empty()) throw InputError(fmt::format("{}: the trace has no operation", table_.file()));
  return trace;
}

}  // namespace

std::vector<std::string> split_names(const std::string& list) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; !list.empty() && begin <= list.size();) {
    const std::size_t end = std::min(list.find(';', begin), list.size());
    out.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

Trace parse_trace(const std::string& text, const std::string& name) {
  return TraceReader(CsvTable::parse(text, name)).read();
}

Trace load_trace(const std::string& path) {
  return TraceReader(CsvTable::load(path)).read();
}

}  // namespace simsync
