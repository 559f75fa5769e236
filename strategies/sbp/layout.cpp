#include "strategies/sbp/layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace simsync {

double element_count(const TensorShape& shape) {
  return std::accumulate(shape.begin(), shape.end(), 1.0,
                         [](double product, std::int64_t length) { return product * static_cast<double>(length); });
}

std::string shape_text(const TensorShape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::optional<std::string> misfit(const TensorShape& shape, const SbpTuple& tuple, const DeviceMesh& mesh) {
  if (static_cast<int>(tuple.size()) != mesh.axis_count())
    return fmt::format("layout {} has {} entries: expected {}, one for each mesh axis", text_of(tuple), tuple.size(),
                       mesh.axis_count());
  std::vector<std::int64_t> pieces(shape.size(), 1);
  for (std::size_t a = 0; a < tuple.size(); ++a) {
    if (!tuple[a].is_split()) continue;
    const auto axis = static_cast<std::size_t>(tuple[a].axis);
    if (axis >= shape.size())
      return fmt::format("layout {} splits axis {} of a tensor of shape {}, which has {} axes", text_of(tuple),
                         tuple[a].axis, shape_text(shape), shape.size());
    pieces[axis] *= mesh.size(static_cast<int>(a));
  }
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (pieces[axis] > shape[axis])
      return fmt::format("layout {} splits axis {} of a tensor of shape {} into {} pieces: expected at most {}",
                         text_of(tuple), axis, shape_text(shape), pieces[axis], shape[axis]);
  }
  return std::nullopt;
}

void expect_fit(const TensorShape& shape, const SbpTuple& tuple, const DeviceMesh& mesh) {
  if (const auto why = misfit(shape, tuple, mesh)) throw PlanError(*why);
}

TensorShape local_shape(const TensorShape& shape, const SbpTuple& tuple, const DeviceMesh& mesh) {
  // The first piece of every cut is one of the largest.
  return local_piece(shape, tuple, mesh, std::vector<int>(tuple.size(), 0)).shape;
}

Piece local_piece(const TensorShape& shape, const SbpTuple& tuple, const DeviceMesh& mesh,
                  const std::vector<int>& coordinates) {
  expect_fit(shape, tuple, mesh);
  SIMSYNC_ASSERT(coordinates.size() == tuple.size());
  Piece out{.begin = std::vector<std::int64_t>(shape.size(), 0), .shape = shape};
  for (std::size_t a = 0; a < tuple.size(); ++a) {
    if (!tuple[a].is_split()) continue;
    const auto axis = static_cast<std::size_t>(tuple[a].axis);
    const std::int64_t parts = mesh.size(static_cast<int>(a));
    const std::int64_t part = coordinates[a];
    const std::int64_t longer = out.shape[axis] % parts;  // so many parts have one index more
    const std::int64_t length = out.shape[axis] / parts;
    out.begin[axis] += part * length + std::min(part, longer);
    out.shape[axis] = length + (part < longer ? 1 : 0);
  }
  return out;
}

}  // namespace simsync
