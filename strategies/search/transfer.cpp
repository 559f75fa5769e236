#include "strategies/search/transfer.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "strategies/search/mixture.hpp"
#include "strategies/search/scores.hpp"

namespace simsync {
namespace {

/// Examples that count as much as source and simulator together. Of 10, 20 and 40 the mean accuracy is the same within
/// 0.002, and with 10 a source that misleads costs least, on the transfers of README.md from ten trials on.
constexpr double kHalf = 10.0;

/// Ranks by one feature of so many.
std::shared_ptr<const Ranker> ranker_by(std::size_t feature, std::size_t features) {
  auto out = linear_ranker();
  std::vector<double> weights(features, 0.0);
  weights.at(feature) = 1.0;
  const bool known = out->restore({{"of_features", weights}}, features);
  SIMSYNC_ASSERT(known);
  return out;
}

}  // namespace

std::shared_ptr<const Ranker> transfer(RankerKind kind, const std::shared_ptr<const Ranker>& source,
                                       const std::vector<Example>& examples) {
  SIMSYNC_ASSERT(source != nullptr || examples.size() >= 2);
  if (examples.size() < 2) return source;
  std::vector<detail::MixtureMember> members;
  const auto add = [&](RankerKind of, std::shared_ptr<const Ranker> ranker, double share) {
    const double deviation = detail::deviation_within_domains(examples, detail::scores_of(examples, *ranker));
    if (deviation > 0.0) members.push_back({.kind = of, .factor = share / deviation, .ranker = std::move(ranker)});
  };
  const auto scratch = learned_ranker(kind, examples);
  const double share = detail::credibility(examples.size(), kHalf);
  const auto simulated = simulated_feature(kind);
  const double rest = (1.0 - share) / (source && simulated ? 2.0 : 1.0);
  add(kind, scratch, share);
  if (source) add(kind, source, rest);
  if (simulated) add(RankerKind::Linear, ranker_by(*simulated, examples.front().features.size()), rest);
  if (members.empty()) return scratch;
  return detail::mixture(std::move(members));
}

}  // namespace simsync
