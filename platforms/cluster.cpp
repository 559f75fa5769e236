#include "platforms/cluster.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace simsync {

std::string name_of(const Place& place) {
  return place.gpu < 0 ? fmt::format("node{}:cpu0", place.node) : fmt::format("node{}:gpu{}", place.node, place.gpu);
}

const std::vector<std::string>& known_precisions() {
  static const std::vector<std::string> kNames{"amp", "bf16", "fp16", "fp32", "fp64", "fp8", "int8", "tf32"};
  return kNames;
}

int Cluster::node_count() const {
  int count = 0;
  for (const auto& group : groups) count += group.count;
  return count;
}

const NodeGroup& Cluster::group_of(int node) const {
  int left = node;
  for (const auto& group : groups) {
    if (left >= 0 && left < group.count) return group;
    left -= group.count;
  }
  throw PlanError(fmt::format("there is no node{}: cluster '{}' has {} nodes", node, name, node_count()));
}

int Cluster::gpu_count() const {
  int count = 0;
  for (const auto& group : groups) count += group.count * group.gpus;
  return count;
}

std::vector<Place> Cluster::workers(int workers) const {
  if (workers < 0 || workers > gpu_count())
    throw PlanError(fmt::format("{} workers do not fit: cluster '{}' has {} GPUs", workers, name, gpu_count()));
  std::vector<Place> places;
  places.reserve(static_cast<std::size_t>(workers));
  int first = 0;
  for (const auto& group : groups) {
    for (int node = first; node < first + group.count; ++node) {
      for (int gpu = 0; gpu < group.gpus; ++gpu) {
        if (static_cast<int>(places.size()) == workers) return places;
        places.push_back({node, gpu});
      }
    }
    first += group.count;
  }
  return places;
}

bool operator==(const Cluster& a, const Cluster& b) {
  return a.name == b.name && a.description == b.description && a.sources == b.sources && a.devices == b.devices &&
         a.links == b.links && a.groups == b.groups && a.network == b.network && a.collective == b.collective &&
         a.precision == b.precision;
}

}  // namespace simsync
