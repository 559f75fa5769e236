#include "validate/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/csv.hpp"
#include "base/parse_units.hpp"

namespace simsync {
namespace {

constexpr std::size_t kWorstShown = 5;

std::vector<std::string> cells_of(const StudyResult& result, const CaseResult& c) {
  const bool known = c.failure.empty();
  return {result.study,
          c.the_case.id,
          c.the_case.request.model,
          c.the_case.request.cluster,
          c.the_case.request.strategy,
          std::to_string(c.the_case.request.workers),
          format_number(c.the_case.measured.value()),
          known ? format_number(c.predicted.value()) : "",
          known ? format_number(error_pct(c.sample())) : "",
          std::to_string(c.the_case.request.batch.value_or(0)),
          name_of(c.the_case.role),
          c.the_case.entry,
          c.interval ? format_number(c.interval->low.value()) : "",
          c.interval ? format_number(c.interval->high.value()) : ""};
}

std::vector<const CaseResult*> worst(const StudyResult& result) {
  std::vector<const CaseResult*> out;
  for (const auto& c : result.cases) {
    if (c.failure.empty() && c.the_case.role == CaseRole::Scored) out.push_back(&c);
  }
  std::stable_sort(out.begin(), out.end(), [](const CaseResult* a, const CaseResult* b) {
    return std::abs(error_pct(a->sample())) > std::abs(error_pct(b->sample()));
  });
  if (out.size() > kWorstShown) out.resize(kWorstShown);
  return out;
}

}  // namespace

std::string comparison_header() {
  return "study,case,model,cluster,strategy,workers,measured_step_time_s,predicted_step_time_s,error_pct,"
         "batch_per_worker,role,deviation,step_time_low_s,step_time_high_s";
}

std::vector<std::string> comparison_rows(const StudyResult& result) {
  std::vector<std::string> out;
  for (const auto& c : result.cases) out.push_back(csv_row(cells_of(result, c)));
  return out;
}

std::string summary_header() {
  return "study,cases,mape_pct,p90_error_pct,pairwise_accuracy,kendall_tau,pairs,strategy_accuracy,strategy_pairs,"
         "calibration,deviations,"
         "mape_all_pct,passed,coverage_pct";
}

std::string summary_row(const StudyResult& result) {
  const Summary& s = result.summary;
  return csv_row({result.study, std::to_string(s.cases), format_number(s.mape_pct), format_number(s.p90_error_pct),
                  format_number(s.pairwise_accuracy), format_number(s.kendall_tau), std::to_string(s.pairs),
                  s.strategy_pairs > 0 ? format_number(s.strategy_accuracy) : "", std::to_string(s.strategy_pairs),
                  std::to_string(s.calibration), std::to_string(s.deviations), format_number(s.mape_all_pct),
                  result.passed() ? "true" : "false", s.coverage_pct ? format_number(*s.coverage_pct) : ""});
}

std::string describe(const StudyResult& result) {
  const Summary& s = result.summary;
  std::string out = fmt::format(
      "{}: {}\n  {} cases scored, {} calibrate, {} known deviations\n"
      "  mape_pct {:.2f}  p90_error_pct {:.2f}  pairwise_accuracy {:.4f} ({} pairs)  kendall_tau {:.4f}\n",
      result.study, result.passed() ? "passed" : "FAILED", s.cases, s.calibration, s.deviations, s.mape_pct,
      s.p90_error_pct, s.pairwise_accuracy, s.pairs, s.kendall_tau);
  if (s.strategy_pairs > 0)
    out += fmt::format("  strategy_accuracy {:.4f} ({} pairs of strategies for the same work)\n", s.strategy_accuracy,
                       s.strategy_pairs);
  if (s.coverage_pct) out += fmt::format("  coverage_pct {:.1f} (of the 90 % intervals)\n", *s.coverage_pct);
  for (const auto& p : result.parameters)
    out += fmt::format("  fitted {} = {} ({}{} rows, rms {:.1f} %)\n", p.key, p.value,
                       p.left_out.empty() ? "" : "without " + p.left_out + ", ", p.rows, p.rms_pct);
  for (const auto& note : result.notes) out += fmt::format("  note: {}\n", note);
  for (const auto& finding : result.findings) out += fmt::format("  finding: {}\n", finding);
  for (const auto* c : worst(result))
    out += fmt::format("  {:+.1f} % {} (measured {}, predicted {})\n", error_pct(c->sample()), c->the_case.id,
                       format_seconds(c->the_case.measured), format_seconds(c->predicted));
  return out;
}

}  // namespace simsync
