#include "validate/choice.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"

namespace simsync {
namespace {

/// Predictions so near to each other (as a share) are equal but for rounding.
constexpr double kEqual = 1e-9;

using Cases = std::vector<const CaseResult*>;

/// One strategy of a group: its runs and their means.
struct Option {
  Cases runs;

  [[nodiscard]] Seconds measured() const {
    return mean([](const CaseResult& run) { return run.the_case.measured; });
  }
  [[nodiscard]] Seconds predicted() const {
    return mean([](const CaseResult& run) { return run.predicted; });
  }
  void add_ids(std::vector<std::string>& out) const {
    for (const auto* run : runs) out.push_back(run->the_case.id);
  }

private:
  template <typename Time>
  [[nodiscard]] Seconds mean(const Time& time) const {
    double sum = 0.0;
    for (const auto* run : runs) sum += time(*run).value();
    return Seconds{sum / static_cast<double>(runs.size())};
  }
};

bool same_work(const Case& a, const Case& b) {
  return a.rank_group == b.rank_group && a.workload == b.workload;
}

/// Options in the order of their first runs.
std::vector<Option> options_of(const Cases& group) {
  std::vector<Option> out;
  for (const auto* c : group) {
    const auto same = [&](const Option& option) {
      return option.runs.front()->the_case.strategy == c->the_case.strategy;
    };
    const auto found = std::find_if(out.begin(), out.end(), same);
    (found == out.end() ? out.emplace_back() : *found).runs.push_back(c);
  }
  return out;
}

ChoiceGroup judged(const Cases& group, const std::vector<Option>& options) {
  const Case& first = group.front()->the_case;
  ChoiceGroup out{.id = first.id,
                  .model = first.request.model,
                  .cluster = first.request.cluster,
                  .workers = first.request.workers,
                  .batch = first.request.batch.value_or(0),
                  .strategies = options.size(),
                  .named = {},
                  .best = {},
                  .named_measured = {},
                  .best_measured = {}};
  const auto by_measured = [](const Option& a, const Option& b) { return a.measured() < b.measured(); };
  const auto by_predicted = [](const Option& a, const Option& b) { return a.predicted() < b.predicted(); };
  const Option& best = *std::min_element(options.begin(), options.end(), by_measured);
  const Seconds least = std::min_element(options.begin(), options.end(), by_predicted)->predicted();
  out.best_measured = best.measured();
  best.add_ids(out.best);
  double sum = 0.0;
  int tied = 0;
  for (const auto& option : options) {
    if (option.predicted() > (1.0 + kEqual) * least) continue;
    option.add_ids(out.named);
    sum += option.measured().value();
    ++tied;
  }
  out.named_measured = Seconds{sum / tied};
  return out;
}

std::vector<ChoiceGroup> groups_of(const Cases& cases) {
  std::vector<Cases> groups;
  for (const auto* c : cases) {
    const auto same = [&](const Cases& group) { return same_work(group.front()->the_case, c->the_case); };
    const auto found = std::find_if(groups.begin(), groups.end(), same);
    (found == groups.end() ? groups.emplace_back() : *found).push_back(c);
  }
  std::vector<ChoiceGroup> out;
  for (const auto& group : groups) {
    const auto options = options_of(group);
    if (options.size() > 1) out.push_back(judged(group, options));
  }
  return out;
}

}  // namespace

const char* column_of(NoChoice reason) {
  switch (reason) {
    case NoChoice::OtherJob:
      return "pairs_other_job";
    case NoChoice::OtherSettings:
      return "pairs_other_settings";
    case NoChoice::OtherCompute:
      return "pairs_other_compute";
    case NoChoice::OtherFit:
      return "pairs_other_fit";
    case NoChoice::SameStrategy:
      break;
  }
  return "pairs_same_strategy";
}

const char* text_of(NoChoice reason) {
  switch (reason) {
    case NoChoice::OtherJob:
      return "of other models, clusters, batches or workers";
    case NoChoice::OtherSettings:
      return "of other settings";
    case NoChoice::OtherCompute:
      return "of another measured compute (step_time)";
    case NoChoice::OtherFit:
      return "of other fitted parameters";
    case NoChoice::SameStrategy:
      break;
  }
  return "of the same strategy";
}

std::optional<NoChoice> no_choice(const Case& a, const Case& b) {
  if (a.workload.job != b.workload.job) return NoChoice::OtherJob;
  if (a.workload.settings != b.workload.settings) return NoChoice::OtherSettings;
  if (a.workload.compute != b.workload.compute) return NoChoice::OtherCompute;
  if (a.workload.fits != b.workload.fits) return NoChoice::OtherFit;
  if (a.strategy == b.strategy) return NoChoice::SameStrategy;
  return std::nullopt;
}

Choices choices(const std::vector<const CaseResult*>& cases, double tie_pct) {
  Choices out;
  PairRanking pairs(tie_pct);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    for (std::size_t j = i + 1; j < cases.size(); ++j) {
      if (cases[i]->the_case.rank_group != cases[j]->the_case.rank_group) continue;
      const auto reason = no_choice(cases[i]->the_case, cases[j]->the_case);
      if (reason)
        ++out.left_out[static_cast<std::size_t>(*reason)];
      else
        pairs.add(cases[i]->sample(), cases[j]->sample());
    }
  }
  out.ranking = pairs.result();
  out.groups = groups_of(cases);
  return out;
}

}  // namespace simsync
