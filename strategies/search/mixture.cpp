#include "strategies/search/mixture.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"

namespace simsync::detail {
namespace {

using Json = nlohmann::json;

class Mixture final : public Ranker {
public:
  explicit Mixture(std::vector<MixtureMember> members) {
    SIMSYNC_ASSERT(!members.empty());
    for (MixtureMember& member : members) {
      SIMSYNC_ASSERT(member.ranker != nullptr);
      if (const auto* inner = dynamic_cast<const Mixture*>(member.ranker.get())) {
        for (MixtureMember one : inner->members_) {
          one.factor *= member.factor;
          members_.push_back(std::move(one));
        }
      } else {
        members_.push_back(std::move(member));
      }
    }
  }

  [[nodiscard]] double score(const std::vector<double>& features) const override {
    double sum = 0.0;
    for (const MixtureMember& member : members_) sum += member.factor * member.ranker->score(features);
    return sum;
  }

  [[nodiscard]] Json weights() const override {
    Json members = Json::array();
    for (const MixtureMember& member : members_)
      members.push_back(
          {{"kind", name_of(member.kind)}, {"factor", member.factor}, {"weights", member.ranker->weights()}});
    return {{"members", std::move(members)}};
  }

private:
  std::vector<MixtureMember> members_;
};

/// `features`: how many the ranker sees.
std::unique_ptr<Ranker> restored_member(RankerKind kind, const Json& weights, std::size_t features) {
  auto out = make_ranker(kind);
  return out->restore(weights, features) ? std::move(out) : nullptr;
}

/// Each member sees as many features as the mixture.
std::unique_ptr<Ranker> restored_mixture(const Json& weights, std::size_t features) {
  if (!weights.at("members").is_array()) return nullptr;
  std::vector<MixtureMember> members;
  for (const Json& member : weights.at("members")) {
    const auto word = member.at("kind").get<std::string>();
    const auto& words = ranker_words();
    const auto known = std::find_if(words.begin(), words.end(), [&](const auto& one) { return one.first == word; });
    if (known == words.end()) return nullptr;
    members.push_back({.kind = known->second,
                       .factor = member.at("factor").get<double>(),
                       .ranker = restored_member(known->second, member.at("weights"), features)});
    if (members.back().ranker == nullptr) return nullptr;
  }
  return members.empty() ? nullptr : mixture(std::move(members));
}

}  // namespace

std::unique_ptr<Ranker> mixture(std::vector<MixtureMember> members) {
  return std::make_unique<Mixture>(std::move(members));
}

std::unique_ptr<Ranker> restored_ranker(RankerKind kind, const Json& weights) {
  const std::size_t features = ranker_schema(kind).names.size();
  return weights.contains("members") ? restored_mixture(weights, features) : restored_member(kind, weights, features);
}

}  // namespace simsync::detail
