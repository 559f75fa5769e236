#include "cli/correction.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "base/csv.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/output_file.hpp"
#include "cli/search_question.hpp"
#include "cli/terminal.hpp"
#include "cli/trial_basis.hpp"
#include "sim/engine/evaluators.hpp"
#include "strategies/search/features.hpp"

namespace simsync {
namespace {

double root_mean_square(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(1, values.size())));
}

double percent(double logarithm) {
  return 100.0 * (std::exp(logarithm) - 1.0);
}

}  // namespace

RowCorrection::RowCorrection(const std::string& file)
    : file_(file), saved_(SavedCorrection::read(read_file(file), file)) {}

PredictRequest RowCorrection::asked(PredictRequest request, Inputs& inputs) const {
  return as_learned(saved_, std::move(request), inputs);
}

StepFactor RowCorrection::apply(const PredictRequest& request, const Problem& problem, PredictedRow& row) const {
  if (!problem.plan.in_lock_step())
    throw PlanError("--correction: workers of '" + problem.strategy.name +
                    "' do not wait for each other in every step; a correction is of steps that all take together");
  const Evaluation estimate = estimating_evaluator(problem)->evaluate(problem.strategy);
  const StepFactor by = saved_.correction.at(
      strategy_features(problem.strategy, target_of(problem), problem.samples(), estimate, row.step_time));
  const bool is_known = differences(saved_, request, problem).empty();
  const Seconds low = by.low * row.step_time;
  const Seconds high = by.high * row.step_time;
  row.step_low = is_known ? low : std::min(low, row.step_low);
  row.step_high = is_known ? high : std::max(high, row.step_high);
  row.step_time = by.middle * row.step_time;
  // A step that takes less than its compute alone says that the compute takes less, too, and that of one device.
  const Seconds compute = std::min(row.compute, row.step_time);
  row.scaling_efficiency *= compute / row.compute / by.middle;
  row.compute = compute;
  row.exposed_comm = row.step_time - row.compute;
  return by;
}

std::string RowCorrection::text(const StepFactor& factor) const {
  return fmt::format("{:+.1f} % by what {} runs of {} on {} taught", 100.0 * (factor.middle - 1.0),
                     saved_.correction.errors().size(), fmt::join(saved_.models, ", "),
                     fmt::join(saved_.clusters, ", "));
}

std::vector<std::string> RowCorrection::notes(const PredictRequest& request, const Problem& problem) const {
  std::vector<std::string> out = differences(saved_, request, problem);
  for (std::string& difference : out) difference = fmt::format("{}: {}", file_, difference);
  if (!out.empty())
    out.push_back(
        fmt::format("{}: what was learned may not hold here, so the interval is no narrower than without it", file_));
  return out;
}

bool is_trial_table(const std::string& file) {
  return read_file(file).starts_with(csv_row(oldest_trial_header()));
}

void learn_correction_of(const std::vector<std::string>& tables, const std::vector<ColumnFilter>& where,
                         const std::string& out) {
  std::vector<TrialRow> trials;
  for (const std::string& file : tables) {
    const CsvTable table = CsvTable::load(file);
    const std::vector<TrialRow> rows = read_trials(table);
    for (std::size_t row = 0; row < rows.size(); ++row)
      if (passes(table, row, where)) trials.push_back(rows[row]);
  }
  if (trials.empty()) {
    std::vector<std::string> asked;
    for (const ColumnFilter& filter : where)
      asked.push_back(fmt::format("{}={}", filter.column, fmt::join(filter.values, ",")));
    throw InputError(fmt::format("no trial of {} has {}", fmt::join(tables, ", "), fmt::join(asked, " ")),
                     "--cluster names the cluster of the trials, --rows further columns");
  }
  const SavedCorrection learned = learn_correction(trials);
  if (!out.empty()) write_file(out, learned.to_json());
  const Correction& correction = learned.correction;
  std::cout << fmt::format("correction of predicted steps from {} measured strategies of {} on {}\n",
                           correction.errors().size(), fmt::join(learned.models, ", "),
                           fmt::join(learned.clusters, ", "));
  print_line("predictions", fmt::format("off by {:.1f} % (rms)", percent(root_mean_square(correction.errors()))));
  print_line("corrected", fmt::format("off by {:.1f} %, each by what the others taught",
                                      percent(root_mean_square(correction.left_out_errors()))));
  const CorrectionKernel& kernel = correction.kernel();
  print_line("of this", fmt::format("up to {:.0f} % are the same for all, up to {:.0f} % a matter of the kind of "
                                    "strategy, {:.0f} % noise of one run (standard deviations)",
                                    100.0 * kernel.shared, 100.0 * kernel.particular, 100.0 * kernel.noise));
}

}  // namespace simsync
