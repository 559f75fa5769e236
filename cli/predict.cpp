#include "sim/engine/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string_view>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/parse_units.hpp"
#include "base/progress_bar.hpp"
#include "base/wrap.hpp"
#include "cli/commands.hpp"
#include "cli/correction.hpp"
#include "cli/export.hpp"
#include "cli/memory_check.hpp"
#include "cli/outputs.hpp"
#include "cli/settings.hpp"
#include "cli/sweep.hpp"
#include "cli/terminal.hpp"
#include "cli/timeline_flags.hpp"
#include "cli/unknown.hpp"
#include "platforms/calibration.hpp"
#include "sim/engine/explain.hpp"
#include "sim/engine/explain_pace.hpp"
#include "sim/engine/verdict.hpp"

namespace simsync {
namespace {

struct PredictOptions {
  PredictRequest request;
  std::int64_t batch = 0;
  std::int64_t global_batch = 0;
  std::vector<std::string> settings;
  std::string csv;
  std::string correction;
  TimelineFlags timeline;
  bool explain = false;
  bool table = false;
  std::string exported;  ///< as which framework takes it; empty: predicted
};

/// `90 % interval -37 to +58 % (from 129 measured steps)`.
std::string reach_text(const Spread& error) {
  const std::string from = error.rows > 0 ? fmt::format(" (from {} measured steps)", error.rows) : "";
  return fmt::format("90 % interval {:+.0f} to {:+.0f} %{}", 100.0 * (error.low - 1.0), 100.0 * (error.high - 1.0),
                     from);
}

/// `pipedream-vgg16` of `layer times of pipedream-vgg16 (...), ...`.
std::string short_source(const std::string& provenance) {
  const std::string_view begin = "layer times of ";
  const std::size_t from = provenance.starts_with(begin) ? begin.size() : 0;
  return provenance.substr(from, provenance.find(" (") - from);
}

void print_summary(const PredictedRow& row, const Prediction& prediction, const std::string& basis, bool whole_source) {
  std::string of_batch = row.batches == row.workers ? "worker" : "replica";
  if (row.context > 1) of_batch = fmt::format("{} context-parallel replicas", row.context);
  std::cout << wrapped(fmt::format("{} on {}, {} with {} worker{}, batch {} per {}", row.model, row.cluster,
                                   row.strategy, row.workers, row.workers == 1 ? "" : "s", row.batch, of_batch),
                       terminal_style().width)
            << '\n';
  print_line("rests on", basis);
  print_line("step time", fmt::format("{}   ({:.1f} samples/s)", format_seconds(row.step_time), row.throughput()));
  if (prediction.step_error >= 0.0005)
    print_line("steps vary", fmt::format("mean of {}, its standard error {:.1f} %", prediction.steps_per_worker,
                                         100.0 * prediction.step_error));
  if (row.step_low < row.step_high)
    print_line("uncertainty", fmt::format("{} to {} (90 % interval of the prediction)", format_seconds(row.step_low),
                                          format_seconds(row.step_high)));
  if (row.backups > 0)
    print_line("backups", fmt::format("{} of {} workers: {:.1f} % of the gradients come too late and are dropped",
                                      row.backups, row.workers, row.dropped_pct));
  print_line("compute", format_seconds(row.compute));
  print_line("exposed comm", format_seconds(row.exposed_comm));
  print_line("efficiency", fmt::format("{:.1f} % of linear scaling", 100.0 * row.scaling_efficiency));
  print_line("memory", memory_text(row.memory));
  print_line("layer times",
             fmt::format("{}, {}; {}", row.profile, short_source(row.provenance), reach_text(row.time_error)));
  if (whole_source && short_source(row.provenance) != row.provenance) print_line("source", row.provenance);
  const std::string sent = prediction.collectives_alone > 0
                               ? fmt::format("{} collectives computed alone", prediction.collectives_alone)
                               : fmt::format("{} flows", prediction.flows);
  print_line("fidelity", fmt::format("{} ({} of {} ranks simulated, {}, {} iteration{})", name_of(row.fidelity),
                                     prediction.simulated_ranks, row.workers, sent, prediction.steps.size(),
                                     prediction.steps.size() == 1 ? "" : "s"));
}

/// The verdict first, so that the replays of what_if, which may take several times as long as the prediction did, come
/// before any text. Asynchronous workers have no step in common, so no path through one either.
void print_explanation(std::ostream& out, const Problem& problem, const Prediction& prediction) {
  if (!problem.plan.in_lock_step()) {
    out << pace_text(problem, prediction);
    return;
  }
  std::vector<WhatIf> answers;
  {
    ProgressBar bar(what_if_count(problem));
    what_if(problem, prediction, [&](const WhatIf& answer) {
      answers.push_back(answer);
      bar.set(answers.size(), "step time without " + answer.what);
    });
  }
  const Explanation explanation = explain(problem, prediction);
  out << verdict(problem, explanation, step_parts(problem, prediction, explanation.path), answers,
                 terminal_style().width);
  out << to_text(explanation);
  out << fmt::format("Step time ({}) without the limit set by:\n", format_seconds(prediction.step));
  for (const WhatIf& answer : answers) out << to_text(answer, prediction.step);
}

/// `ps,ddp` or `all`.
bool is_list(const std::string& strategies) {
  return strategies == "all" || (strategies.find(',') != std::string::npos && !std::filesystem::exists(strategies));
}

void run_sweep_of(const PredictOptions& options) {
  const std::string& list = options.request.strategy;
  if (!options.exported.empty()) throw InputError("--strategy " + list + ": --export is about one strategy");
  if (options.explain || options.timeline.given())
    throw InputError("--strategy " + list + ": --explain and --timeline are about one strategy",
                     "'simsync compare' explains two side by side");
  if (options.global_batch != 0)
    throw InputError("--strategy " + list + ": --global-batch is about one strategy, whose replicas share it",
                     "give --batch, the samples of each replica");
  SweepOptions sweep;
  sweep.models = {options.request.model};
  sweep.clusters = {options.request.cluster};
  sweep.strategies = CLI::detail::split(list, ',');
  sweep.workers = {options.request.workers};
  if (options.batch != 0) sweep.batches = {options.batch};
  sweep.settings = options.settings;
  sweep.calibration = options.request.calibration;
  sweep.correction = options.correction;
  sweep.csv = options.csv;
  sweep.table = options.table;
  sweep.best_first = true;
  run_sweep(sweep);
}

/// With a bar for those that take long: how many iterations there will be is not known before.
Prediction replay_with_bar(const Problem& problem) {
  ProgressBar bar(0);
  ReplayOptions options = problem.options;
  options.progress = [&](const ReplayProgress& now) {
    const auto done = static_cast<double>(now.completed - now.iterations * now.ops);
    bar.set_round(done / static_cast<double>(std::max<std::int64_t>(1, now.ops)),
                  fmt::format("iteration {}, {} flows so far", now.iterations + 1, now.flows));
  };
  return replay(problem.plan, problem.cluster, options);
}

/// As little as is needed: an explanation takes all ranks, a timeline those that it shows.
void choose_record(const PredictOptions& options, const TimelineOptions& drawn, Problem& problem) {
  ReplayOptions& record = problem.options;
  record.record = options.explain || options.timeline.given();
  record.record_rates = options.timeline.given();
  record.recorded_steps = options.timeline.given() ? drawn.last_steps : 1;
  // Which of the steps that vary is explained is known at the end.
  if (options.explain && problem.plan.steps_vary()) record.recorded_steps = 0;
  if (!options.explain) record.recorded_ranks = drawn.ranks;
}

/// Of another cluster.
void tell_calibration(const PredictRequest& request, const Problem& problem) {
  if (request.calibration.empty()) return;
  const Calibration calibration = load_calibration(request.calibration);
  if (!is_for(calibration, problem.cluster))
    std::cerr << fmt::format("note: {} was fitted for cluster '{}', used for '{}'\n", calibration.file,
                             calibration.cluster, problem.cluster.name);
}

/// Of the request without its correction, which is about predictions.
void run_export(const PredictOptions& options, const PredictRequest& request) {
  if (options.explain || options.timeline.given() || !options.csv.empty() || !options.correction.empty())
    throw InputError("--export " + options.exported +
                     ": --csv, --timeline, --explain and --correction are about a prediction, and it makes none");
  const Problem problem = prepare(request);
  tell_calibration(request, problem);
  check_memory(problem);
  print_export(options.exported, problem);
}

void run_predict(const PredictOptions& options) {
  PredictRequest request = options.request;
  if (options.batch != 0) request.batch = options.batch;
  if (options.global_batch != 0) request.global_batch = options.global_batch;
  request.settings = parse_settings(options.settings);
  check_single_values(request.settings);
  if (is_list(request.strategy)) return run_sweep_of(options);
  if (!options.exported.empty()) return run_export(options, request);
  if (options.timeline.file == "-")
    throw InputError("--timeline -: a timeline goes to a file", "give it a name, such as trace.json");
  std::optional<RowCorrection> correction;
  if (!options.correction.empty()) correction.emplace(options.correction);
  Inputs inputs;
  if (correction) request = correction->asked(std::move(request), inputs);
  Problem problem = prepare(request, inputs);
  tell_calibration(request, problem);
  check_memory(problem);
  const TimelineOptions drawn = timeline_options(options.timeline, problem.plan, problem.cluster);
  choose_record(options, drawn, problem);
  const Prediction prediction = replay_with_bar(problem);
  PredictedRow row = row_of(request, problem, prediction);
  std::string corrected;
  if (correction) {
    corrected = correction->text(correction->apply(request, problem, row));
    if (options.explain) std::cerr << "note: what is explained is the step before its correction\n";
    for (const auto& note : correction->notes(request, problem)) std::cerr << "note: " << note << '\n';
  }
  for (const auto& note : problem.notes) std::cerr << "note: " << note << '\n';
  if (!prediction.steady && prediction.steps.size() > 1)
    std::cerr << "warning: the step time still changes by more than 0.1 % after " << prediction.steps.size()
              << " iterations and is their mean pace; --set iterations=N simulates more\n";
  constexpr double kTold = 0.03;
  if (prediction.step_error > kTold)
    std::cerr << fmt::format(
        "note: the mean of the simulated steps has a standard error of {:.1f} %; --set steps_per_worker=N simulates "
        "more (now {})\n",
        100.0 * prediction.step_error, prediction.steps_per_worker);
  const std::string table = csv_row(row_header()) + "\n" + csv_row(row_cells(row)) + "\n";
  if (options.timeline.given())
    write_timeline_file(options.timeline, {problem.plan, problem.cluster, prediction}, drawn);
  // Standard output carries data only: beside a table, the explanation is a message.
  const bool table_out = options.csv == "-";
  if (table_out) std::cout << table << std::flush;
  if (!options.csv.empty() && !table_out) write_file(options.csv, table);
  if (!table_out) print_summary(row, prediction, rests_on(problem, request), options.explain);
  if (!table_out && !corrected.empty()) print_line("corrected", corrected);
  if (options.explain) print_explanation(table_out ? std::cerr : std::cout, problem, prediction);
}

}  // namespace

void setup_predict(CLI::App& app, Outcome&) {
  auto options = std::make_shared<PredictOptions>();
  auto* command = app.add_subcommand("predict", "Predict the step time of one model, cluster and strategy");
  command->add_option("--model", options->request.model, "Model: a name ('simsync list models') or a path")->required();
  command->add_option("--cluster", options->request.cluster, "Cluster: a name ('simsync list clusters') or a path")
      ->required();
  command
      ->add_option("--strategy", options->request.strategy,
                   "Strategy: a builder or preset ('simsync list strategies') or a path; several, with commas, or "
                   "'all' are ranked as sweep does")
      ->required();
  command->add_option("--workers", options->request.workers, "Devices that take part, filled node by node")
      ->capture_default_str()
      ->check(whole_number(1, 1'000'000));
  command
      ->add_option(
          "--batch", options->batch,
          "Samples per worker and step, with tensor or pipeline parallelism per replica (default: the model's)")
      ->check(whole_number(1, 100'000'000));
  command
      ->add_option("--global-batch", options->global_batch,
                   "Samples of all replicas in a step, as search takes them, in place of --batch")
      ->check(whole_number(1, 100'000'000));
  command
      ->add_option("--calibration", options->request.calibration, "Fitted numbers of the cluster: a file of calibrate")
      ->check(file_name());
  command
      ->add_option("--correction", options->correction,
                   "What measured strategies teach of predicted steps: a file of calibrate")
      ->check(file_name());
  command->add_option("--set", options->settings, "key=value, again and again ('simsync list settings')")
      ->check(key_and_value());
  command->add_option("--csv", options->csv, "Write the row to this file, or to standard output with '-'")
      ->check(output_file("--csv"));
  command->add_flag("--table", options->table, "Of several strategies: print the ranking also where it is no terminal");
  add_timeline_flags(*command, options->timeline);
  command->add_flag("--explain", options->explain,
                    "Say what the step time consists of and what would shorten it (with --csv -: on standard error)");
  add_export_flag(*command, options->exported);
  command->callback([options] { run_predict(*options); });
}

}  // namespace simsync
