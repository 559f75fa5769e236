#include "strategies/search/transfer.hpp"

#include <array>

#include "strategies/search/folds.hpp"

namespace simsync {
namespace {

/// Of those that rank equally well the one that rests on most examples and adapts least.
constexpr std::array<TransferChoice, 3> kOrder{TransferChoice::Source, TransferChoice::Tuned, TransferChoice::Scratch};

std::unique_ptr<Ranker> learned(TransferChoice choice, const Ranker& source, const std::vector<Example>& examples) {
  auto out = source.copy();
  if (choice == TransferChoice::Tuned) out->tune(examples);
  if (choice == TransferChoice::Scratch) out->fit(examples);
  return out;
}

}  // namespace

const Words<TransferChoice>& transfer_words() {
  static const Words<TransferChoice> kWords{
      {"source", TransferChoice::Source}, {"tuned", TransferChoice::Tuned}, {"scratch", TransferChoice::Scratch}};
  return kWords;
}

Transferred transfer(const Ranker& source, const std::vector<Example>& examples) {
  if (examples.size() < kFewestToTransfer) return {source.copy(), TransferChoice::Source};
  std::vector<std::vector<double>> accuracies(kOrder.size());
  for (const detail::Fold& fold : detail::folds_of(examples))
    for (std::size_t i = 0; i < kOrder.size(); ++i)
      accuracies[i].push_back(pairwise_accuracy(fold.held, *learned(kOrder.at(i), source, fold.known)));
  const TransferChoice choice = kOrder.at(detail::first_of_the_best(accuracies));
  return {learned(choice, source, examples), choice};
}

}  // namespace simsync
