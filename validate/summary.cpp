#include "validate/summary.hpp"

#include <algorithm>
#include <map>

namespace simsync {
namespace {

std::optional<double> if_any(const std::vector<Sample>& samples, double figure) {
  return samples.empty() ? std::nullopt : std::optional<double>(figure);
}

std::size_t alone(const std::vector<Sample>& samples) {
  std::map<std::string, std::size_t> groups;
  for (const auto& sample : samples) ++groups[sample.group];
  return static_cast<std::size_t>(
      std::count_if(groups.begin(), groups.end(), [](const auto& group) { return group.second == 1; }));
}

void add_regret(Summary& out) {
  const auto& groups = out.choices.groups;
  if (groups.empty()) return;
  double sum = 0.0;
  double most = 0.0;
  for (const auto& group : groups) {
    sum += group.regret_pct();
    most = std::max(most, group.regret_pct());
  }
  out.mean_regret_pct = sum / static_cast<double>(groups.size());
  out.max_regret_pct = most;
}

std::optional<double> coverage_pct(const std::vector<const CaseResult*>& scored) {
  const auto known = std::count_if(scored.begin(), scored.end(), [](const auto* c) { return c->interval.has_value(); });
  const auto covered = std::count_if(scored.begin(), scored.end(), [](const auto* c) { return c->covered(); });
  if (known == 0) return std::nullopt;
  return 100.0 * static_cast<double>(covered) / static_cast<double>(known);
}

}  // namespace

Summary summarize(const std::vector<CaseResult>& cases, double tie_pct) {
  Summary out;
  std::vector<Sample> scored, all;
  std::vector<const CaseResult*> scored_cases;
  for (const auto& c : cases) {
    if (c.the_case.role == CaseRole::Calibration) ++out.calibration;
    if (c.the_case.role == CaseRole::Deviation) ++out.deviations;
    if (c.the_case.role == CaseRole::Calibration || !c.failure.empty()) continue;
    all.push_back(c.sample());
    if (c.the_case.role != CaseRole::Scored) continue;
    scored.push_back(c.sample());
    scored_cases.push_back(&c);
  }
  out.cases = scored.size();
  out.mape_pct = if_any(scored, mean_absolute_error_pct(scored));
  out.p90_error_pct = if_any(scored, p90_error_pct(scored));
  out.mape_all_pct = if_any(all, mean_absolute_error_pct(all));
  out.ranking = ranking(scored, tie_pct);
  out.unpaired = alone(scored);
  out.choices = choices(scored_cases, tie_pct);
  out.coverage_pct = coverage_pct(scored_cases);
  add_regret(out);
  return out;
}

}  // namespace simsync
