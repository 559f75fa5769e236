// What a ranker has learned elsewhere, for a model and a cluster of which few trials are known.
#pragma once
#include <memory>
#include <vector>

#include "strategies/names.hpp"
#include "strategies/search/ranker.hpp"

namespace simsync {

enum class TransferChoice {
  Source,   ///< as it was learned elsewhere
  Tuned,    ///< tuned with the examples
  Scratch,  ///< from the examples alone: what was learned elsewhere misleads
};
const Words<TransferChoice>& transfer_words();

struct Transferred {
  std::unique_ptr<Ranker> ranker;
  TransferChoice choice = TransferChoice::Source;
};

/// Of the three the one that ranks examples best which it has not seen, by cross-validation. Where that is no more than
/// noise, the source, then the tuned one. With fewer than kFewestToTransfer examples the source as it is.
/// Deterministic.
Transferred transfer(const Ranker& source, const std::vector<Example>& examples);

inline constexpr std::size_t kFewestToTransfer = 5;

}  // namespace simsync
