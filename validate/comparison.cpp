#include "validate/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/csv.hpp"
#include "base/parse_units.hpp"
#include "validate/command.hpp"

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
          settings_text(c.asked.settings),
          command_of(c.asked),
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

std::string number_or_empty(const std::optional<double>& figure) {
  return figure ? format_number(*figure) : "";
}

std::string rounded(const std::optional<double>& figure, int digits) {
  return figure ? fmt::format("{:.{}f}", *figure, digits) : "n/a";
}

/// What choosing a strategy by its prediction costs, and which pairs are not looked at, and why.
std::string choices_text(const Summary& s) {
  std::string out = fmt::format("  strategy_accuracy {} ({} pairs of strategies for the same work)\n",
                                rounded(s.choices.ranking.accuracy, 4), s.choices.ranking.pairs);
  out += fmt::format("  regret: mean {} %, max {} % ({} groups of strategies for the same work)\n",
                     rounded(s.mean_regret_pct, 2), rounded(s.max_regret_pct, 2), s.choices.groups.size());
  out += fmt::format("  pairs not ranked: {} measured within the stated error", s.ranking.within_error);
  if (s.unpaired > 0) out += fmt::format("; cases without another to be ranked with: {}", s.unpaired);
  out += "\n  pairs not of strategies for the same work:";
  std::string reasons;
  for (const NoChoice reason : kNoChoices) {
    const std::size_t pairs = s.choices.left_out[static_cast<std::size_t>(reason)];
    if (pairs > 0) reasons += fmt::format("{} {} {}", reasons.empty() ? "" : ",", pairs, text_of(reason));
  }
  const std::size_t within_error = s.choices.ranking.within_error;
  if (within_error > 0)
    reasons += fmt::format("{} {} measured within the stated error", reasons.empty() ? "" : ",", within_error);
  return out + (reasons.empty() ? " none" : reasons) + "\n";
}

/// `968 MB/s`.
std::string rate_text(BytesPerSecond rate) {
  constexpr double kThousand = 1e3;
  static constexpr std::array<const char*, 5> kUnits{"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};
  double value = rate.value();
  std::size_t unit = 0;
  for (; value >= kThousand && unit + 1 < kUnits.size(); ++unit) value /= kThousand;
  return fmt::format("{:.3g} {}", value, kUnits.at(unit));
}

/// A fitted value as people write it: `968 MB/s` for `967620314B/s`. What has no unit stays.
std::string for_people(const std::string& value) {
  if (parse_number(value)) return value;
  if (const auto rate = parse_bandwidth(value)) return rate_text(*rate);
  if (const auto time = parse_seconds(value)) return format_seconds(*time);
  return value;
}

}  // namespace

std::string comparison_header() {
  return "study,case,model,cluster,strategy,workers,measured_step_time_s,predicted_step_time_s,error_pct,"
         "batch_per_worker,role,deviation,settings,command,step_time_low_s,step_time_high_s";
}

std::vector<std::string> comparison_rows(const StudyResult& result) {
  std::vector<std::string> out;
  for (const auto& c : result.cases) out.push_back(csv_row(cells_of(result, c)));
  return out;
}

std::string summary_header() {
  std::string out =
      "study,cases,mape_pct,p90_error_pct,pairwise_accuracy,kendall_tau,pairs,strategy_accuracy,strategy_pairs,"
      "calibration,deviations,mape_all_pct,passed,regret_groups,mean_regret_pct,max_regret_pct,pairs_within_error,"
      "unpaired_cases,strategy_pairs_within_error";
  for (const NoChoice reason : kNoChoices) out += fmt::format(",{}", column_of(reason));
  return out + ",transferred_cases,transfer_mape_pct,in_sample_mape_pct,coverage_pct";
}

std::string summary_row(const StudyResult& result) {
  const Summary& s = result.summary;
  const Ranking& strategies = s.choices.ranking;
  std::vector<std::string> cells{result.study,
                                 std::to_string(s.cases),
                                 number_or_empty(s.mape_pct),
                                 number_or_empty(s.p90_error_pct),
                                 number_or_empty(s.ranking.accuracy),
                                 number_or_empty(s.ranking.kendall_tau),
                                 std::to_string(s.ranking.pairs),
                                 number_or_empty(strategies.accuracy),
                                 std::to_string(strategies.pairs),
                                 std::to_string(s.calibration),
                                 std::to_string(s.deviations),
                                 number_or_empty(s.mape_all_pct),
                                 result.passed() ? "true" : "false",
                                 std::to_string(s.choices.groups.size()),
                                 number_or_empty(s.mean_regret_pct),
                                 number_or_empty(s.max_regret_pct),
                                 std::to_string(s.ranking.within_error),
                                 std::to_string(s.unpaired),
                                 std::to_string(strategies.within_error)};
  for (const std::size_t pairs : s.choices.left_out) cells.push_back(std::to_string(pairs));
  cells.insert(cells.end(), {std::to_string(result.transfer.cases), number_or_empty(result.transfer.mape_pct),
                             number_or_empty(result.transfer.in_sample_pct), number_or_empty(s.coverage_pct)});
  return csv_row(cells);
}

std::string groups_header() {
  return "study,group,model,cluster,workers,batch_per_worker,strategies,named_best,measured_best,"
         "named_step_time_s,best_step_time_s,regret_pct";
}

std::vector<std::string> groups_rows(const StudyResult& result) {
  std::vector<std::string> out;
  for (const auto& group : result.summary.choices.groups)
    out.push_back(csv_row({result.study, group.id, group.model, group.cluster, std::to_string(group.workers),
                           std::to_string(group.batch), std::to_string(group.strategies),
                           fmt::format("{}", fmt::join(group.named, ";")),
                           fmt::format("{}", fmt::join(group.best, ";")), format_number(group.named_measured.value()),
                           format_number(group.best_measured.value()), format_number(group.regret_pct())}));
  return out;
}

std::string describe(const StudyResult& result) {
  const Summary& s = result.summary;
  std::string out = fmt::format("{}: {}\n  {} cases scored, {} calibrate, {} known deviations\n", result.study,
                                result.passed() ? "passed" : "FAILED", s.cases, s.calibration, s.deviations);
  out += fmt::format("  mape_pct {}  p90_error_pct {}  pairwise_accuracy {} ({} pairs)  kendall_tau {}\n",
                     rounded(s.mape_pct, 2), rounded(s.p90_error_pct, 2), rounded(s.ranking.accuracy, 4),
                     s.ranking.pairs, rounded(s.ranking.kendall_tau, 4));
  out += choices_text(s);
  if (s.coverage_pct) out += fmt::format("  coverage_pct {:.1f} (of the 90 % intervals)\n", *s.coverage_pct);
  if (result.transfer.cases > 0)
    out += fmt::format("  transfer: mape_pct {} over {} cases that their parameters were not fitted to, {} in sample\n",
                       rounded(result.transfer.mape_pct, 2), result.transfer.cases,
                       rounded(result.transfer.in_sample_pct, 2));
  for (const auto& p : result.parameters)
    out += fmt::format("  fitted {} = {} ({}{} row{}, rms {:.1f} %)\n", p.key, for_people(p.value),
                       (p.of.empty() ? "" : p.of + ": ") + (p.left_out.empty() ? "" : "without " + p.left_out + ", "),
                       p.rows, p.rows == 1 ? "" : "s", p.rms_pct);
  for (const auto& note : result.notes) out += fmt::format("  note: {}\n", note);
  for (const auto& finding : result.findings) out += fmt::format("  finding: {}\n", finding);
  for (const auto* c : worst(result))
    out += fmt::format("  {:+.1f} % {} (measured {}, predicted {})\n", error_pct(c->sample()), c->the_case.id,
                       format_seconds(c->the_case.measured), format_seconds(c->predicted));
  return out;
}

}  // namespace simsync
