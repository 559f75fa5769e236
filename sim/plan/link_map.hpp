// Whether exchanging ranks exchanges the links of their routes, too. Private to sim.
#pragma once
#include <map>
#include <vector>

#include "platforms/topology.hpp"

namespace simsync::detail {

/// Where each link goes when ranks take each other's places; built up from the routes of pairs of ranks.
class LinkMap {
public:
  explicit LinkMap(const Topology& topology) : topology_(topology) {}

  /// The route `from` becomes `to`. False: the two cost differently, or no one-to-one map of the links does that
  /// together with the routes before.
  bool carries(const Path& from, const Path& to);
  /// Whether it leaves the links of a route where they are, as far as it knows them.
  [[nodiscard]] bool keeps(const Path& path) const;

private:
  [[nodiscard]] BytesPerSecond bandwidth(LinkId link) const {
    return topology_.links()[static_cast<std::size_t>(link)].bandwidth;
  }

  const Topology& topology_;
  std::map<LinkId, LinkId> goes_to_;
  std::map<LinkId, LinkId> comes_from_;
};

}  // namespace simsync::detail
