#include "strategies/search/learned_ranker.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "strategies/search/mixture.hpp"
#include "strategies/search/scores.hpp"

namespace simsync {
namespace {

using detail::MixtureMember;
using Members = std::vector<MixtureMember>;

// So many examples count as much as the simulator's order, and as a source. README.md has the accuracy with others.
constexpr double kSimulator = 40.0;
constexpr double kSource = 10.0;

std::shared_ptr<const Ranker> simulator_of(RankerKind kind) {
  return ranker_by(simulated_feature(kind).value(), ranker_schema(kind).names.size());
}

double deviation_of(const std::vector<Example>& examples, const Ranker& ranker) {
  return detail::deviation_within_domains(examples, detail::scores_of(examples, ranker));
}

/// Adds to `out` what says this, with a share of the whole and in units of its deviation; with 0, which no order has,
/// nothing. Members of less than a hundredth are left out: otherwise a ranker that has learned one domain after another
/// would keep all that it ever was.
void add(Members& out, const Members& more, double share, double deviation) {
  constexpr double kLeast = 0.01;
  if (deviation == 0.0) return;
  for (MixtureMember member : more) {
    member.share *= share;
    member.factor *= share / deviation;
    if (member.share >= kLeast) out.push_back(std::move(member));
  }
}

/// What is known before the first example.
struct Known {
  Members members;        ///< none: nothing
  double examples = 0.0;  ///< that count as much
};

Known known_before(RankerKind kind, const std::optional<Source>& source) {
  Known out;
  if (simulated_feature(kind)) out = {{{.kind = RankerKind::Linear, .ranker = simulator_of(kind)}}, kSimulator};
  if (!source || source->deviation == 0.0) return out;
  Members learned = detail::members_of(kind, source->ranker);
  if (out.members.empty()) return {std::move(learned), kSource};
  if (source->simulated_deviation == 0.0) return out;
  const Members simulator = std::exchange(out.members, {});
  out.examples += kSource;
  add(out.members, learned, kSource / out.examples, source->deviation);
  add(out.members, simulator, kSimulator / out.examples, source->simulated_deviation);
  return out;
}

}  // namespace

Source source_of(RankerKind kind, std::shared_ptr<const Ranker> ranker, const std::vector<Example>& examples) {
  const double deviation = deviation_of(examples, *ranker);
  const double simulated = simulated_feature(kind) ? deviation_of(examples, *simulator_of(kind)) : 0.0;
  return {.ranker = std::move(ranker), .deviation = deviation, .simulated_deviation = simulated};
}

std::shared_ptr<const Ranker> learned_ranker(RankerKind kind, const std::vector<Example>& examples,
                                             const std::optional<Source>& source) {
  std::shared_ptr<LearningRanker> fitted = make_ranker(kind);
  const Known before = known_before(kind, source);
  if (examples.size() < 2) return detail::mixture(before.members);
  fitted->fit(examples);
  if (before.members.empty()) return fitted;
  const double share = detail::credibility(examples.size(), before.examples);
  const double deviation = deviation_of(examples, *fitted);
  Members members;
  add(members, {{.kind = kind, .ranker = std::move(fitted)}}, share, deviation);
  add(members, before.members, 1.0 - share, deviation_of(examples, *detail::mixture(before.members)));
  return detail::mixture(members.empty() ? before.members : members);
}

}  // namespace simsync
