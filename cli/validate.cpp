#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "base/file.hpp"
#include "base/progress_bar.hpp"
#include "cli/commands.hpp"
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
  bool brief = false;
  int jobs = 1;
};

/// What one process sends back: a verdict, the summary row, the description and the rows, apart by a rare character.
constexpr char kApart = '\x1e';

std::string evaluated(const std::string& name) {
  const Study study = find_study(name);
  EnginePredictor predictor;
  const StudyResult result = evaluate(study, predictor);
  std::string out = (result.passed() ? "1" : "0") + summary_row(result) + kApart + describe(result) + kApart;
  for (const auto& row : comparison_rows(result)) out += row + "\n";
  return out;
}

void run_validate(const ValidateOptions& options, Outcome& outcome) {
  std::vector<std::string> studies = options.studies;
  if (studies.empty()) studies = known_studies();
  ProgressBar progress(studies.size());
  std::string rows;
  std::string table = summary_header() + "\n";
  run_in_processes(
      studies.size(), options.jobs, [&](std::size_t i) { return evaluated(studies[i]); },
      [&](std::size_t, const std::string& text) {
        progress.advance();
        const std::size_t first = text.find(kApart);
        const std::size_t second = text.find(kApart, first + 1);
        if (text.front() == '0') outcome.code = ExitCode::Finding;
        table += text.substr(1, first - 1) + "\n";
        rows += text.substr(second + 1);
        if (!options.brief && options.csv != "-") progress.message(text.substr(first + 1, second - first - 1));
      });
  if (options.csv == "-") {
    std::cout << comparison_header() << "\n" << rows;
    return;
  }
  if (!options.csv.empty()) write_file(options.csv, comparison_header() + "\n" + rows);
  std::cout << table;
}

}  // namespace

void setup_validate(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<ValidateOptions>();
  auto* command = app.add_subcommand(
      "validate", "Compare predictions with published measurements (exit 1 when a study misses its tolerance)");
  command->add_option("studies", options->studies, "Study names or paths (default: all built-in studies)");
  command->add_option("--csv", options->csv,
                      "Write one row per case to this file; '-' is standard output, instead of the summary");
  command->add_option("--jobs", options->jobs, "Processes that work side by side")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  command->add_flag("--brief", options->brief, "Only the summary table");
  command->callback([options, &outcome] { run_validate(*options, outcome); });
}

}  // namespace simsync
