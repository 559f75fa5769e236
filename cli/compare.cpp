#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <memory>
#include <optional>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/parse_units.hpp"
#include "base/wrap.hpp"
#include "cli/commands.hpp"
#include "cli/memory_check.hpp"
#include "cli/settings.hpp"
#include "cli/terminal.hpp"
#include "cli/unknown.hpp"
#include "sim/engine/verdict.hpp"

namespace simsync {
namespace {

struct CompareOptions {
  std::vector<std::string> models, clusters, strategies, calibrations;
  std::vector<int> workers{1};
  std::vector<std::int64_t> batches;
  std::vector<std::string> settings;
  std::string csv;
};

/// One of the two questions, and its answer.
struct Side {
  PredictRequest request;
  std::string name;  ///< what tells it from the other
  Problem problem;
  Prediction prediction;
  PredictedRow row;
  Explanation explanation;
  std::vector<StepPart> parts;
};

/// The first or the second of at most two. `name` receives what is not the same.
template <class Value>
Value chosen(const char* flag, const std::vector<Value>& values, std::size_t which, std::string& name) {
  if (values.size() > 2) throw InputError(fmt::format("{}: compare takes one or two, got {}", flag, values.size()));
  Value value = values[std::min(which, values.size() - 1)];
  if (values.size() < 2) return value;
  const bool number = !std::is_same_v<Value, std::string>;
  const std::string noun = std::string(flag).substr(2);
  name += (name.empty() ? "" : ", ") + (number ? fmt::format("{} {}", noun, value) : fmt::format("{}", value));
  return value;
}

PredictRequest request_of(const CompareOptions& options, std::size_t which, std::string& name) {
  PredictRequest request;
  request.model = chosen("--model", options.models, which, name);
  request.cluster = chosen("--cluster", options.clusters, which, name);
  request.strategy = chosen("--strategy", options.strategies, which, name);
  request.workers = chosen("--workers", options.workers, which, name);
  if (!options.batches.empty()) request.batch = chosen("--batch", options.batches, which, name);
  if (!options.calibrations.empty()) request.calibration = chosen("--calibration", options.calibrations, which, name);
  for (const auto& text : options.settings) {
    const auto values = settings_combinations({text});
    if (values.size() > 2) throw InputError(fmt::format("--set {}: compare takes one or two values", text));
    const auto& [key, value] = values[std::min(which, values.size() - 1)].front();
    request.settings.emplace_back(key, value);
    if (values.size() == 2) name += (name.empty() ? "" : ", ") + key.substr(key.rfind('.') + 1) + "=" + value;
  }
  if (name.empty())
    throw InputError("compare needs two values of a flag", "such as --strategy ps,ddp or --workers 16,32");
  return request;
}

Side answer(const PredictRequest& request, const std::string& name, Inputs& inputs) {
  Side side{.request = request, .name = name, .problem = prepare(request, inputs)};
  check_memory(side.problem, name);
  ReplayOptions options = side.problem.options;
  options.record = true;
  options.recorded_steps = side.problem.plan.steps_vary() ? 0 : 1;
  side.prediction = replay(side.problem.plan, side.problem.cluster, options);
  side.row = row_of(request, side.problem, side.prediction);
  if (!side.problem.plan.in_lock_step()) return side;
  side.explanation = explain(side.problem, side.prediction);
  side.parts = step_parts(side.problem, side.prediction, side.explanation.path);
  return side;
}

Seconds time_of(const Side& side, const std::string& part) {
  for (const StepPart& one : side.parts)
    if (one.name == part) return one.time;
  return Seconds{};
}

/// Names of the parts of either, the longest first.
std::vector<std::string> parts_of(const std::array<Side, 2>& sides) {
  std::vector<std::string> names;
  for (const Side& side : sides)
    for (const StepPart& part : side.parts)
      if (std::find(names.begin(), names.end(), part.name) == names.end()) names.push_back(part.name);
  const auto longest = [&](const std::string& name) {
    return std::max(time_of(sides[0], name), time_of(sides[1], name));
  };
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string& a, const std::string& b) { return longest(a) > longest(b); });
  return names;
}

/// Two columns of answers behind what they are about.
class SideBySide {
public:
  explicit SideBySide(const std::array<Side, 2>& sides) : sides_(sides), style_(terminal_style()) {
    constexpr std::size_t kWide = 100;
    constexpr std::size_t kNarrow = 64;
    constexpr std::size_t kColumn = 16;
    constexpr std::size_t kWideColumn = 24;
    constexpr std::size_t kNarrowColumn = 11;
    width_ = style_.width >= kWide ? kWideColumn : style_.width >= kNarrow ? kColumn : kNarrowColumn;
    shows_difference_ = style_.width >= kNarrow;
  }

  std::string text() {
    line("", sides_[0].name, sides_[1].name, "difference");
    times("step time", sides_[0].row.step_time, sides_[1].row.step_time);
    const auto rate = [](const Side& side) { return fmt::format("{:.1f}", side.row.throughput()); };
    line("samples/s", rate(sides_[0]), rate(sides_[1]),
         percent(sides_[0].row.throughput(), sides_[1].row.throughput()));
    times("compute of the slowest rank", sides_[0].row.compute, sides_[1].row.compute);
    const auto parts = parts_of(sides_);
    if (!parts.empty()) line("on the critical path:", "", "", "");
    for (const auto& name : parts) {
      const Seconds a = time_of(sides_[0], name);
      const Seconds b = time_of(sides_[1], name);
      if (std::max(a, b) >= kTold * std::max(sides_[0].row.step_time, sides_[1].row.step_time))
        times("  " + name, a, b);
    }
    const auto nics = nic_loads();
    if (nics[0] && nics[1])
      line("sent by the busiest NIC", format_bytes(nics[0]->bytes), format_bytes(nics[1]->bytes),
           percent(nics[0]->bytes, nics[1]->bytes));
    limits();
    links();
    const auto compared = [&](const Side& side) {
      return ComparedSide{side.name, side.problem, side.prediction, side.explanation, side.parts};
    };
    return out_ + wrapped(comparison_verdict(compared(sides_[0]), compared(sides_[1])), style_.width) + "\n";
  }

private:
  static constexpr double kTold = 1e-3;  // of the longer step
  static constexpr double kSame = 1e-6;  // sums in another order differ by less

  static std::string percent(double a, double b) {
    return a > 0.0 ? fmt::format("{:+.1f} %", 100.0 * (b / a - 1.0)) : std::string{};
  }

  static std::string to_the_right(const std::string& text, std::size_t width) {
    const std::size_t columns = columns_of(text);
    return columns < width ? std::string(width - columns, ' ') + text : text;
  }

  void line(const std::string& what, const std::string& a, const std::string& b, const std::string& difference) {
    constexpr std::size_t kDifference = 12;
    const std::size_t label = style_.width - 2 * width_ - 1 - (shows_difference_ ? kDifference + 1 : 0);
    const auto cell = [&](const std::string& text) {
      return to_the_right(columns_of(text) > width_ ? fitted(text, width_, style_) : text, width_);
    };
    std::string text = fitted(what, label, style_) + cell(a) + " " + cell(b);
    if (shows_difference_) text += " " + to_the_right(difference, kDifference);
    text.erase(text.find_last_not_of(' ') + 1);
    out_ += text + "\n";
  }

  void times(const std::string& what, Seconds a, Seconds b) {
    const auto cell = [](Seconds t) { return t > Seconds{0.0} ? format_seconds(t) : std::string{"-"}; };
    const Seconds more = b - a;
    const bool same = std::max(more, a - b) <= kSame * std::max(a, b);
    line(what, cell(a), cell(b),
         same ? "same" : (more < Seconds{0.0} ? "-" : "+") + format_seconds(std::max(more, a - b)));
  }

  [[nodiscard]] std::array<std::optional<NicLoad>, 2> nic_loads() const {
    return {busiest_nic(sides_[0].problem, sides_[0].explanation),
            busiest_nic(sides_[1].problem, sides_[1].explanation)};
  }

  void limits() {
    for (const Side& side : sides_)
      out_ += fitted_line(fmt::format("{}: {}; {}", side.name, limit_phrase(side.problem, side.prediction),
                                      rests_on(side.problem, side.request)));
  }

  void links() {
    constexpr std::size_t kShown = 3;
    for (const Side& side : sides_) {
      std::string busiest;
      for (std::size_t i = 0; i < std::min(kShown, side.explanation.links.size()); ++i) {
        const LinkLoad& load = side.explanation.links[i];
        busiest += fmt::format("{}{} {:.0f} %", i > 0 ? ", " : "", load.busiest, 100.0 * load.utilization);
      }
      if (!busiest.empty()) out_ += fitted_line(fmt::format("{}: busiest {}", side.name, busiest));
    }
  }

  [[nodiscard]] std::string fitted_line(const std::string& text) const {
    constexpr std::size_t kIndent = 4;
    return wrapped(text, style_.width, kIndent) + "\n";
  }

  const std::array<Side, 2>& sides_;
  TerminalStyle style_;
  std::size_t width_ = 0;
  bool shows_difference_ = true;
  std::string out_;
};

/// What both questions have in common.
std::string title(const std::array<Side, 2>& sides) {
  std::string out;
  const auto say = [&](auto get) {
    const std::string text = get(sides[0].row);
    if (text == get(sides[1].row) && !text.empty()) out += (out.empty() ? "" : ", ") + text;
  };
  say([](const PredictedRow& row) { return row.model; });
  say([](const PredictedRow& row) { return "on " + row.cluster; });
  say([](const PredictedRow& row) { return row.strategy; });
  say([](const PredictedRow& row) { return fmt::format("{} workers", row.workers); });
  say([](const PredictedRow& row) { return fmt::format("batch {} per worker", row.batch); });
  return out;
}

std::string as_csv(const std::array<Side, 2>& sides) {
  std::string out = csv_row({"kind", "name", "a", "b"}) + "\n";
  const auto put = [&](const char* kind, const std::string& name, const std::string& a, const std::string& b) {
    out += csv_row({kind, name, a, b}) + "\n";
  };
  const auto& header = row_header();
  const auto a = row_cells(sides[0].row);
  const auto b = row_cells(sides[1].row);
  for (std::size_t i = 0; i < header.size(); ++i) put("column", header[i], a[i], b[i]);
  for (const auto& name : parts_of(sides))
    put("part_s", name, format_number(time_of(sides[0], name).value()), format_number(time_of(sides[1], name).value()));
  const auto bytes = [](const Side& side) {
    const auto load = busiest_nic(side.problem, side.explanation);
    return load ? format_number(load->bytes) : std::string{};
  };
  put("bytes", "busiest NIC", bytes(sides[0]), bytes(sides[1]));
  return out;
}

void run_compare(const CompareOptions& options) {
  std::array<std::string, 2> names;
  const std::array<PredictRequest, 2> requests{request_of(options, 0, names[0]), request_of(options, 1, names[1])};
  Inputs inputs;
  const std::array<Side, 2> sides{answer(requests[0], names[0], inputs), answer(requests[1], names[1], inputs)};
  for (const Side& side : sides)
    for (const auto& note : side.problem.notes) std::cerr << "note: " << side.name << ": " << note << '\n';
  if (!options.csv.empty() && options.csv != "-") write_file(options.csv, as_csv(sides));
  if (options.csv == "-")
    std::cout << as_csv(sides);
  else
    std::cout << wrapped(title(sides), terminal_style().width) << '\n' << SideBySide(sides).text();
}

}  // namespace

void setup_compare(CLI::App& app, Outcome&) {
  auto options = std::make_shared<CompareOptions>();
  auto* command = app.add_subcommand("compare", "Explain two predictions side by side: what differs and why");
  const auto pair = [&](const char* flag, auto& into, const char* text) {
    return command->add_option(flag, into, text)->delimiter(',');
  };
  pair("--model", options->models, "One model, or two to compare: vgg16,resnet50")->required();
  pair("--cluster", options->clusters, "One cluster or two")->required();
  pair("--strategy", options->strategies, "One strategy or two")->required();
  pair("--workers", options->workers, "One number of devices or two")
      ->capture_default_str()
      ->check(whole_number(1, 1'000'000));
  pair("--batch", options->batches, "One number of samples per worker and step or two (default: the model's)")
      ->check(whole_number(1, 100'000'000));
  pair("--calibration", options->calibrations, "Fitted numbers of the cluster: one file of calibrate or two")
      ->check(file_name());
  command->add_option("--set", options->settings, "key=value or key=a,b, again and again ('simsync list settings')")
      ->check(key_and_value());
  command->add_option("--csv", options->csv, "Write what is compared to this file, or to standard output with '-'")
      ->check(file_name());
  command->callback([options] { run_compare(*options); });
}

}  // namespace simsync
