// boosted_trees() for a program that loads XGBoost when a ranker first needs it.
#include "base/module.hpp"
#include "strategies/search/boosted_trees.hpp"

namespace simsync::detail {

std::unique_ptr<BoostedTrees> boosted_trees(const std::string& saved) {
  static void* const kTrees =
      symbol_of({SIMSYNC_MODULE_FROM_BIN, SIMSYNC_MODULE_BUILT, "the boosted trees"}, "simsync_boosted_trees");
  std::unique_ptr<BoostedTrees> out;
  reinterpret_cast<decltype(&simsync_boosted_trees)>(kTrees)(saved, out);
  return out;
}

}  // namespace simsync::detail
