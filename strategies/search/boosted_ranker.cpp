#include "strategies/search/boosted_ranker.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/error.hpp"
#include "strategies/search/boosted_trees.hpp"

namespace simsync::detail {
namespace {

constexpr int kTrees = 150;
constexpr double kMostFeature = 1e30;  // XGBoost refuses infinite floats
using Members = std::vector<const Example*>;

/// The rank of each, the fastest first. XGBoost knows no pairs that are to be left alone, and near ties do not chain to
/// an order: so from the fastest on, all that nearly tie with the first of their block are ordered by their shards.
std::vector<float> ranks_of(Members& members) {
  std::stable_sort(members.begin(), members.end(), [](auto* a, auto* b) { return a->step < b->step; });
  std::vector<float> out(members.size());
  float rank = 0.0F;
  for (std::size_t first = 0; first < members.size();) {
    std::size_t end = first;
    while (end < members.size() && std::log(members[end]->step / members[first]->step) < kNearTie) ++end;
    const auto at = [&](std::size_t i) { return members.begin() + static_cast<std::ptrdiff_t>(i); };
    std::stable_sort(at(first), at(end), [](auto* a, auto* b) { return a->shards < b->shards; });
    for (std::size_t i = first; i < end; ++i) {
      if (i == first || members[i]->shards > members[i - 1]->shards) rank += 1.0F;
      out[i] = rank;
    }
    first = end;
  }
  return out;
}

TreeRows rows_of(const std::vector<Example>& examples) {
  std::map<int, Members> domains;
  for (const Example& example : examples) domains[example.domain].push_back(&example);
  TreeRows out;
  out.width = examples.front().features.size();
  for (auto& [domain, members] : domains) {
    const std::vector<float> ranks = ranks_of(members);
    out.labels.insert(out.labels.end(), ranks.begin(), ranks.end());
    out.groups.push_back(static_cast<unsigned>(members.size()));
    for (const Example* member : members)
      for (const double value : member->features)
        out.values.push_back(static_cast<float>(std::clamp(value, -kMostFeature, kMostFeature)));
  }
  return out;
}

class BoostedRanker final : public LearningRanker {
public:
  void fit(const std::vector<Example>& examples) override {
    SIMSYNC_ASSERT(examples.size() >= 2);
    trees_ = boosted_trees({});
    trees_->grow(rows_of(examples), kTrees);
  }

  [[nodiscard]] double score(const std::vector<double>& features) const override {
    SIMSYNC_ASSERT(trees_ != nullptr);
    return trees_->score(features);
  }

  [[nodiscard]] nlohmann::json weights() const override {
    SIMSYNC_ASSERT(trees_ != nullptr);
    return {{"xgboost", nlohmann::json::parse(trees_->saved())}};
  }

  [[nodiscard]] bool restore(const nlohmann::json& weights, std::size_t features) override {
    const nlohmann::json& model = weights.at("xgboost");
    if (!model.is_object()) return false;
    try {
      auto trees = boosted_trees(model.dump());
      if (trees->width() != features) return false;
      trees_ = std::move(trees);
      return true;
    } catch (const std::invalid_argument&) {
      return false;
    }
  }

private:
  std::unique_ptr<BoostedTrees> trees_;
};

}  // namespace

std::unique_ptr<LearningRanker> boosted_ranker() {
  (void)boosted_trees({});  // says at once if there are none
  return std::make_unique<BoostedRanker>();
}

}  // namespace simsync::detail
