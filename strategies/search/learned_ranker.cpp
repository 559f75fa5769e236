#include "strategies/search/learned_ranker.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "strategies/search/mixture.hpp"
#include "strategies/search/scores.hpp"

namespace simsync {
namespace {

using detail::MixtureMember;
using Members = std::vector<MixtureMember>;

std::shared_ptr<const Ranker> simulator_of(RankerKind kind) {
  return ranker_by(simulated_feature(kind).value(), ranker_schema(kind).names.size());
}

double deviation_of(const std::vector<Example>& examples, const Ranker& ranker) {
  return detail::deviation_within_domains(examples, detail::scores_of(examples, ranker));
}

/// Appends members that get this share of the whole together, and whose common score has this deviation. Without a
/// deviation they order nothing, and are left out. So are members of less than a hundredth: otherwise a ranker that has
/// learned one domain after another would keep all that it ever was.
void append_scaled(Members& out, const Members& members, double share, double deviation) {
  constexpr double kLeast = 0.01;
  if (!(deviation > 0.0 && std::isfinite(deviation))) return;
  for (MixtureMember member : members) {
    member.share *= share;
    member.factor *= share / deviation;
    if (member.share >= kLeast && std::isnormal(member.factor)) out.push_back(std::move(member));
  }
}

/// Shares that sum to one: some of the whole may have been left out.
Members with_all_shares(Members members) {
  double sum = 0.0;
  for (const MixtureMember& member : members) sum += member.share;
  for (MixtureMember& member : members) member.share /= sum;
  return members;
}

/// What is known before the first example.
struct PriorKnowledge {
  Members members;     ///< none: nothing
  double worth = 0.0;  ///< so many examples count as much
};

PriorKnowledge prior_of(RankerKind kind, const std::optional<TransferSource>& source, const PriorWorth& worth) {
  PriorKnowledge simulator;
  if (simulated_feature(kind) && worth.simulator > 0.0)
    simulator = {{{.kind = RankerKind::Linear, .ranker = simulator_of(kind)}}, worth.simulator};
  if (!source) return simulator;
  PriorKnowledge learned{detail::members_of(kind, source->ranker), worth.source};
  if (simulator.members.empty()) return learned;
  PriorKnowledge out{{}, learned.worth + simulator.worth};
  append_scaled(out.members, learned.members, learned.worth / out.worth, source->deviation);
  if (out.members.empty()) return simulator;
  append_scaled(out.members, simulator.members, simulator.worth / out.worth, source->simulated_deviation);
  return out;
}

}  // namespace

TransferSource source_of(RankerKind kind, std::shared_ptr<const Ranker> ranker, const std::vector<Example>& examples) {
  const double deviation = deviation_of(examples, *ranker);
  const double simulated = simulated_feature(kind) ? deviation_of(examples, *simulator_of(kind)) : 0.0;
  return {.ranker = std::move(ranker), .deviation = deviation, .simulated_deviation = simulated};
}

std::shared_ptr<const Ranker> learned_ranker(RankerKind kind, const std::vector<Example>& examples,
                                             const std::optional<TransferSource>& source, const PriorWorth& worth) {
  SIMSYNC_ASSERT(worth.simulator >= 0.0 && worth.source > 0.0);
  std::shared_ptr<LearningRanker> fitted = make_ranker(kind);
  const PriorKnowledge prior = prior_of(kind, source, worth);
  if (examples.size() < 2) return detail::mixture(prior.members);
  fitted->fit(examples);
  if (prior.members.empty()) return fitted;
  // The credibility factor of Buehlmann (ASTIN Bulletin, 1967).
  const auto count = static_cast<double>(examples.size());
  const double share = count / (count + prior.worth);
  const double deviation = deviation_of(examples, *fitted);
  Members members;
  append_scaled(members, {{.kind = kind, .ranker = std::move(fitted)}}, share, deviation);
  append_scaled(members, prior.members, 1.0 - share, deviation_of(examples, *detail::mixture(prior.members)));
  if (members.empty()) members = prior.members;
  return detail::mixture(with_all_shares(std::move(members)));
}

}  // namespace simsync
