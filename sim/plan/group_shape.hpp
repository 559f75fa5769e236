// What is collected, and among whom.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "strategies/synchronizer.hpp"

namespace simsync {

enum class CollectivePrimitive : std::uint8_t {
  AllReduce,      ///< the sum of all ranks' payloads, to every rank
  ReduceScatter,  ///< of that sum, to each rank a part of its own
  AllGather,      ///< every rank's payload, to every rank
  Broadcast,      ///< the root's payload, to every rank
  Reduce,         ///< the sum, to the root
  AllToAll,       ///< each rank's payload has a part for every rank
  SendReceive,    ///< of two ranks, the root's payload to the other
};
const char* name_of(CollectivePrimitive primitive);

/// Which collective, and how it runs.
struct CollectiveKind {
  CollectivePrimitive primitive = CollectivePrimitive::AllReduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::Ring;
  int root = 0;  ///< Collective::root
  friend auto operator<=>(const CollectiveKind&, const CollectiveKind&) = default;
};

/// The only algorithm of a primitive; none: it has several.
std::optional<CollectiveAlgorithm> only_algorithm(CollectivePrimitive primitive);

/// The group as a collective sees it: ranks node by node.
struct GroupShape {
  std::vector<int> node_begin;  ///< index of each node's first rank in the group, and one past the last

  [[nodiscard]] int ranks() const { return node_begin.back(); }
  [[nodiscard]] int nodes() const { return static_cast<int>(node_begin.size()) - 1; }
  [[nodiscard]] int node_of(int rank) const;
  [[nodiscard]] int size_of(int node) const;  ///< ranks on it
  [[nodiscard]] bool alike() const;           ///< every node has as many ranks
};

}  // namespace simsync
