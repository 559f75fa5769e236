#include "models/shape.hpp"

#include <fmt/format.h>

namespace simsync::detail {

std::optional<std::int64_t> elements_of(const Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t axis : shape) {
    if (axis < 1 || axis > kMaxElements / product) return std::nullopt;
    product *= axis;
  }
  return product;
}

double count_of(const Shape& shape) {
  double product = 1.0;
  for (const std::int64_t axis : shape) product *= static_cast<double>(axis);
  return product;
}

std::string text_of(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::size_t feature_axis(const Shape& shape) {
  return shape.size() == 3 || shape.empty() ? 0 : shape.size() - 1;
}

}  // namespace simsync::detail
