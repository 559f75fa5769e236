// Which part of a tensor a rank holds.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strategies/sbp/device_mesh.hpp"
#include "strategies/sbp/signature.hpp"

namespace simsync {

/// Lengths of a tensor's axes, the batch axis included; each at least 1.
using TensorShape = std::vector<std::int64_t>;

/// Product of the lengths, as a number for costs.
double element_count(const TensorShape& shape);
/// `[32, 4096]`
std::string shape_text(const TensorShape& shape);

/// Why a tensor cannot be laid out so, nullopt when it can: the tuple needs an entry for each mesh axis, splits must be
/// of axes that the tensor has, and an axis must be as long as the product of the mesh axes that split it, at least.
/// OneFlow is stricter on meshes of several axes: it wants that every split leaves equal pieces.
std::optional<std::string> misfit(const TensorShape& shape, const SbpTuple& tuple, const DeviceMesh& mesh);
/// @throws PlanError with what `misfit` says.
void expect_fit(const TensorShape& shape, const SbpTuple& tuple, const DeviceMesh& mesh);

/// The shape of the largest piece. Where an axis is cut into unequal pieces they differ by one, larger ones first.
/// @throws PlanError when the tensor cannot be laid out so.
TensorShape local_shape(const TensorShape& shape, const SbpTuple& tuple, const DeviceMesh& mesh);

/// A piece of a tensor, along each of the tensor's axes.
struct Piece {
  std::vector<std::int64_t> begin;  ///< first index
  TensorShape shape;                ///< number of indices
};
/// What the rank at these coordinates holds. Where several mesh axes split one tensor axis, the first of them splits
/// first: entry (S(0),S(0)) on a mesh of 2 x 3 ranks cuts rows into halves, then each half into thirds.
/// @throws PlanError when the tensor cannot be laid out so.
Piece local_piece(const TensorShape& shape, const SbpTuple& tuple, const DeviceMesh& mesh,
                  const std::vector<int>& coordinates);

}  // namespace simsync
