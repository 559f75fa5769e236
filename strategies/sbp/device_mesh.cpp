#include "strategies/sbp/device_mesh.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"

namespace simsync {
namespace {

std::vector<std::string> names_of(const std::vector<MeshAxis>& axes) {
  std::vector<std::string> names;
  for (const MeshAxis& axis : axes) names.push_back(axis.name);
  return names;
}

std::vector<std::string> reversed_names(const std::vector<MeshAxis>& axes) {
  std::vector<std::string> names = names_of(axes);
  std::reverse(names.begin(), names.end());
  return names;
}

void check(const std::vector<MeshAxis>& axes) {
  if (axes.empty()) throw InputError("a device mesh without axes: expected at least one");
  std::int64_t ranks = 1;
  for (const MeshAxis& axis : axes) {
    if (axis.name.empty()) throw InputError("a mesh axis without a name");
    if (axis.size < 1)
      throw InputError(fmt::format("mesh axis '{}' has {} ranks: expected at least 1", axis.name, axis.size));
    ranks *= axis.size;
    if (ranks > kMostMeshRanks)
      throw InputError(
          fmt::format("the device mesh has more than {} ranks, the most that it may have", kMostMeshRanks));
  }
  std::vector<std::string> names = names_of(axes);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw InputError(fmt::format("mesh axis '{}' is given twice", *twice));
}

}  // namespace

DeviceMesh::DeviceMesh(const std::vector<MeshAxis>& axes) : DeviceMesh(axes, reversed_names(axes)) {}

DeviceMesh::DeviceMesh(std::vector<MeshAxis> axes, const std::vector<std::string>& innermost_first)
    : axes_(std::move(axes)), strides_(axes_.size()) {
  check(axes_);
  const std::vector<std::string> names = names_of(axes_);
  if (!std::is_permutation(names.begin(), names.end(), innermost_first.begin(), innermost_first.end()))
    throw InputError(fmt::format("the order of mesh axes is [{}]: expected each of [{}] once",
                                 fmt::join(innermost_first, ", "), fmt::join(names, ", ")));
  for (const std::string& name : innermost_first) {
    const auto axis = static_cast<std::size_t>(find(name));
    strides_[axis] = ranks_;
    ranks_ *= axes_[axis].size;
  }
}

int DeviceMesh::find(std::string_view name) const {
  const auto found = std::find_if(axes_.begin(), axes_.end(), [&](const MeshAxis& axis) { return axis.name == name; });
  if (found == axes_.end())
    throw InputError(fmt::format("no mesh axis '{}': expected one of [{}]", name, fmt::join(names_of(axes_), ", ")),
                     did_you_mean(name, names_of(axes_)));
  return static_cast<int>(found - axes_.begin());
}

std::vector<int> DeviceMesh::coordinates(int rank) const {
  SIMSYNC_ASSERT(rank >= 0 && rank < ranks_);
  std::vector<int> out;
  for (int a = 0; a < axis_count(); ++a) out.push_back(rank / stride(a) % size(a));
  return out;
}

int DeviceMesh::rank(const std::vector<int>& coordinates) const {
  SIMSYNC_ASSERT(static_cast<int>(coordinates.size()) == axis_count());
  int out = 0;
  for (int a = 0; a < axis_count(); ++a) {
    const int at = coordinates[static_cast<std::size_t>(a)];
    SIMSYNC_ASSERT(at >= 0 && at < size(a));
    out += at * stride(a);
  }
  return out;
}

std::vector<int> DeviceMesh::group_of(const std::vector<int>& axes) const {
  std::vector<int> out;
  std::map<int, int> numbers;  // lowest rank of a group -> its number
  for (int rank = 0; rank < ranks_; ++rank) {
    std::vector<int> lowest = coordinates(rank);
    for (const int axis : axes) lowest.at(static_cast<std::size_t>(axis)) = 0;
    out.push_back(numbers.emplace(this->rank(lowest), static_cast<int>(numbers.size())).first->second);
  }
  return out;
}

}  // namespace simsync
