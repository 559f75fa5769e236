// Into how many shards sparse variables are cut: the search of Parallax (Kim et al., EuroSys 2019).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.hpp"
#include "strategies/families.hpp"
#include "strategies/partition.hpp"
#include "strategies/search/proposals.hpp"

namespace simsync::detail {
namespace {

constexpr double kCannotRun = std::numeric_limits<double>::infinity();

/// Doubles the number of shards from that of the servers while steps get shorter; if they never do, halves it. Then the
/// best count of the curve, if it is a new one. Begins with the builder `parallax`, whose sparse variables are whole.
class ShardCountProposals final : public Proposals {
public:
  explicit ShardCountProposals(const SearchProblem& problem) {
    const SearchTarget& target = problem.sampler.target();
    for (const auto& [name, strategy] : problem.builders)
      if (name == kShardsBuilder) base_ = strategy;
    for (const Variable& variable : target.model.variables())
      if (variable.sparse) most_ = std::max(most_, variable.shape.front());
    if (most_ == 0)
      throw InputError(
          fmt::format("{} has no sparse variables: the method 'shards' cuts these only", target.model.name()),
          "choose another method; all of them cut variables");
    if (base_.variables.empty())
      throw InputError(
          fmt::format("the method 'shards' begins with the builder '{}', which does not fit here", kShardsBuilder));
    servers_ = hosts_of(target.cluster, target.workers).all();
    start_ = std::min(most_, static_cast<std::int64_t>(servers_.size()));
  }

  std::vector<Candidate> next(SearchState& state, std::size_t) override {
    learn(state);
    while (const auto shards = next_count()) {
      auto candidate = state.considered(cut(state, *shards), fmt::format("{} shards", *shards));
      if (!candidate) {
        steps_[*shards] = kCannotRun;
        continue;
      }
      const bool is_new = state.note_new(*candidate);
      ids_[candidate->id] = *shards;
      if (is_new) return {std::move(*candidate)};
      learn(state);  // the builder itself
      SIMSYNC_ASSERT(steps_.contains(*shards));
    }
    state.result.shard_curve = curve_;
    return {};
  }

private:
  /// Of every trial whose number of shards is known.
  void learn(const SearchState& state) {
    for (const Trial& trial : state.result.trials) {
      const auto known = ids_.find(trial.candidate.id);
      if (known != ids_.end()) steps_[known->second] = trial.step ? trial.step->value() : kCannotRun;
    }
  }

  [[nodiscard]] Strategy cut(const SearchState& state, std::int64_t shards) const {
    const Model& model = state.problem.sampler.target().model;
    Strategy out = base_;
    Placement placement(servers_);
    for (VariableId id = 0; id < model.variables().size(); ++id) {
      const Variable& variable = model.variable(id);
      const auto* whole = std::get_if<PsSynchronizer>(&base_.variables[id].shards.front().synchronizer);
      if (!variable.sparse || whole == nullptr) continue;
      const auto parts = split_axis(variable, 0, std::min(shards, variable.shape.front()));
      out.variables[id] = partitioned_variable(id, 0, parts, [&](std::size_t) {
        PsSynchronizer one = *whole;
        one.server = placement.next_in_turn();
        return one;
      });
    }
    return out;
  }

  [[nodiscard]] std::optional<std::int64_t> next_count() {
    if (!steps_.contains(start_)) return start_;
    std::int64_t at = start_;
    for (std::int64_t more = 2 * at; more <= most_; more *= 2) {
      if (!steps_.contains(more)) return more;
      if (steps_[more] >= steps_[at]) break;
      at = more;
    }
    const bool more_helps = at != start_;
    for (std::int64_t fewer = at / 2; !more_helps && fewer >= 1; fewer /= 2) {
      if (!steps_.contains(fewer)) return fewer;
      if (steps_[fewer] >= steps_[at]) break;
      at = fewer;
    }
    if (is_fitted_) return std::nullopt;
    is_fitted_ = true;
    std::map<std::int64_t, double> ran;
    for (const auto& [shards, step] : steps_)
      if (std::isfinite(step)) ran.emplace(shards, step);
    curve_ = fit_shard_curve(ran);
    if (!curve_ || steps_.contains(curve_->best())) return std::nullopt;
    return curve_->best();
  }

  Strategy base_;
  std::vector<Place> servers_;
  std::int64_t start_ = 1;
  std::int64_t most_ = 0;                    ///< rows of the largest sparse variable
  std::map<std::string, std::int64_t> ids_;  ///< of strategies: their number of shards
  std::map<std::int64_t, double> steps_;     ///< s, by number of shards
  bool is_fitted_ = false;
  std::optional<ShardCurve> curve_;
};

}  // namespace

std::unique_ptr<Proposals> make_shard_count_proposals(const SearchProblem& problem) {
  return std::make_unique<ShardCountProposals>(problem);
}

}  // namespace simsync::detail
