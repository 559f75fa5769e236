#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>
#include <set>

#include "base/progress_bar.hpp"
#include "cli/commands.hpp"
#include "cli/outputs.hpp"
#include "cli/row_file.hpp"
#include "cli/unknown.hpp"
#include "cli/worker_pool.hpp"
#include "sim/problem/problem.hpp"
#include "validate/cases.hpp"
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
  return out + fmt::format("{}", fmt::join(comparison_rows(result), "\n"));
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
  if (!options.csv.empty() && options.csv != "-") read_inputs(studies);
  const bool cases_out = options.csv == "-";
  std::optional<RowFile> cases, summary;
  if (!options.csv.empty()) cases.emplace(options.csv, comparison_header(), false);
  if (!cases_out) summary.emplace("-", summary_header(), false);
  ProgressBar progress(studies.size());
  run_in_processes(
      studies.size(), options.jobs, [&](std::size_t i) { return evaluated(studies[i]); },
      [&](std::size_t, const std::string& text) {
        const std::size_t first = text.find(kApart);
        const std::size_t second = text.find(kApart, first + 1);
        if (text.front() == '0') outcome.code = ExitCode::Finding;
        progress.advance();
        progress.above([&] {
          if (cases) cases->append(text.substr(second + 1));
          if (summary) summary->append(text.substr(1, first - 1));
          if (!options.brief && !cases_out) std::cerr << text.substr(first + 1, second - first - 1) << '\n';
        });
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
  command->add_option("--jobs", options->jobs, "Processes that work side by side")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  command->add_flag("--brief", options->brief, "Only the summary table");
  command->callback([options, &outcome] { run_validate(*options, outcome); });
}

}  // namespace simsync
