#include "models/operation.hpp"

namespace simsync {

double Convolution::flops() const {
  const std::int64_t depth = in_channels / groups;
  const auto taps = static_cast<double>(height.kernel) * static_cast<double>(width.kernel) * static_cast<double>(depth);
  return 2.0 * taps * static_cast<double>(out_channels) * static_cast<double>(height.positions) *
         static_cast<double>(width.positions);
}

double MatrixProduct::flops() const {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(columns) *
         static_cast<double>(heads) * static_cast<double>(steps);
}

double Operation::flops() const {
  double sum = pointwise_flops;
  if (convolution) sum += convolution->flops();
  for (const MatrixProduct& product : products) sum += product.flops();
  return sum;
}

}  // namespace simsync
