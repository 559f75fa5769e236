#include "validate/evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/parse_units.hpp"
#include "validate/fit.hpp"
#include "validate/whole_step.hpp"

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

/// A fitted value and the cases that it is set for.
struct SetValue {
  const FitParameter* parameter;
  std::string text;
  bool everywhere = false;  ///< while it is fitted to cases that others are left out of
  std::string column;       ///< set only for cases with `value` there; empty: for all that `parameter` names
  std::string value;

  [[nodiscard]] bool is_for(const Study& study, const Case& c) const {
    if (everywhere) return true;
    return parameter->rows.takes(study.table, c.row) && (column.empty() || study.table.cell(c.row, column) == value);
  }
};

/// Something that is about a case.
template <typename Question>
auto about(const Study& study, const Case& c, const Question& question) {
  try {
    return question();
  } catch (const PlanError& e) {
    throw PlanError(fmt::format("case '{}': {}", c.id, e.what()));
  } catch (const InputError& e) {
    auto findings = e.diagnostics();
    for (auto& finding : findings) {
      if (finding.note.empty())
        finding.note = fmt::format("case '{}', {}:{}", c.id, study.table.file(), study.table.line(c.row));
    }
    throw InputError(std::move(findings));
  }
}

/// Of the scored cases that have an interval, those that lie in it.
std::optional<double> coverage_pct(const std::vector<CaseResult>& cases) {
  std::size_t known = 0;
  std::size_t covered = 0;
  for (const auto& c : cases) {
    if (c.the_case.role != CaseRole::Scored || !c.failure.empty() || !c.interval) continue;
    ++known;
    if (c.covered()) ++covered;
  }
  if (known == 0) return std::nullopt;
  return 100.0 * static_cast<double>(covered) / static_cast<double>(known);
}

Seconds checked(Seconds time) {
  if (!(time.value() > 0.0) || !std::isfinite(time.value()))
    throw PlanError(fmt::format("the predicted step time is {} s", time.value()));
  return time;
}

bool at_bound(double share) {
  return std::min(share, 1.0 - share) <= kBoundShare;
}

class Evaluation {
public:
  Evaluation(const Study& study, Predictor& predictor, const Progress& progress)
      : study_(study), predictor_(predictor), progress_(progress), cases_(cases_of(study)), whole_steps_(predictor) {}
  StudyResult run();

private:
  [[nodiscard]] PredictRequest request(const Case& c, const std::vector<SetValue>& values) const;
  [[nodiscard]] const Case& case_of_row(std::size_t row) const;
  [[nodiscard]] PredictRequest question(const Case& c, const std::vector<SetValue>& values);
  [[nodiscard]] Seconds predicted(const Case& c, const std::vector<SetValue>& values);
  [[nodiscard]] Seconds saturated(const Case& c, const std::vector<SetValue>& values);
  void fit(const FitGroup& group);
  std::vector<SetValue> fitted_to(const FitGroup& group, const std::string& left_out);
  std::vector<const Case*> rows_of(const FitGroup& group, const std::string& left_out) const;
  void expect_identified(const FitGroup& group, const FitResult& result) const;
  void note_doubts(const FitGroup& group, const FitResult& result);
  [[nodiscard]] double error_pct_of_a_row() const { return std::max(study_.measured.error_pct, kLeastErrorPct); }
  void predict_all();
  void summarize();
  [[nodiscard]] bool scored_after(std::size_t row) const;
  void judge();
  void note(const std::string& what, std::size_t done, std::size_t total) const {
    if (progress_) progress_(what, done, total);
  }

  const Study& study_;
  Predictor& predictor_;
  const Progress& progress_;
  std::vector<Case> cases_;
  detail::WholeSteps whole_steps_;
  std::vector<SetValue> fitted_;
  StudyResult result_;
};

PredictRequest Evaluation::request(const Case& c, const std::vector<SetValue>& values) const {
  PredictRequest request = c.request;
  for (const auto& value : values) {
    if (value.is_for(study_, c)) request.settings.emplace_back(value.parameter->key, value.text);
  }
  return request;
}

const Case& Evaluation::case_of_row(std::size_t row) const {
  return *std::find_if(cases_.begin(), cases_.end(), [&](const Case& c) { return c.row == row; });
}

/// With the compute that follows from another row's whole step, where the study says so.
PredictRequest Evaluation::question(const Case& c, const std::vector<SetValue>& values) {
  PredictRequest question = request(c, values);
  if (c.whole_step_row) {
    const Case& whole = case_of_row(*c.whole_step_row);
    const Seconds compute =
        about(study_, whole, [&] { return whole_steps_.compute(request(whole, values), whole.measured); });
    question.settings.emplace_back("step_time", format_number(compute.value()) + "s");
  }
  return question;
}

Seconds Evaluation::predicted(const Case& c, const std::vector<SetValue>& values) {
  const PredictRequest asked = question(c, values);
  return about(study_, c, [&] { return checked(predictor_.step_time(asked)); });
}

Seconds Evaluation::saturated(const Case& c, const std::vector<SetValue>& values) {
  return about(study_, c, [&] {
    const ClosedNetwork network = predictor_.network(request(c, values));
    const Station* most = network.bottleneck();
    if (most == nullptr) throw PlanError("nothing is shared, so nothing saturates");
    return c.request.workers * most->demand;
  });
}

std::vector<const Case*> Evaluation::rows_of(const FitGroup& group, const std::string& left_out) const {
  std::vector<const Case*> out;
  for (const auto& c : cases_) {
    if (!group.leave_out.empty() && study_.table.cell(c.row, group.leave_out) == left_out) continue;
    if (group.rows.takes(study_.table, c.row)) out.push_back(&c);
  }
  if (out.size() < group.parameters.size())
    throw InputError(Diagnostic{
        .origin = group.origin,
        .message = fmt::format("{} parameters need at least as many rows, got {}", group.parameters.size(), out.size()),
        .key = group.key_path,
        .source_line = {},
        .note = group.leave_out.empty() ? "" : fmt::format("without those with {}={}", group.leave_out, left_out),
        .help = "rows that 'rows' of the study leaves out do not count"});
  return out;
}

/// Once, or once for each value of the column whose rows are left out in turn.
void Evaluation::fit(const FitGroup& group) {
  std::vector<SetValue> found;
  if (group.leave_out.empty()) found = fitted_to(group, {});
  std::set<std::string> done;
  for (const Case& c : cases_) {
    if (group.leave_out.empty()) break;
    const std::string& value = study_.table.cell(c.row, group.leave_out);
    if (!group.is_set_for(study_.table, c.row) || !done.insert(value).second) continue;
    for (auto& set : fitted_to(group, value)) {
      set.everywhere = false;
      set.column = group.leave_out;
      set.value = value;
      found.push_back(std::move(set));
    }
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
std::vector<SetValue> Evaluation::fitted_to(const FitGroup& group, const std::string& left_out) {
  const auto rows = rows_of(group, left_out);
  std::vector<SetValue> values = fitted_;
  for (const auto& parameter : group.parameters) values.push_back({&parameter, {}, !group.leave_out.empty(), {}, {}});
  const auto apply = [&](const std::vector<double>& shares) {
    for (std::size_t p = 0; p < shares.size(); ++p) {
      const FitParameter& parameter = group.parameters[p];
      values[fitted_.size() + p].text =
          parameter.scale.text(parameter.scale.at(shares[p], parameter.low, parameter.high));
    }
  };
  std::size_t done = 0;
  const auto residuals = [&](const std::vector<double>& shares) {
    apply(shares);
    std::vector<double> out;
    for (const Case* c : rows) {
      const Seconds step = group.saturated ? saturated(*c, values) : predicted(*c, values);
      out.push_back(std::log(step / c->measured));
      note("fit", ++done, 0);
    }
    return out;
  };
  const FitResult result =
      fit_shares(group.parameters.size(), residuals, {.measurement_error = error_pct_of_a_row() / 100.0});
  expect_identified(group, result);
  apply(result.shares);
  for (std::size_t p = 0; p < group.parameters.size(); ++p) {
    result_.parameters.push_back({.key = group.parameters[p].key,
                                  .left_out = group.leave_out.empty() ? "" : group.leave_out + "=" + left_out,
                                  .value = values[fitted_.size() + p].text,
                                  .spread = result.spread[p],
                                  .rms_pct = 100.0 * result.rms,
                                  .rows = rows.size(),
                                  .at_bound = at_bound(result.shares[p])});
  }
  note_doubts(group, result);
  return {values.begin() + static_cast<std::ptrdiff_t>(fitted_.size()), values.end()};
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

void Evaluation::predict_all() {
  for (const auto& c : cases_) {
    CaseResult result{.the_case = c, .predicted = {}, .interval = {}, .failure = {}};
    try {
      const PredictRequest asked = question(c, fitted_);
      const Answer answer = about(study_, c, [&] { return predictor_.answer(asked); });
      result.predicted = about(study_, c, [&] { return checked(answer.step); });
      result.interval = answer.interval;
    } catch (const PlanError& e) {
      result.failure = e.what();
    }
    result_.cases.push_back(std::move(result));
    note("predict", result_.cases.size(), cases_.size());
  }
}

void Evaluation::summarize() {
  std::vector<Sample> scored;
  std::vector<Sample> by_workload;
  std::vector<Sample> all;
  Summary& s = result_.summary;
  for (const auto& c : result_.cases) {
    if (c.the_case.role == CaseRole::Calibration) ++s.calibration;
    if (c.the_case.role == CaseRole::Deviation) ++s.deviations;
    if (c.the_case.role == CaseRole::Calibration || !c.failure.empty()) continue;
    all.push_back(c.sample());
    if (c.the_case.role != CaseRole::Scored) continue;
    scored.push_back(c.sample());
    by_workload.push_back(c.within_workload());
  }
  const Ranking order = ranking(scored, study_.measured.error_pct);
  s.cases = scored.size();
  s.mape_pct = mean_absolute_error_pct(scored);
  s.p90_error_pct = p90_error_pct(scored);
  s.pairwise_accuracy = order.accuracy;
  s.kendall_tau = order.kendall_tau;
  s.pairs = order.pairs;
  const Ranking strategies = ranking(by_workload, study_.measured.error_pct);
  s.strategy_accuracy = strategies.accuracy;
  s.strategy_pairs = strategies.pairs;
  s.mape_all_pct = mean_absolute_error_pct(all);
  s.coverage_pct = coverage_pct(result_.cases);
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
    findings.push_back(fmt::format("mape_pct is {:.2f}, allowed are {:g}", s.mape_pct, study_.tolerance.mape_pct));
  const auto least = study_.tolerance.pairwise_accuracy;
  if (least && s.pairwise_accuracy < *least)
    findings.push_back(
        fmt::format("pairwise_accuracy is {:.4f}, expected is at least {:g}", s.pairwise_accuracy, *least));
}

StudyResult Evaluation::run() {
  result_.study = study_.name;
  for (const auto& group : study_.fits) fit(group);
  predict_all();
  summarize();
  judge();
  return std::move(result_);
}

}  // namespace

StudyResult evaluate(const Study& study, Predictor& predictor, const Progress& progress) {
  return Evaluation(study, predictor, progress).run();
}

}  // namespace simsync
