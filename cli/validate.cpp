#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>

#include "base/file.hpp"
#include "base/progress_bar.hpp"
#include "cli/commands.hpp"
#include "cli/interruption.hpp"
#include "cli/outputs.hpp"
#include "cli/row_file.hpp"
#include "cli/settings.hpp"
#include "cli/study_trials.hpp"
#include "cli/unknown.hpp"
#include "cli/validate_cases.hpp"
#include "cli/worker_pool.hpp"
#include "platforms/calibration.hpp"
#include "sim/problem/problem.hpp"
#include "validate/cases.hpp"
#include "validate/comparison.hpp"
#include "validate/evaluate.hpp"
#include "validate/fitted_calibration.hpp"
#include "validate/predictor.hpp"

namespace simsync {
namespace {

struct ValidateOptions {
  std::vector<std::string> studies;
  std::string csv;
  std::string groups;
  std::string calibration_out;
  std::string correction;
  std::string trials_out;
  std::string date;
  CaseFlags cases;
  bool brief = false;
  int jobs = 1;
};

/// `path` itself, or cal-2.yaml for the second of several cal.yaml.
std::string numbered(const std::string& path, std::size_t number, std::size_t count) {
  if (count == 1) return path;
  const std::filesystem::path file(path);
  return (file.parent_path() / fmt::format("{}-{}{}", file.stem().string(), number, file.extension().string()))
      .string();
}

/// One file for each set of fitted numbers; says on standard error what each is for.
void write_calibrations(const ValidateOptions& options, const Study& study, const StudyResult& result) {
  const auto found = fitted_calibrations(study, result, date_or_today(options.date));
  if (found.empty()) std::cerr << fmt::format("note: nothing is fitted in study '{}'\n", study.name);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::string path = numbered(options.calibration_out, i + 1, found.size());
    announce_output(path, "--calibration-out");  // a numbered one may be another flag's
    write_file(path, to_yaml(found[i]));
    std::cerr << fmt::format("{} is for\n  {}\n", path, fmt::join(found[i].valid_for, "\n  "));
  }
}

/// What one process sends back of a study.
struct Answer {
  std::string verdict, summary, description, notes, rows, groups;
};

constexpr char kApart = '\x1e';  ///< between the parts: stands in no file

/// A study alone: its cases side by side.
EvaluateOptions cases_side_by_side(int jobs) {
  EvaluateOptions out;
  out.side_by_side = [jobs](std::size_t count, const auto& work, const auto& done) {
    run_in_processes(count, jobs, work, done);
  };
  return out;
}

std::string evaluated(const std::string& name, const ValidateOptions& options, const EvaluateOptions& how) {
  const Study study = find_study(name);
  const auto predictor = options.correction.empty() ? std::make_unique<EnginePredictor>()
                                                    : std::make_unique<CorrectedPredictor>(options.correction);
  const StudyResult result = evaluate(study, *predictor, how);
  if (!options.trials_out.empty()) write_file(options.trials_out, trials_of(result));
  if (!options.calibration_out.empty()) write_calibrations(options, study, result);
  const std::vector<std::string> parts{result.passed() ? "passed" : "failed",
                                       summary_row(result),
                                       describe(result),
                                       fmt::format("{}", fmt::join(study.notes, "\n")),
                                       fmt::format("{}", fmt::join(comparison_rows(result), "\n")),
                                       fmt::format("{}", fmt::join(groups_rows(result), "\n"))};
  return fmt::format("{}", fmt::join(parts, std::string(1, kApart)));
}

Answer answer_of(const std::string& text) {
  Answer out;
  std::istringstream parts(text);
  for (std::string* part : {&out.verdict, &out.summary, &out.description, &out.notes, &out.rows, &out.groups})
    std::getline(parts, *part, kApart);
  return out;
}

/// The files and streams that a study's answer goes to.
class Reports {
public:
  /// A file that cannot be written is told before the first study runs; standard output stays empty until one is done.
  explicit Reports(const ValidateOptions& options) : options_(options) {
    if (!options.csv.empty() && options.csv != "-") cases_.emplace(options.csv, comparison_header(), false);
    if (!options.groups.empty()) groups_.emplace(options.groups, groups_header(), false);
  }
  void add(const Answer& answer) {
    const bool cases_out = options_.csv == "-";
    if (cases_out && !cases_) cases_.emplace(options_.csv, comparison_header(), false);
    if (!cases_out && !summary_) summary_.emplace("-", summary_header(), false);
    if (cases_) cases_->append(answer.rows);
    if (groups_ && !answer.groups.empty()) groups_->append(answer.groups);
    if (summary_) summary_->append(answer.summary);
    if (!answer.notes.empty()) std::cerr << answer.notes << '\n';
    if (!options_.brief && !cases_out) std::cerr << answer.description << '\n';
  }

private:
  const ValidateOptions& options_;
  std::optional<RowFile> cases_, groups_, summary_;
};

void run_cases(const ValidateOptions& options, Outcome& outcome) {
  const Study study = find_study(options.studies.front());
  for (const auto& note : study.notes) std::cerr << note << '\n';
  const StudyResult result = show_cases(study, options.cases, outcome);
  if (!options.calibration_out.empty()) write_calibrations(options, study, result);
}

/// What of the flags does not fit together, before anything is read.
void expect_consistent(const ValidateOptions& options) {
  const bool one = options.studies.size() == 1;
  if (!options.cases.cases.empty() && !one) throw CLI::ValidationError("--case", "needs one study");
  if (!options.trials_out.empty() && !one) throw CLI::ValidationError("--trials-out", "needs one study");
  if (!options.calibration_out.empty() && !one) throw CLI::ValidationError("--calibration-out", "needs one study");
  if (!options.date.empty() && !is_date(options.date))
    throw InputError("--date " + options.date + ": expected a date such as 2026-01-31");
}

/// Reads everything that the studies name, so that none of it is found to be the output when that has begun.
void read_inputs(const std::vector<std::string>& studies) {
  Inputs inputs;
  std::set<std::vector<std::string>> known;
  for (const auto& name : studies) {
    for (const Case& one : cases_of(find_study(name))) {
      const PredictRequest& r = one.request;
      if (!known.insert({r.model, r.cluster, r.strategy, r.calibration}).second) continue;
      try {
        (void)prepare(r, inputs);
      } catch (const PlanError&) {
        // told when its turn comes
      }
    }
  }
}

/// Rows leave as soon as a study and all before it are done.
void run_validate(const ValidateOptions& options, Outcome& outcome) {
  std::vector<std::string> studies = options.studies;
  if (studies.empty()) studies = known_studies();
  std::size_t done = 0;
  const auto tell_state = [&] {
    const bool kept = done > 0 && !options.csv.empty() && options.csv != "-";
    tell_when_interrupted(fmt::format("interrupted: {} of {} studies are done{}", done, studies.size(),
                                      kept ? "; " + options.csv + " has their rows" : ""));
  };
  tell_state();
  const bool writes = !options.groups.empty() || !options.trials_out.empty() || !options.calibration_out.empty();
  if (writes || (!options.csv.empty() && options.csv != "-")) read_inputs(studies);
  Reports reports(options);
  ProgressBar progress(studies.size());
  const EvaluateOptions how = studies.size() == 1 ? cases_side_by_side(options.jobs) : EvaluateOptions{};
  run_in_processes(
      studies.size(), options.jobs, [&](std::size_t i) { return evaluated(studies[i], options, how); },
      [&](std::size_t, const std::string& text) {
        const Answer answer = answer_of(text);
        if (answer.verdict != "passed") outcome.code = ExitCode::Finding;
        progress.advance();
        progress.above([&] { reports.add(answer); });
        ++done;
        tell_state();
      });
}

}  // namespace

void setup_validate(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<ValidateOptions>();
  auto* command = app.add_subcommand(
      "validate", "Compare predictions with published measurements (exit 1 when a study misses its tolerance)");
  command->add_option("studies", options->studies, "Study names or paths (default: all built-in studies)");
  command
      ->add_option("--csv", options->csv,
                   "Write one row per case to this file; '-' is standard output, instead of the summary")
      ->check(output_file("--csv"));
  command
      ->add_option("--groups", options->groups,
                   "Write one row per group of strategies for the same work to this file: which is predicted best, "
                   "which is, and what the difference costs")
      ->check(output_file("--groups"));
  auto* cases = command
                    ->add_option("--case", options->cases.cases,
                                 "Only these cases of one study, by id or pattern ('*', '?'): rows on standard output")
                    ->delimiter(',')
                    ->allow_extra_args(false);
  command
      ->add_flag("--explain", options->cases.explain,
                 "With --case: what predict --explain says of each, beside its measurement")
      ->needs(cases);
  auto* calibration_out = command
                              ->add_option("--calibration-out", options->calibration_out,
                                           "Write what one study fitted to this file, for --calibration of predict; "
                                           "several sets of numbers to NAME-1.yaml, NAME-2.yaml and so on")
                              ->check(output_file("--calibration-out"));
  command
      ->add_option("--date", options->date,
                   "Date of the measurements in that file, such as 2026-01-31 (default: today)")
      ->needs(calibration_out);
  command
      ->add_option("--trials-out", options->trials_out,
                   "Write the cases of one study to this file as measured trials, for calibrate --from")
      ->check(output_file("--trials-out"))
      ->excludes(cases);
  command
      ->add_option("--correction", options->correction,
                   "Score predictions that measured strategies correct: a file of calibrate")
      ->check(file_name())
      ->excludes(cases);
  command->add_option("--jobs", options->jobs, "Processes that work side by side: on studies, or on the cases of one")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  command->add_flag("--brief", options->brief, "Only the summary table");
  command->callback([options, &outcome] {
    expect_consistent(*options);
    options->cases.csv = options->csv;
    options->cases.cases.empty() ? run_validate(*options, outcome) : run_cases(*options, outcome);
  });
}

}  // namespace simsync
