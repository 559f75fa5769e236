#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include "base/progress_bar.hpp"
#include "cli/commands.hpp"
#include "cli/row_file.hpp"
#include "cli/settings.hpp"
#include "cli/unknown.hpp"
#include "cli/worker_pool.hpp"
#include "validate/comparison.hpp"
#include "validate/evaluate.hpp"
#include "validate/predictor.hpp"

namespace simsync {
namespace {

struct ValidateOptions {
  std::vector<std::string> studies;
  std::string csv;
  std::string groups;
  bool brief = false;
  int jobs = 1;
};

/// What one process sends back of a study.
struct Answer {
  std::string verdict, summary, description, notes, rows, groups;
};

constexpr char kApart = '\x1e';  ///< between the parts: stands in no file

std::string evaluated(const std::string& name) {
  const Study study = find_study(name);
  EnginePredictor predictor;
  const StudyResult result = evaluate(study, predictor);
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

/// Rows leave as soon as a study and all before it are done.
void run_validate(const ValidateOptions& options, Outcome& outcome) {
  std::vector<std::string> studies = options.studies;
  if (studies.empty()) studies = known_studies();
  Reports reports(options);
  ProgressBar progress(studies.size());
  run_in_processes(
      studies.size(), options.jobs, [&](std::size_t i) { return evaluated(studies[i]); },
      [&](std::size_t, const std::string& text) {
        const Answer answer = answer_of(text);
        if (answer.verdict != "passed") outcome.code = ExitCode::Finding;
        progress.advance();
        progress.above([&] { reports.add(answer); });
      });
}

}  // namespace

void setup_validate(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<ValidateOptions>();
  auto* command = app.add_subcommand(
      "validate", "Compare predictions with published measurements (exit 1 when a study misses its tolerance)");
  command->add_option("studies", options->studies, "Study names or paths (default: all built-in studies)");
  command->add_option("--csv", options->csv,
                      "Write one row per case to this file; '-' is standard output, instead of the summary");
  command
      ->add_option("--groups", options->groups,
                   "Write one row per group of strategies for the same work to this file: which is predicted best, "
                   "which is, and what the difference costs")
      ->check(file_name());
  command->add_option("--jobs", options->jobs, "Processes that work side by side")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  command->add_flag("--brief", options->brief, "Only the summary table");
  command->callback([options, &outcome] { run_validate(*options, outcome); });
}

}  // namespace simsync
