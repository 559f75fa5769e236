#include "cli/ranking.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/csv.hpp"
#include "base/parse_units.hpp"
#include "base/wrap.hpp"
#include "sim/engine/predict.hpp"

namespace simsync {
namespace {

constexpr double kTie = 1e-3;  // the relative difference up to which steps count as equal (ReplayOptions::convergence)

/// A row with its place among those of its model.
struct Placed {
  RankedRow row;
  int place = 1;
  bool tied = false;
  std::size_t order = 0;  ///< of the row among those of its model
  double of_best = 1.0;   ///< its throughput over the best one's
};

bool differ(const std::vector<RankedRow>& rows, std::string RankedRow::*field) {
  return std::any_of(rows.begin(), rows.end(), [&](const RankedRow& r) { return r.*field != rows.front().*field; });
}

/// Places of the rows of one model, which `rows` are.
void place(std::vector<Placed*> rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Placed* a, const Placed* b) { return is_better(a->row, b->row); });
  std::size_t first = 0;  // of those that tie
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i]->order = i;
    rows[i]->of_best = rows[i]->row.throughput / rows.front()->row.throughput;
    const double to_first = rows[i]->row.throughput / rows[first]->row.throughput;
    if (to_first < 1.0 - kTie || rows[i]->row.fits() != rows[first]->row.fits()) first = i;
    rows[i]->place = static_cast<int>(first) + 1;
    if (i == first) continue;
    rows[i]->tied = rows[first]->tied = true;
  }
}

std::vector<Placed> placed(const std::vector<RankedRow>& rows, bool keep_order) {
  std::vector<Placed> out;
  std::vector<std::string> models;  // in their order
  for (const RankedRow& row : rows) {
    out.push_back({.row = row});
    if (std::find(models.begin(), models.end(), row.model) == models.end()) models.push_back(row.model);
  }
  for (const auto& model : models) {
    std::vector<Placed*> of_model;
    for (Placed& row : out)
      if (row.row.model == model) of_model.push_back(&row);
    place(of_model);
  }
  if (keep_order) return out;
  const auto number = [&](const Placed& p) { return std::find(models.begin(), models.end(), p.row.model); };
  std::stable_sort(out.begin(), out.end(), [&](const Placed& a, const Placed& b) {
    return std::pair{number(a), a.order} < std::pair{number(b), b.order};
  });
  return out;
}

std::map<std::string, std::string> map_of(const std::string& settings) {
  const auto pairs = parse_settings_text(settings).value_or(std::vector<std::pair<std::string, std::string>>{});
  return {pairs.begin(), pairs.end()};
}

/// The keys whose values are not the same in all rows.
std::set<std::string> varying_keys(const std::vector<RankedRow>& rows) {
  std::set<std::string> keys, varying;
  for (const RankedRow& row : rows)
    for (const auto& [key, value] : map_of(row.settings)) keys.insert(key);
  for (const auto& key : keys) {
    std::set<std::string> values;
    for (const RankedRow& row : rows) values.insert(map_of(row.settings)[key]);
    if (values.size() > 1) varying.insert(key);
  }
  return varying;
}

struct Column {
  std::string title;
  std::vector<std::string> cells;
  bool to_the_right = false;
  std::size_t least = 0;  ///< it may be cut down to so many columns; 0: it may not
  int spared = 0;         ///< where there is no room, columns are left out, the highest number first; 0: never

  [[nodiscard]] std::size_t width() const {
    std::size_t out = columns_of(title);
    for (const auto& cell : cells) out = std::max(out, columns_of(cell));
    return out;
  }
};

class Layout {
public:
  Layout(const std::vector<RankedRow>& rows, const RankingOptions& options)
      : rows_(placed(rows, options.keep_order)), all_(rows), style_(options.style) {}

  std::string text() {
    add_columns();
    std::vector<std::size_t> widths = fitting_widths();
    while (total(widths) > style_.width && leave_out_column()) widths = fitting_widths();
    constexpr std::size_t kMostBar = 40;
    const std::size_t bar = std::min(kMostBar, style_.width - std::min(total(widths), style_.width));
    std::string out = wrapped(title(), style_.width) + "\n" + line(widths, bar, rows_.size());
    for (std::size_t row = 0; row < rows_.size(); ++row) out += line(widths, bar, row);
    if (std::any_of(rows_.begin(), rows_.end(), [](const Placed& p) { return p.tied; }))
      out += wrapped("= equally fast, within the 0.1 % to which steps are simulated", style_.width) + "\n";
    const std::string misfits = misfit_note(all_, "! ", style_.width);
    return misfits.empty() ? out : out + misfits + "\n";
  }

private:
  /// With room for a bar, as far as columns may be cut.
  [[nodiscard]] std::vector<std::size_t> fitting_widths() const {
    constexpr std::size_t kLeastBar = 8;
    std::vector<std::size_t> widths;
    for (const Column& column : columns_) widths.push_back(column.width());
    for (std::size_t i = 0; i < columns_.size() && total(widths) + kLeastBar > style_.width; ++i) {
      const std::size_t excess = total(widths) + kLeastBar - style_.width;
      const std::size_t spare = columns_[i].least == 0 ? 0 : widths[i] - std::min(columns_[i].least, widths[i]);
      widths[i] -= std::min(spare, excess);
    }
    return widths;
  }

  /// Of columns with a space behind each, the last one without.
  static std::size_t total(const std::vector<std::size_t>& widths) {
    return std::accumulate(widths.begin(), widths.end(), widths.size() - 1);
  }

  /// False: none of those that are left may be.
  bool leave_out_column() {
    const auto last = std::max_element(columns_.begin(), columns_.end(),
                                       [](const Column& a, const Column& b) { return a.spared < b.spared; });
    if (last->spared == 0) return false;
    if (last - columns_.begin() < static_cast<std::ptrdiff_t>(bar_at_)) --bar_at_;
    columns_.erase(last);
    return true;
  }

  template <class Cell>
  void add(const std::string& title, Cell cell, bool to_the_right, std::size_t least = 0, int spared = 0) {
    Column column{title, {}, to_the_right, least, spared};
    for (const Placed& row : rows_) column.cells.push_back(cell(row));
    columns_.push_back(std::move(column));
  }

  void add_if_different(const char* title, std::string RankedRow::*field, bool to_the_right) {
    if (differ(all_, field))
      add(
          title, [&](const Placed& p) { return p.row.*field; }, to_the_right);
  }

  void add_columns() {
    constexpr std::size_t kLeastName = 16;
    constexpr std::size_t kLeastLimit = 20;
    constexpr std::size_t kWide = 100;
    enum Spared { Rate = 1, Interval, Limit };
    add(
        "#", [](const Placed& p) { return fmt::format("{}{}{}", p.tied ? "=" : "", p.row.fits() ? "" : "!", p.place); },
        true);
    add_if_different("model", &RankedRow::model, false);
    add_if_different("cluster", &RankedRow::cluster, false);
    add(
        "strategy", [](const Placed& p) { return p.row.strategy; }, false, kLeastName);
    add_if_different("workers", &RankedRow::workers, true);
    add_if_different("batch", &RankedRow::batch, true);
    add_settings();
    const bool work_differs = differ(all_, &RankedRow::workers) || differ(all_, &RankedRow::batch);
    add(
        "step", [](const Placed& p) { return format_seconds(Seconds{p.row.step}); }, true);
    if (work_differs || style_.width >= kWide)
      add(
          "samples/s", [](const Placed& p) { return fmt::format("{:.1f}", p.row.throughput); }, true, 0, Rate);
    bar_at_ = columns_.size();
    const auto in_doubt = [](const RankedRow& r) { return r.low < r.high; };
    if (std::any_of(all_.begin(), all_.end(), in_doubt)) add("90 % interval", interval, false, 0, Interval);
    if (std::any_of(all_.begin(), all_.end(), [](const RankedRow& r) { return !r.limit.empty(); }))
      add(
          "limited by", [](const Placed& p) { return p.row.limit; }, false, kLeastLimit, Limit);
  }

  void add_settings() {
    const auto keys = varying_keys(all_);
    for (const auto& key : keys) {
      const std::size_t dot = key.rfind('.');
      const std::string title = dot == std::string::npos ? key : key.substr(dot + 1);
      add(
          title, [&](const Placed& p) { return map_of(p.row.settings)[key]; }, true);
    }
  }

  static std::string interval(const Placed& p) {
    const bool seconds = p.row.high >= 1.0;
    const double scale = seconds ? 1.0 : 1e3;
    return fmt::format("{:.{}f} to {:.{}f} {}", scale * p.row.low, seconds ? 2 : 0, scale * p.row.high, seconds ? 2 : 0,
                       seconds ? "s" : "ms");
  }

  /// What all rows have in common.
  [[nodiscard]] std::string title() const {
    const RankedRow& any = all_.front();
    std::string out;
    const auto say = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
    const bool one_model = !differ(all_, &RankedRow::model);
    const bool one_cluster = !differ(all_, &RankedRow::cluster);
    if (one_model) say(any.model);
    if (one_cluster) out += (out.empty() ? "on " : " on ") + any.cluster;
    if (!differ(all_, &RankedRow::workers)) say(any.workers + (any.workers == "1" ? " worker" : " workers"));
    if (!differ(all_, &RankedRow::batch)) say("batch " + any.batch + " per worker");
    const auto varying = varying_keys(all_);
    for (const auto& [key, value] : map_of(any.settings))
      if (!varying.contains(key)) say(fmt::format("{}={}", key, value));
    return out;
  }

  /// Of a row, or of the names of the columns when there is no such row.
  [[nodiscard]] std::string line(const std::vector<std::size_t>& widths, std::size_t bar_width, std::size_t row) const {
    std::string out;
    for (std::size_t i = 0; i <= columns_.size(); ++i) {
      if (i == bar_at_ && bar_width > 1)
        out += bar(row < rows_.size() && rows_[row].row.fits() ? rows_[row].of_best : 0.0, bar_width - 1, style_) + ' ';
      if (i == columns_.size()) break;
      const Column& column = columns_[i];
      const std::string& cell = row < rows_.size() ? column.cells[row] : column.title;
      const std::size_t lead = column.to_the_right ? widths[i] - std::min(widths[i], columns_of(cell)) : 0;
      out += std::string(lead, ' ') + fitted(cell, widths[i] - lead, style_) + ' ';
    }
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
  }

  std::vector<Placed> rows_;
  const std::vector<RankedRow>& all_;
  TerminalStyle style_;
  std::vector<Column> columns_;
  std::size_t bar_at_ = 0;  ///< before this column
};

}  // namespace

RankedRow ranked_row(const std::string& csv, const std::string& limit) {
  const auto table = CsvTable::parse(csv_row(row_header()) + "\n" + csv + "\n", "sweep");
  const auto number = [&](const char* column) { return table.number(0, column).value_or(0.0); };
  return {.model = table.cell(0, "model"),
          .cluster = table.cell(0, "cluster"),
          .strategy = table.cell(0, "strategy"),
          .workers = table.cell(0, "workers"),
          .batch = table.cell(0, "batch_per_worker"),
          .settings = table.cell(0, "settings"),
          .step = number("step_time_s"),
          .low = number("step_time_low_s"),
          .high = number("step_time_high_s"),
          .throughput = number("throughput_samples_per_s"),
          .needed = number("memory_bytes"),
          .memory = number("device_memory_bytes"),
          .limit = limit};
}

bool is_better(const RankedRow& a, const RankedRow& b) {
  return a.fits() != b.fits() ? a.fits() : a.throughput > b.throughput;
}

std::string misfit_note(const std::vector<RankedRow>& rows, const std::string& mark, std::size_t width) {
  struct Work {
    std::vector<std::string> strategies;  // in their order
    double least = 0.0, most = 0.0;       // bytes needed
  };
  std::vector<std::pair<std::string, Work>> works;  // by model, batch, cluster and its memory
  std::size_t count = 0;
  for (const RankedRow& row : rows) {
    if (row.fits()) continue;
    ++count;
    const std::string name = fmt::format("{}, batch {} per worker, on {} with {}", row.model, row.batch, row.cluster,
                                         format_bytes(row.memory));
    auto found = std::find_if(works.begin(), works.end(), [&](const auto& work) { return work.first == name; });
    if (found == works.end()) found = works.insert(found, {name, {{}, row.needed, row.needed}});
    Work& work = found->second;
    if (std::find(work.strategies.begin(), work.strategies.end(), row.strategy) == work.strategies.end())
      work.strategies.push_back(row.strategy);
    work.least = std::min(work.least, row.needed);
    work.most = std::max(work.most, row.needed);
  }
  if (count == 0) return {};
  std::string text = fmt::format(
      "{}{} of {} rows need{} more memory than the device has; without recomputation, offloading or a "
      "smaller batch they would not run",
      mark, count, rows.size(), count == 1 ? "s" : "");
  for (const auto& [name, work] : works) {
    const std::string least = format_bytes(work.least);
    const std::string most = format_bytes(work.most);
    text += fmt::format("; {}: {} {} about {}{}", name, fmt::join(work.strategies, ", "),
                        work.strategies.size() == 1 ? "needs" : "need", least, most == least ? "" : " to " + most);
  }
  return wrapped(text, width, 2);
}

std::string ranking(const std::vector<RankedRow>& rows, const RankingOptions& options) {
  return rows.empty() ? std::string{} : Layout(rows, options).text();
}

}  // namespace simsync
