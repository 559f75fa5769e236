// Devices as a grid with named axes.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace simsync {

/// One axis of a mesh, such as `tp` with 8 ranks.
struct MeshAxis {
  std::string name;
  int size = 1;  ///< ranks along it, at least 1
  friend bool operator==(const MeshAxis&, const MeshAxis&) = default;
};

inline constexpr int kMostMeshRanks = 1 << 20;

/// A grid of ranks. The order of its axes is that of a tuple's entries (`SbpTuple`), and of coordinates. How ranks are
/// numbered is a matter of its own: the innermost axis varies fastest, so that consecutive ranks, which are those of a
/// node, lie along it.
class DeviceMesh {
public:
  /// Row-major: the last axis is the innermost one.
  /// @throws InputError for no axis, an empty or repeated name, a size below 1, more than kMostMeshRanks ranks.
  explicit DeviceMesh(const std::vector<MeshAxis>& axes);
  /// `innermost_first` names every axis once. {"tp", "dp", "pp"}: rank 1 is rank 0's next neighbor along tp; along dp
  /// it is the rank numbered by the size of tp.
  /// @throws InputError as above, and when the order does not name every axis once.
  DeviceMesh(std::vector<MeshAxis> axes, const std::vector<std::string>& innermost_first);

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] int axis_count() const { return static_cast<int>(axes_.size()); }
  [[nodiscard]] const MeshAxis& axis(int index) const { return axes_.at(static_cast<std::size_t>(index)); }
  [[nodiscard]] int size(int axis) const { return this->axis(axis).size; }
  /// Difference between the numbers of ranks that are neighbors along the axis.
  [[nodiscard]] int stride(int axis) const { return strides_.at(static_cast<std::size_t>(axis)); }
  /// Position of the axis of that name. @throws InputError when there is none.
  [[nodiscard]] int find(std::string_view name) const;

  /// Of a rank in 0 ... ranks()-1: its position along each axis.
  [[nodiscard]] std::vector<int> coordinates(int rank) const;
  /// The rank at these positions, one for each axis.
  [[nodiscard]] int rank(const std::vector<int>& coordinates) const;

  /// By rank the number of its group: ranks whose coordinates differ along `axes` only. Groups are numbered 0, 1, ...
  /// by their lowest rank. `group_of({a})` has the groups along one axis, `group_of({})` one group per rank.
  [[nodiscard]] std::vector<int> group_of(const std::vector<int>& axes) const;

private:
  std::vector<MeshAxis> axes_;
  std::vector<int> strides_;  ///< by axis
  int ranks_ = 1;
};

}  // namespace simsync
