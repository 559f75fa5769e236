#include "strategies/search/pairs.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/sha256.hpp"
#include "strategies/search/features.hpp"

namespace simsync {
namespace {

/// A number for a name, so that a stream depends on what is named and not on its place in a list.
std::uint64_t number_of(const std::string& name) {
  constexpr std::size_t kDigits = 16;
  constexpr int kHexadecimal = 16;
  const std::string digits = sha256(name).substr(0, kDigits);
  std::uint64_t out = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), out, kHexadecimal);
  return out;
}

std::optional<Trial> tried(const PairSource& source, Strategy strategy, const std::string& origin) {
  auto candidate = candidate_of(source, std::move(strategy), origin);
  if (!candidate) return std::nullopt;
  Trial out;
  try {
    out.step = source.trials.evaluate(candidate->strategy).step;
  } catch (const PlanError&) {
    return std::nullopt;
  }
  out.candidate = std::move(*candidate);
  return out;
}

std::optional<Trial> of_builder(const PairSource& source, int index) {
  if (index >= source.builders) return std::nullopt;
  auto built = source.builder(index);
  return built ? tried(source, std::move(built->second), built->first) : std::nullopt;
}

}  // namespace

std::optional<Candidate> candidate_of(const PairSource& source, Strategy strategy, const std::string& origin) {
  const SearchTarget& target = source.sampler.target();
  if (shards_of(strategy) > source.most_shards) return std::nullopt;
  Candidate out;
  out.strategy = std::move(strategy);
  out.origin = origin;
  try {
    out.estimate = source.estimates.evaluate(out.strategy);
  } catch (const PlanError&) {
    return std::nullopt;
  }
  if (!source.fits(out.strategy)) return std::nullopt;
  out.id = strategy_id(out.strategy, target.model);
  out.features = strategy_features(out.strategy, target, source.samples, out.estimate, out.estimate.step);
  return out;
}

std::optional<Trial> pair_at(const PairSource& source, int index) {
  constexpr int kMostDraws = 200;
  const SearchTarget& target = source.sampler.target();
  std::optional<Trial> out = of_builder(source, index);
  const int round = out ? 0 : 1;
  RandomDecisions decisions(
      stream_seed(source.seed, {number_of(target.model.name()), number_of(target.cluster.name),
                                static_cast<std::uint64_t>(target.workers), static_cast<std::uint64_t>(index)}));
  for (int draw = 0; !out && draw < kMostDraws; ++draw) out = tried(source, source.sampler.draw(decisions), "drawn");
  if (!out) return std::nullopt;
  out->number = index;
  out->round = round;
  return out;
}

}  // namespace simsync
