#include "strategies/search/mixture.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"

namespace simsync::detail {
namespace {

using Json = nlohmann::json;

class Mixture final : public Ranker {
public:
  explicit Mixture(std::vector<MixtureMember> members) : members_(std::move(members)) {
    SIMSYNC_ASSERT(!members_.empty());
    for (const MixtureMember& member : members_)
      SIMSYNC_ASSERT(member.factor > 0.0 && dynamic_cast<const Mixture*>(member.ranker.get()) == nullptr);
  }

  [[nodiscard]] double score(const std::vector<double>& features) const override {
    double sum = 0.0;
    for (const MixtureMember& member : members_) sum += member.factor * member.ranker->score(features);
    return sum;
  }

  [[nodiscard]] Json weights() const override {
    Json members = Json::array();
    for (const MixtureMember& member : members_)
      members.push_back({{"kind", name_of(member.kind)},
                         {"share", member.share},
                         {"factor", member.factor},
                         {"weights", member.ranker->weights()}});
    return {{"members", std::move(members)}};
  }

  [[nodiscard]] const std::vector<MixtureMember>& members() const { return members_; }

private:
  std::vector<MixtureMember> members_;
};

bool is_positive(double value) {
  return std::isfinite(value) && value > 0.0;
}

/// `features`: how many the ranker sees.
std::shared_ptr<const Ranker> restored_member(RankerKind kind, const Json& weights, std::size_t features) {
  auto out = make_ranker(kind);
  return out->restore(weights, features) ? std::move(out) : nullptr;
}

/// Each member sees as many features as the mixture.
std::shared_ptr<const Ranker> restored_mixture(RankerKind kind, const Json& weights, std::size_t features) {
  if (!weights.at("members").is_array()) return nullptr;
  std::vector<MixtureMember> members;
  for (const Json& member : weights.at("members")) {
    const auto of = find_word(ranker_words(), member.at("kind").get<std::string>());
    const auto factor = member.at("factor").get<double>();
    const auto share = member.at("share").get<double>();
    if (!of || (*of != kind && *of != RankerKind::Linear) || !is_positive(factor) || !is_positive(share))
      return nullptr;
    members.push_back({.kind = *of,
                       .share = share,
                       .factor = factor,
                       .ranker = restored_member(*of, member.at("weights"), features)});
    if (members.back().ranker == nullptr) return nullptr;
  }
  return members.empty() ? nullptr : mixture(std::move(members));
}

}  // namespace

std::shared_ptr<const Ranker> mixture(std::vector<MixtureMember> members) {
  return std::make_shared<Mixture>(std::move(members));
}

std::vector<MixtureMember> members_of(RankerKind kind, const std::shared_ptr<const Ranker>& ranker) {
  if (const auto* known = dynamic_cast<const Mixture*>(ranker.get())) return known->members();
  return {{.kind = kind, .ranker = ranker}};
}

std::shared_ptr<const Ranker> restored_ranker(RankerKind kind, const Json& weights) {
  const std::size_t features = ranker_schema(kind).names.size();
  return weights.contains("members") ? restored_mixture(kind, weights, features)
                                     : restored_member(kind, weights, features);
}

}  // namespace simsync::detail
