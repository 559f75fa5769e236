#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/progress_bar.hpp"
#include "cli/commands.hpp"
#include "cli/correction.hpp"
#include "cli/measure_probes.hpp"
#include "cli/outputs.hpp"
#include "cli/settings.hpp"
#include "cli/unknown.hpp"
#include "platforms/reader.hpp"
#include "strategies/names.hpp"
#include "validate/calibrate/readers.hpp"
#include "validate/calibrate/report.hpp"

namespace simsync {
namespace {

constexpr std::size_t kWorstShown = 5;

struct CalibrateFlags {
  std::string cluster;
  std::vector<std::string> from;
  bool measure = false;
  TestbedFlags testbed;
  std::string probes;
  std::vector<std::string> rows;
  std::vector<std::string> score;
  std::vector<std::string> fit;
  std::vector<std::string> settings;
  std::string prior;
  std::string out;
  std::string csv;
  std::string date;
  int ranks = 0;
};

/// `column=value,value`.
ColumnFilter parse_filter(const std::string& text) {
  const std::size_t equals = text.find('=');
  ColumnFilter out{.column = text.substr(0, equals), .values = {}};
  for (std::size_t at = equals + 1; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    out.values.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return out;
}

/// `key=low..high`.
Unknown parse_unknown(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::size_t dots = text.find("..", equals);
  const auto low = parse_scaled(text.substr(equals + 1, dots - equals - 1));
  const auto high = dots == std::string::npos ? std::nullopt : parse_scaled(text.substr(dots + 2));
  const std::string key = text.substr(0, equals);
  const bool from_nothing = key == kInterference && low && low->value == 0.0;
  if (!low || !high || low->dimension != high->dimension || (low->value <= 0.0 && !from_nothing) ||
      high->value <= low->value)
    throw InputError(
        fmt::format("--fit {}: expected key=low..high with units, such as "
                    "link.ethernet.latency=1us..10ms, low above 0",
                    text));
  return {key, low->dimension, low->value, high->value, true};
}

void add_unknown(std::vector<Unknown>& all, Unknown unknown) {
  if (std::ranges::find(all, unknown.key, &Unknown::key) != all.end())
    throw InputError(fmt::format("--fit names '{}' twice", unknown.key));
  all.push_back(std::move(unknown));
}

/// What is fitted, on which cluster, and where it comes from: files, or live runs.
struct Measurements {
  Cluster cluster;
  std::vector<std::string> sources;
  std::vector<Probe> fitted;
  std::vector<Probe> scored;
};

Measurements read_files(const CalibrateFlags& flags) {
  ReadOptions fitted{.ranks = flags.ranks, .where = {}};
  for (const auto& text : flags.rows) fitted.where.push_back(parse_filter(text));
  // What is scored keeps the filters on other columns.
  ReadOptions scored = fitted;
  for (const auto& text : flags.score) {
    const ColumnFilter filter = parse_filter(text);
    std::erase_if(scored.where, [&](const ColumnFilter& f) { return f.column == filter.column; });
    scored.where.push_back(filter);
  }
  Measurements out{.cluster = find_cluster(flags.cluster), .sources = flags.from, .fitted = {}, .scored = {}};
  const auto add = [](std::vector<Probe>& to, const std::vector<Probe>& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  for (const auto& file : flags.from) {
    add(out.fitted, read_probes(file, fitted));
    if (!flags.score.empty()) add(out.scored, read_probes(file, scored));
  }
  const auto used = [&](const Probe& probe) {
    return std::any_of(out.fitted.begin(), out.fitted.end(), [&](const Probe& p) { return p.where == probe.where; });
  };
  std::erase_if(out.scored, used);
  if (!flags.score.empty() && out.scored.empty()) throw InputError("--score: every row that it names is also fitted");
  return out;
}

/// Costs of a round are those of the cluster's own algorithm; all-reduces by another are predicted with them.
Measurements read_live(const CalibrateFlags& flags) {
  MeasuredProbes measured = measure_probes(flags.testbed, flags.probes);
  Measurements out{.cluster = std::move(measured.cluster), .sources = {}, .fitted = {}, .scored = {}};
  out.sources = {"live runs, " + out.cluster.description};
  std::cerr << fmt::format("fitting {} measurements, up to a minute{}\n", measured.probes.size(),
                           flags.probes.empty() ? " (--probes FILE keeps them)" : "");
  for (Probe& probe : measured.probes) {
    const bool other = probe.collective() && out.cluster.collective.algorithm != name_of(probe.algorithm);
    (other ? out.scored : out.fitted).push_back(std::move(probe));
  }
  return out;
}

void write_rows(const std::string& path, const CalibrationResult& result, const std::vector<CalibratedRow>& scored) {
  std::string text = csv_row(calibration_header()) + "\n";
  for (const auto& row : result.rows) text += csv_row(calibration_cells("fit", row)) + "\n";
  for (const auto& row : result.left_out) text += csv_row(calibration_cells("left out", row)) + "\n";
  for (const auto& row : scored) text += csv_row(calibration_cells("score", row)) + "\n";
  if (path == "-") {
    std::cout << text;
  } else {
    write_file(path, text);
  }
}

CalibrationResult fit(const Measurements& measured, CalibrateOptions& options) {
  ProgressBar bar(0);
  double share = 0.0;
  std::string stage;
  std::size_t evaluations = 0;
  options.progress = [&](std::size_t done, std::size_t total, const std::string& what) {
    share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 1.0;
    stage = fmt::format("{}  {}/{}", what, done, total);
    bar.set_round(share, stage);
  };
  options.evaluated = [&] { bar.set_round(share, fmt::format("{}, {} evaluations", stage, ++evaluations)); };
  return calibrate(measured.cluster, measured.fitted, options);
}

/// What can be told before anything is measured or fitted.
void check(const CalibrateFlags& flags) {
  if (!flags.date.empty() && !is_date(flags.date))
    throw InputError("--date " + flags.date + ": expected a date such as 2026-01-31");
}

/// Trials are no measurements of links: they teach what predictions leave out.
bool are_trials(const std::vector<std::string>& files) {
  const auto count = std::count_if(files.begin(), files.end(), is_trial_table);
  if (count != 0 && count != static_cast<std::ptrdiff_t>(files.size()))
    throw InputError("--from: tables of trials and other measurements teach different things",
                     "calibrate the cluster first, then learn from trials that were predicted with it");
  return count != 0;
}

/// Whether a row of one of these tables is of a cluster with this name.
bool have_cluster(const std::vector<std::string>& files, const std::string& name) {
  return std::any_of(files.begin(), files.end(), [&](const std::string& file) {
    const CsvTable table = CsvTable::load(file);
    for (std::size_t row = 0; row < table.size(); ++row)
      if (table.cell(row, "cluster") == name) return true;
    return false;
  });
}

void learn_from_trials(const CalibrateFlags& flags) {
  const std::pair<const char*, bool> others[] = {{"--score", !flags.score.empty()},  {"--fit", !flags.fit.empty()},
                                                 {"--set", !flags.settings.empty()}, {"--prior", !flags.prior.empty()},
                                                 {"--ranks", flags.ranks != 0},      {"--date", !flags.date.empty()},
                                                 {"--csv", !flags.csv.empty()}};
  for (const auto& [name, given] : others)
    if (given)
      throw InputError(fmt::format("{}: trials fit no number of a cluster, so that it says nothing here", name));
  std::vector<ColumnFilter> where;
  if (!flags.cluster.empty()) {
    // A testbed has no file; its trials have its name.
    const bool named = have_cluster(flags.from, flags.cluster);
    where.push_back({.column = "cluster", .values = {named ? flags.cluster : find_cluster(flags.cluster).name}});
  }
  for (const auto& text : flags.rows) where.push_back(parse_filter(text));
  learn_correction_of(flags.from, where, flags.out);
}

void run_calibrate(const CalibrateFlags& flags) {
  check(flags);
  CalibrateOptions options;
  options.assumed = parse_settings(flags.settings);
  for (const auto& text : flags.fit) add_unknown(options.unknowns, parse_unknown(text));
  if (are_trials(flags.from)) return learn_from_trials(flags);
  if (!flags.from.empty() && flags.cluster.empty()) throw CLI::RequiresError("--from", "--cluster");
  if (!flags.prior.empty()) options.prior = load_calibration(flags.prior);
  options.date = date_or_today(flags.date);
  const Measurements measured = flags.measure ? read_live(flags) : read_files(flags);
  options.sources = measured.sources;
  const CalibrationResult result = fit(measured, options);
  if (!flags.out.empty()) write_file(flags.out, to_yaml(result.calibration));
  Cluster calibrated = measured.cluster;
  apply(calibrated, result.calibration);
  const auto scored = predict_rows(calibrated, measured.scored);
  if (!flags.csv.empty()) write_rows(flags.csv, result, scored);
  std::ostream& out = flags.csv == "-" ? std::cerr : std::cout;
  out << parameter_table(result) << residual_table("fitted", result.rows, kWorstShown);
  if (!result.left_out.empty()) out << residual_table("left out", result.left_out, result.left_out.size());
  if (!scored.empty()) out << residual_table("scored", scored, kWorstShown);
}

/// Flags of --measure, which mean nothing without it.
void add_live_flags(CLI::App& command, CalibrateFlags& flags, CLI::Option* measure) {
  const TestbedOptions testbed = add_testbed_flags(command, flags.testbed);
  measure->needs(testbed.hosts);
  testbed.hosts->needs(measure);
  for (auto* option : testbed.details) option->needs(measure);
  command.add_option("--probes", flags.probes, "Write what --measure measures to this file, for --from")
      ->needs(measure)
      ->check(output_file("--probes"));
}

}  // namespace

void setup_calibrate(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<CalibrateFlags>();
  auto* command = app.add_subcommand("calibrate", "Fit a cluster's numbers to measurements");
  command->add_option("--cluster", flags->cluster, "Cluster: a name ('simsync list clusters') or a path");
  command
      ->add_option("--from", flags->from,
                   "Measurements: our CSV, nccl-tests or OSU output, a table of collectives; or measured trials of "
                   "search, from which --out is a correction for predict (--cluster takes those of one cluster); "
                   "again and again")
      ->check(file_name());
  auto* measure = command->add_flag("--measure", flags->measure, "Measure an emulated cluster (--testbed) first");
  add_live_flags(*command, *flags, measure);
  command->add_option("--rows", flags->rows, "column=value,value: take these rows of a table only; again and again")
      ->check(key_and_value());
  command->add_option("--score", flags->score, "column=value,value: rows that are predicted and not fitted")
      ->check(key_and_value());
  command->add_option("--fit", flags->fit, "key=low..high: find this parameter, and only those so named")
      ->check(key_and_value());
  command->add_option("--set", flags->settings, "key=value that holds and is not fitted; again and again")
      ->check(key_and_value());
  command->add_option("--prior", flags->prior, "Calibration of another cluster to start from")->check(file_name());
  command->add_option("--ranks", flags->ranks, "Ranks of files that do not say how many took part")
      ->check(whole_number(2, 1'000'000));
  command->add_option("--date", flags->date, "Date of the measurements, such as 2026-01-31 (default: today)");
  command->add_option("--out", flags->out, "Write the calibration to this file")->check(output_file("--out"));
  command->add_option("--csv", flags->csv, "Write one row per measurement to this file, or to standard output with '-'")
      ->check(output_file("--csv"));
  for (const char* name : {"--cluster", "--from", "--rows", "--score", "--ranks"})
    measure->excludes(command->get_option(name));
  command->callback([flags] {
    if (flags->from.empty() && !flags->measure) throw CLI::RequiredError("--from or --measure");
    run_calibrate(*flags);
  });
}

}  // namespace simsync
