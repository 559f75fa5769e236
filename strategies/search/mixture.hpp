// What several rankers say, as one. Private to strategies/search.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "strategies/search/ranker_kinds.hpp"

namespace simsync::detail {

/// A ranker of a mixture. A member that was restored from weights is of the same kind as the one that they came from.
struct MixtureMember {
  RankerKind kind = RankerKind::Linear;
  double factor = 1.0;  ///< of its score
  std::shared_ptr<const Ranker> ranker;
};

/// Its score is the sum of the members' scores, each times its factor. A member that is a mixture itself is replaced by
/// its members. Needs a member.
std::unique_ptr<Ranker> mixture(std::vector<MixtureMember> members);

/// A ranker from the weights of one of this kind, or of a mixture for the features of this kind. Null: they are not
/// such weights. @throws nlohmann::json::exception for weights that lack a part.
std::unique_ptr<Ranker> restored_ranker(RankerKind kind, const nlohmann::json& weights);

}  // namespace simsync::detail
