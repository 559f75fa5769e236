// How long collectives take alone, for estimates that ask for many sizes. Private to sim/plan.
#pragma once
#include <map>
#include <tuple>

#include "platforms/cluster.hpp"
#include "sim/plan/collectives.hpp"

namespace simsync::detail {

/// Groups must outlive it. Not thread-safe.
class CollectiveTable {
public:
  /// Keeps a reference.
  explicit CollectiveTable(const Cluster& cluster) : cluster_(cluster) {}

  /// s, with its setup: CollectiveAlone's at eight sizes an octave, and between them on a line. 0 of one rank and
  /// without bytes. Payload as Collective::bytes says it.
  [[nodiscard]] double time(const GroupCosts& group, const CollectiveKind& kind, double bytes) const;

private:
  using Size = std::tuple<const GroupCosts*, CollectivePrimitive, CollectiveAlgorithm, int>;
  [[nodiscard]] double known(const Size& size, double bytes) const;

  const Cluster& cluster_;
  mutable std::map<Size, double> known_;  ///< s, without setup
};

}  // namespace simsync::detail
