#include "hw/run/collective_results.hpp"

#include "hw/run/payload.hpp"

namespace simsync {

CollectiveSizes sizes_of(const Collective& what, std::size_t ranks) {
  const std::size_t floats = floats_of(what.bytes);
  const std::size_t part = (floats + ranks - 1) / ranks;
  switch (what.primitive) {
    case CollectivePrimitive::AllReduce:
    case CollectivePrimitive::Broadcast:
    case CollectivePrimitive::Reduce:
    case CollectivePrimitive::SendReceive:
      break;
    case CollectivePrimitive::AllGather:
      return {floats, floats * ranks};
    case CollectivePrimitive::ReduceScatter:
      return {part * ranks, part};
    case CollectivePrimitive::AllToAll:
      return {part * ranks, part * ranks};
  }
  return {floats, floats};
}

std::vector<ResultPart> results_of(const Collective& what, std::span<const int> ranks, std::size_t place) {
  const CollectiveSizes sizes = sizes_of(what, ranks.size());
  const std::vector<int> all(ranks.begin(), ranks.end());
  const auto root = static_cast<std::size_t>(what.root);
  const auto from_each = [&](std::size_t floats, std::size_t in_begin) {
    std::vector<ResultPart> out;
    for (const int rank : ranks) out.push_back({out.size() * floats, in_begin, floats, {rank}});
    return out;
  };
  switch (what.primitive) {
    case CollectivePrimitive::AllReduce:
      break;
    case CollectivePrimitive::ReduceScatter:
      return {{0, place * sizes.out, sizes.out, all}};
    case CollectivePrimitive::AllGather:
      return from_each(sizes.in, 0);
    case CollectivePrimitive::Broadcast:
      return {{0, 0, sizes.out, {all[root]}}};
    case CollectivePrimitive::Reduce:
      if (place != root) return {};
      break;
    case CollectivePrimitive::AllToAll:
      return from_each(sizes.in / ranks.size(), place * (sizes.in / ranks.size()));
    case CollectivePrimitive::SendReceive:
      if (place == root) return {};
      return {{0, 0, sizes.out, {all[root]}}};
  }
  return {{0, 0, sizes.out, all}};
}

}  // namespace simsync
