// boosted_trees() of a build without XGBoost.
#include "base/error.hpp"
#include "strategies/search/boosted_trees.hpp"

namespace simsync::detail {

std::unique_ptr<BoostedTrees> boosted_trees(const std::string&) {
  throw CapabilityError(
      "this build has no boosted trees: XGBoost was not found (Debian package: libxgboost-dev). Install it and run "
      "cmake again, or use the ranker 'linear'");
}

void simsync_boosted_trees(const std::string& saved, std::unique_ptr<BoostedTrees>& out) {
  out = boosted_trees(saved);
}

}  // namespace simsync::detail
