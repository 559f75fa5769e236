// What several rankers say, as one. Private to strategies/search.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "strategies/search/ranker_kinds.hpp"

namespace simsync::detail {

/// A ranker of a mixture; no mixture itself.
struct MixtureMember {
  RankerKind kind = RankerKind::Linear;  ///< for make_ranker(), when it is read again
  double share = 1.0;                    ///< how much it was meant to count, of 1
  double factor = 1.0;                   ///< of its score, positive: its share by the scale of its scores
  std::shared_ptr<const Ranker> ranker;
};

/// Its score is the sum of the members' scores, each times its factor. Needs a member.
std::shared_ptr<const Ranker> mixture(std::vector<MixtureMember> members);
/// The members of a mixture, or a ranker of this kind as the only one.
std::vector<MixtureMember> members_of(RankerKind kind, const std::shared_ptr<const Ranker>& ranker);

/// A ranker from the weights of one of this kind, or of a mixture for this kind, whose members are of this kind or
/// linear. Null: they are not such weights. @throws nlohmann::json::exception for weights that lack a part.
std::shared_ptr<const Ranker> restored_ranker(RankerKind kind, const nlohmann::json& weights);

}  // namespace simsync::detail
