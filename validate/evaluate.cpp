#include "validate/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/parse_units.hpp"
#include "validate/case_answers.hpp"
#include "validate/fit.hpp"
#include "validate/questions.hpp"

namespace simsync {
namespace {

/// A parameter that the stated error moves over more than this share of its range is not identified.
constexpr double kMostSpread = 0.25;
/// No measurement is better than this.
constexpr double kLeastErrorPct = 0.1;

/// So close to an end of its range (as a share of it) a parameter stands at the bound.
constexpr double kBoundShare = 1e-3;

/// A row whose whole step says what compute is must be predicted as near as this, in percent.
constexpr double kFarFromItself = 1.0;

bool at_bound(double share) {
  return std::min(share, 1.0 - share) <= kBoundShare;
}

/// Of the range, on the parameter's scale.
double width(const FitParameter& parameter) {
  return parameter.scale.logarithmic ? std::log(parameter.high / parameter.low) : parameter.high - parameter.low;
}

/// The cases that a fit is for, where these are a part of those that the study names. Its rows are these, or all
/// others.
struct Part {
  detail::Cells cells;
  bool left_out = false;
};

/// A finished fit.
struct Found {
  std::vector<const Case*> rows;
  FitResult result;
  std::vector<double> residuals;  ///< of the rows
  Part part;
};

class Evaluation {
public:
  /// `in_sample`: nothing is left out of a fit, whatever the study says.
  Evaluation(const Study& study, Predictor& predictor, const EvaluateOptions& options, bool in_sample = false)
      : study_(study),
        options_(options),
        in_sample_(in_sample),
        cases_(cases_of(study)),
        questions_(study, cases_, predictor) {}
  StudyResult run();

private:
  void select();
  void need(std::size_t row);
  [[nodiscard]] bool is_needed_for(const FitGroup& group) const;
  void fit(const FitGroup& group);
  void keep(const FitGroup& group, const Found& found, std::vector<detail::SetValue>& values);
  std::vector<detail::SetValue> fitted_to(const FitGroup& group, const Part& part);
  std::vector<const Case*> fitted_rows(const FitGroup& group, const Part& part) const;
  void expect_identified(const FitGroup& group, const FitResult& result) const;
  void note_doubts(const FitGroup& group, const FitResult& result);
  [[nodiscard]] double error_pct_of_a_row() const { return std::max(study_.measured.error_pct, kLeastErrorPct); }
  [[nodiscard]] std::vector<std::size_t> fitted_for(const Case& c) const;
  CaseResult asked(const Case& c);
  detail::CaseAnswer answered(const CaseResult& question);
  void predict();
  [[nodiscard]] bool scored_after(std::size_t row) const;
  void judge();
  void note(const std::string& what, std::size_t done, std::size_t total) const {
    if (options_.progress) options_.progress(what, done, total);
  }

  const Study& study_;
  const EvaluateOptions& options_;
  bool in_sample_;
  std::vector<Case> cases_;
  std::set<std::size_t> selected_;  ///< rows to be predicted
  std::set<std::size_t> needed_;    ///< rows that these depend on, and they themselves
  detail::Questions questions_;
  std::vector<detail::SetValue> fitted_;
  StudyResult result_;
};

std::vector<const Case*> Evaluation::fitted_rows(const FitGroup& group, const Part& part) const {
  std::vector<const Case*> out;
  for (const auto& c : cases_) {
    if (!part.cells.cells.empty() && part.cells.hold(study_.table, c.row) == part.left_out) continue;
    if (group.rows.takes(study_.table, c.row)) out.push_back(&c);
  }
  if (out.size() < group.parameters.size())
    throw InputError(Diagnostic{
        .origin = group.origin,
        .message = fmt::format("{} parameters need at least as many rows, got {}", group.parameters.size(), out.size()),
        .key = group.key_path,
        .source_line = {},
        .note = part.cells.cells.empty()
                    ? ""
                    : fmt::format("{} those with {}", part.left_out ? "without" : "of", part.cells.text()),
        .help = "rows that 'rows' of the study leaves out do not count"});
  return out;
}

void Evaluation::need(std::size_t row) {
  needed_.insert(row);
  if (const auto whole = questions_.case_of_row(row).whole_step_row) needed_.insert(*whole);
}

bool Evaluation::is_needed_for(const FitGroup& group) const {
  return std::any_of(needed_.begin(), needed_.end(),
                     [&](std::size_t row) { return group.is_set_for(study_.table, row); });
}

/// The rows that are asked for, and from the last fit to the first those that they depend on.
void Evaluation::select() {
  selected_ = rows_named(study_, cases_, options_.cases);
  for (const std::size_t row : selected_) need(row);
  for (auto group = study_.fits.rbegin(); group != study_.fits.rend(); ++group) {
    if (!is_needed_for(*group)) continue;
    for (const auto& c : cases_) {
      if (group->rows.takes(study_.table, c.row)) need(c.row);
    }
  }
}

/// Once, or once for each part of the cases.
void Evaluation::fit(const FitGroup& group) {
  if (!study_.uses(group))
    result_.notes.push_back(
        fmt::format("'{}' ({}) is set for no case, so it is not fitted", group.parameters.front().key, group.key_path));
  if (!study_.uses(group) || !is_needed_for(group)) return;
  std::vector<detail::SetValue> found;
  const auto add = [&](const Part& part) {
    for (auto& set : fitted_to(group, part)) {
      set.everywhere = false;
      set.only = part.cells;
      found.push_back(std::move(set));
    }
  };
  const bool in_turn = !group.leave_out.empty() && !in_sample_;
  const std::vector<std::string> columns = in_turn ? std::vector{group.leave_out} : group.each;
  if (columns.empty()) add({});
  std::set<std::string> done;
  for (const Case& c : cases_) {
    if (columns.empty() || !group.is_set_for(study_.table, c.row) || !needed_.contains(c.row)) continue;
    Part part{.cells = {}, .left_out = in_turn};
    for (const std::string& column : columns) part.cells.cells.emplace_back(column, study_.table.cell(c.row, column));
    if (done.insert(part.cells.text()).second) add(part);
  }
  fitted_.insert(fitted_.end(), found.begin(), found.end());
}

void Evaluation::expect_identified(const FitGroup& group, const FitResult& result) const {
  for (std::size_t p = 0; p < group.parameters.size(); ++p) {
    if (result.spread[p] <= kMostSpread) continue;
    const std::string how = result.spread[p] > 1.0
                                ? "over its whole range"
                                : fmt::format("over {:.0f} % of its range", 100.0 * result.spread[p]);
    throw InputError(
        Diagnostic{.origin = group.parameters[p].origin,
                   .message = fmt::format("its rows cannot identify '{}': a measurement error of {:g} % moves it {}",
                                          group.parameters[p].key, error_pct_of_a_row(), how),
                   .key = group.key_path,
                   .source_line = {},
                   .note = {},
                   .help = "give rows whose step time depends on it, or fix its value under 'settings'"});
  }
}

/// The group's parameters, found from its rows but those that are left out.
std::vector<detail::SetValue> Evaluation::fitted_to(const FitGroup& group, const Part& part) {
  Found found{.rows = fitted_rows(group, part), .result = {}, .residuals = {}, .part = part};
  std::vector<detail::SetValue> values = fitted_;
  for (const auto& parameter : group.parameters)
    values.push_back({.parameter = &parameter, .everywhere = !group.leave_out.empty() || !group.each.empty()});
  std::size_t done = 0;
  const auto residuals = [&](const std::vector<double>& shares) {
    for (std::size_t p = 0; p < shares.size(); ++p) {
      const FitParameter& parameter = group.parameters[p];
      values[fitted_.size() + p].text =
          parameter.scale.text(parameter.scale.at(shares[p], parameter.low, parameter.high));
    }
    std::vector<double> out;
    for (const Case* c : found.rows) {
      const Seconds step =
          group.saturated ? questions_.saturated(*c, values) : questions_.answer(*c, questions_.question(*c, values));
      out.push_back(std::log(step / c->measured));
      note("fit", ++done, 0);
    }
    return out;
  };
  found.result = fit_shares(group.parameters.size(), residuals, {.measurement_error = error_pct_of_a_row() / 100.0});
  expect_identified(group, found.result);
  found.residuals = residuals(found.result.shares);
  std::vector<detail::SetValue> out(values.begin() + static_cast<std::ptrdiff_t>(fitted_.size()), values.end());
  keep(group, found, out);
  note_doubts(group, found.result);
  return out;
}

/// Adds the parameters to the result, with how well they are known: as the rows' errors after the fit say, of which
/// each parameter takes one, or as the stated error of a row, whichever is more.
void Evaluation::keep(const FitGroup& group, const Found& found, std::vector<detail::SetValue>& values) {
  const std::size_t count = group.parameters.size();
  const FitResult& result = found.result;
  Fit kept{.first = result_.parameters.size(), .correlation = {}, .cases = {}, .errors_pct = {}};
  for (std::size_t i = 0; i < found.rows.size(); ++i) {
    kept.cases.push_back(found.rows[i]->id);
    kept.errors_pct.push_back(100.0 * std::expm1(found.residuals[i]));
  }
  const auto rows = static_cast<double>(found.rows.size());
  const double spare = std::max(1.0, rows - static_cast<double>(count));
  const double row_error = std::max(error_pct_of_a_row() / 100.0, result.rms * std::sqrt(rows / spare));
  const auto variance = [&](std::size_t p, std::size_t q) { return result.covariance[std::max(p, q)][std::min(p, q)]; };
  for (std::size_t p = 0; p < count; ++p) {
    const FitParameter& parameter = group.parameters[p];
    auto& line = kept.correlation.emplace_back(count, 1.0);
    for (std::size_t q = 0; q < count; ++q) {
      if (q != p) line[q] = std::clamp(variance(p, q) / std::sqrt(variance(p, p) * variance(q, q)), -1.0, 1.0);
    }
    values[p].index = result_.parameters.size();
    result_.parameters.push_back({.key = parameter.key,
                                  .of = found.part.left_out ? "" : found.part.cells.text(),
                                  .left_out = found.part.left_out ? found.part.cells.text() : "",
                                  .value = values[p].text,
                                  .spread = result.spread[p],
                                  .rms_pct = 100.0 * result.rms,
                                  .rows = found.rows.size(),
                                  .at_bound = at_bound(result.shares[p]),
                                  .scale = parameter.scale,
                                  .deviation = row_error * width(parameter) * std::sqrt(std::max(0.0, variance(p, p))),
                                  .fit = result_.fits.size()});
  }
  result_.fits.push_back(std::move(kept));
}

void Evaluation::note_doubts(const FitGroup& group, const FitResult& result) {
  std::vector<std::string> keys;
  for (std::size_t p = 0; p < group.parameters.size(); ++p) {
    const FitParameter& parameter = group.parameters[p];
    keys.push_back(parameter.key);
    if (!at_bound(result.shares[p])) continue;
    const bool low = result.shares[p] < 0.5;
    result_.notes.push_back(fmt::format(
        "'{}' ({}) stands at the {} end of its range, {}: its rows may ask for a value beyond", parameter.key,
        group.key_path, low ? "lower" : "upper", parameter.scale.text(low ? parameter.low : parameter.high)));
  }
  if (100.0 * result.rms > kLargeRmsPct)
    result_.notes.push_back(fmt::format("{} ({}): the rows that it is fitted to are {:.1f} % off (rms)",
                                        fmt::join(keys, ", "), group.key_path, 100.0 * result.rms));
}

/// Of a key that is set twice the last.
std::vector<std::size_t> Evaluation::fitted_for(const Case& c) const {
  std::map<std::string, std::size_t> last;
  for (const auto& value : fitted_) {
    if (value.is_for(study_, c)) last[value.parameter->key] = value.index;
  }
  std::vector<std::size_t> out;
  for (const auto& [key, index] : last) out.push_back(index);
  std::sort(out.begin(), out.end());
  return out;
}

CaseResult Evaluation::asked(const Case& c) {
  CaseResult out{
      .the_case = c, .predicted = {}, .interval = {}, .failure = {}, .asked = c.request, .fitted = fitted_for(c)};
  try {
    out.asked = questions_.question(c, fitted_);
  } catch (const PlanError& e) {
    out.failure = e.what();
  }
  return out;
}

detail::CaseAnswer Evaluation::answered(const CaseResult& question) {
  if (!question.failure.empty()) return {.answer = {}, .failure = question.failure};
  try {
    return {.answer = questions_.answer_with_interval(question.the_case, question.asked), .failure = {}};
  } catch (const PlanError& e) {
    return {.answer = {}, .failure = e.what()};
  }
}

void Evaluation::predict() {
  for (const auto& c : cases_) {
    if (selected_.contains(c.row)) result_.cases.push_back(asked(c));
  }
  detail::answer_cases(
      result_.cases.size(), [&](std::size_t i) { return answered(result_.cases[i]); },
      [&](std::size_t i, const detail::CaseAnswer& answer) {
        CaseResult& result = result_.cases[i];
        result.predicted = answer.answer.step;
        result.interval = answer.answer.interval;
        result.failure = answer.failure;
        note("predict", i + 1, result_.cases.size());
      },
      options_.side_by_side);
}

/// Whether the compute of a case that counts follows from the whole step of this row.
bool Evaluation::scored_after(std::size_t row) const {
  return std::any_of(cases_.begin(), cases_.end(),
                     [&](const Case& c) { return c.role != CaseRole::Calibration && c.whole_step_row == row; });
}

void Evaluation::judge() {
  const Summary& s = result_.summary;
  auto& findings = result_.findings;
  for (const auto& c : result_.cases) {
    if (!c.failure.empty()) findings.push_back(c.failure);
    if (c.failure.empty() && scored_after(c.the_case.row) && std::abs(error_pct(c.sample())) > kFarFromItself)
      findings.push_back(
          fmt::format("case '{}' is {:+.1f} % off itself: servers and network alone take longer than its step",
                      c.the_case.id, error_pct(c.sample())));
    if (c.the_case.entry.empty() || !c.failure.empty()) continue;
    const double error = error_pct(c.sample());
    if (std::abs(error) <= c.the_case.beyond_pct)
      findings.push_back(fmt::format("case '{}' is listed under '{}' as more than {:g} % off and is only {:.1f} % off",
                                     c.the_case.id, c.the_case.entry, c.the_case.beyond_pct, error));
  }
  if (s.cases == 0) findings.emplace_back("no case is left to be scored");
  if (s.mape_pct > study_.tolerance.mape_pct)
    findings.push_back(fmt::format("mape_pct is {:.2f}, allowed are {:g}", *s.mape_pct, study_.tolerance.mape_pct));
  const auto least = study_.tolerance.pairwise_accuracy;
  if (least && !s.ranking.accuracy)
    findings.push_back(
        fmt::format("pairwise_accuracy is expected to be at least {:g}, and no pair can be ranked", *least));
  if (least && s.ranking.accuracy && *s.ranking.accuracy < *least)
    findings.push_back(
        fmt::format("pairwise_accuracy is {:.4f}, expected is at least {:g}", *s.ranking.accuracy, *least));
}

StudyResult Evaluation::run() {
  result_.study = study_.name;
  select();
  for (const auto& group : study_.fits) fit(group);
  predict();
  if (!options_.cases.empty()) {
    for (const auto& c : result_.cases) {
      if (!c.failure.empty()) result_.findings.push_back(c.failure);
    }
    return std::move(result_);
  }
  result_.summary = summarize(result_.cases, study_.measured.error_pct);
  judge();
  return std::move(result_);
}

bool is_transferred(const StudyResult& result, const CaseResult& c) {
  return c.the_case.role == CaseRole::Scored && c.failure.empty() &&
         std::any_of(c.fitted.begin(), c.fitted.end(),
                     [&](std::size_t p) { return !result.parameters[p].left_out.empty(); });
}

/// The scored cases whose parameters come from others, predicted again with what is fitted to all rows at once.
FitTransfer transfer_of(const Study& study, Predictor& predictor, const StudyResult& result) {
  FitTransfer out;
  EvaluateOptions again;
  std::vector<Sample> transferred, in_sample;
  for (const auto& c : result.cases) {
    if (!is_transferred(result, c)) continue;
    transferred.push_back(c.sample());
    again.cases.push_back(c.the_case.id);
  }
  out.cases = transferred.size();
  if (transferred.empty()) return out;
  for (const auto& c : Evaluation(study, predictor, again, true).run().cases) {
    if (c.failure.empty()) in_sample.push_back(c.sample());
  }
  out.mape_pct = mean_absolute_error_pct(transferred);
  if (in_sample.size() == transferred.size()) out.in_sample_pct = mean_absolute_error_pct(in_sample);
  return out;
}

}  // namespace

StudyResult evaluate(const Study& study, Predictor& predictor, const EvaluateOptions& options) {
  StudyResult out = Evaluation(study, predictor, options).run();
  if (options.cases.empty()) out.transfer = transfer_of(study, predictor, out);
  return out;
}

}  // namespace simsync
