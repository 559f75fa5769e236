#include "strategies/search/ranker_kinds.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.hpp"
#include "strategies/search/boosted_ranker.hpp"
#include "strategies/search/recurrent_ranker.hpp"

namespace simsync {
namespace {

std::size_t index_of(const FeatureSchema& schema, const std::string& name) {
  const auto found = std::find(schema.names.begin(), schema.names.end(), name);
  SIMSYNC_ASSERT(found != schema.names.end());
  return static_cast<std::size_t>(found - schema.names.begin());
}

std::vector<double> joined(std::vector<double> a, const std::vector<double>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

const Words<RankerKind>& ranker_words() {
  static const Words<RankerKind> kWords{{"linear", RankerKind::Linear},
                                        {"autosync-linear", RankerKind::AutoSyncLinear},
                                        {"boosted", RankerKind::Boosted},
                                        {"recurrent", RankerKind::Recurrent}};
  return kWords;
}

const char* name_of(RankerKind kind) {
  return word_for(ranker_words(), kind).c_str();
}

std::optional<std::size_t> simulated_feature(RankerKind kind) {
  if (kind == RankerKind::AutoSyncLinear) return std::nullopt;
  return index_of(ranker_schema(kind), "log_simulated");
}

std::unique_ptr<LearningRanker> make_ranker(RankerKind kind) {
  const auto simulated = simulated_feature(kind);
  switch (kind) {
    case RankerKind::Linear:
    case RankerKind::AutoSyncLinear:
      return linear_ranker({.prior = simulated});
    case RankerKind::Boosted:
      return detail::boosted_ranker();
    case RankerKind::Recurrent:
      return detail::recurrent_ranker(
          {.whole = strategy_schema().names.size(), .prior = *simulated, .segments = kSegments});
  }
  SIMSYNC_ASSERT(false);
  return nullptr;
}

const FeatureSchema& ranker_schema(RankerKind kind) {
  static const FeatureSchema kBoth = [] {
    FeatureSchema out{"simsync/recurrent-features/v1", strategy_schema().names};
    out.names.insert(out.names.end(), segment_schema().names.begin(), segment_schema().names.end());
    return out;
  }();
  switch (kind) {
    case RankerKind::AutoSyncLinear:
      return autosync_schema();
    case RankerKind::Recurrent:
      return kBoth;
    case RankerKind::Linear:
    case RankerKind::Boosted:
      break;
  }
  return strategy_schema();
}

std::vector<double> ranker_features(RankerKind kind, const Candidate& candidate, const SearchTarget& target,
                                    std::int64_t samples) {
  if (kind == RankerKind::AutoSyncLinear) return autosync_features(candidate.strategy, target, samples);
  if (kind != RankerKind::Recurrent) return candidate.features;
  return joined(candidate.features, segment_features(candidate.strategy, target, samples));
}

std::vector<double> ranker_features(RankerKind kind, const TrialRow& row) {
  if (kind == RankerKind::AutoSyncLinear) return row.autosync;
  return kind == RankerKind::Recurrent ? joined(row.features, row.segments) : row.features;
}

std::vector<Example> examples_of(RankerKind kind, const std::vector<Trial>& trials, const SearchTarget& target,
                                 std::int64_t samples) {
  std::vector<Example> out;
  for (const Trial& trial : trials) {
    if (!trial.step) continue;
    out.push_back({.features = ranker_features(kind, trial.candidate, target, samples),
                   .step = trial.step->value(),
                   .shards = shards_of(trial.candidate.strategy)});
  }
  return out;
}

std::vector<Example> examples_of(RankerKind kind, const std::vector<TrialRow>& rows) {
  std::map<TrialDomain, int> domains;
  std::vector<Example> out;
  for (const TrialRow& row : rows) {
    if (!row.step) continue;
    const auto domain = domains.emplace(domain_of(row), static_cast<int>(domains.size())).first;
    out.push_back({.features = ranker_features(kind, row),
                   .step = row.step->value(),
                   .domain = domain->second,
                   .shards = row.shards});
  }
  return out;
}

}  // namespace simsync
