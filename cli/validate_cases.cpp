#include "cli/validate_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "base/parse_units.hpp"
#include "cli/row_file.hpp"
#include "validate/command.hpp"
#include "validate/comparison.hpp"

namespace simsync {
namespace {

/// Asks `simsync predict` the same question, so that the answer is its answer.
void explain(const CaseResult& c) {
  CLI::App app;
  Outcome outcome;
  setup_predict(app, outcome);
  std::vector<std::string> arguments = predict_arguments(c.asked);
  arguments.insert(arguments.begin(), "predict");
  arguments.emplace_back("--explain");
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  app.parse(arguments);
}

std::string title(const StudyResult& result, const CaseResult& c) {
  const std::string about = fmt::format("{} of {} ({}): measured {}", c.the_case.id, result.study,
                                        name_of(c.the_case.role), format_seconds(c.the_case.measured));
  if (!c.failure.empty()) return about + ", no prediction\n";
  return fmt::format("{}, predicted {} ({:+.1f} %)\n{}\n", about, format_seconds(c.predicted), error_pct(c.sample()),
                     command_of(c.asked));
}

}  // namespace

StudyResult show_cases(const Study& study, const CaseFlags& flags, Outcome& outcome) {
  std::optional<RowFile> rows;
  if (!flags.csv.empty() && flags.csv != "-") rows.emplace(flags.csv, comparison_header(), false);
  EnginePredictor predictor;
  StudyResult result = evaluate(study, predictor, {.progress = {}, .cases = flags.cases});
  if (!rows && !flags.explain) rows.emplace("-", comparison_header(), false);
  for (const auto& row : comparison_rows(result)) {
    if (rows) rows->append(row);
  }
  for (const auto& c : result.cases) {
    if (!flags.explain) break;
    std::cout << title(result, c) << std::flush;
    if (c.failure.empty()) explain(c);
    std::cout << '\n';
  }
  for (const auto& note : result.notes) std::cerr << "note: " << note << '\n';
  for (const auto& finding : result.findings) std::cerr << "finding: " << finding << '\n';
  if (!result.passed()) outcome.code = ExitCode::Finding;
  return result;
}

}  // namespace simsync
