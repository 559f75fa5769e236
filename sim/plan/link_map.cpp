#include "sim/plan/link_map.hpp"

#include <algorithm>

namespace simsync::detail {

bool LinkMap::carries(const Path& from, const Path& to) {
  const bool alike = from.links.size() == to.links.size() && from.stream_cap == to.stream_cap &&
                     from.latency == to.latency && from.message_cost == to.message_cost &&
                     from.half_size.count == to.half_size.count;
  if (!alike) return false;
  for (std::size_t i = 0; i < from.links.size(); ++i) {
    const LinkId source = from.links[i];
    const LinkId target = to.links[i];
    if (goes_to_.try_emplace(source, target).first->second != target) return false;
    if (comes_from_.try_emplace(target, source).first->second != source) return false;
    if (bandwidth(source) != bandwidth(target)) return false;
  }
  return true;
}

bool LinkMap::keeps(const Path& path) const {
  return std::all_of(path.links.begin(), path.links.end(), [&](LinkId link) {
    const auto known = goes_to_.find(link);
    return known == goes_to_.end() || known->second == link;
  });
}

}  // namespace simsync::detail
