// Layer times from floating point operations and bytes.
#pragma once
#include "models/profile.hpp"

namespace simsync::detail {

/// Forward and backward of one layer for `batch` samples.
///
/// A pass takes max(work / (peak e(work)), bytes / memory rate) + launch, with
/// e(w) = compute_efficiency w / (w + half_efficiency): a kernel has to fill the device before it runs at full
/// speed (Hockney and Jesshope's n_1/2). The curve applies to matrix products and convolutions; other kernels are
/// bound by memory. A recurrent layer is as many kernels as it has steps.
LayerTime estimate_layer(const Model& model, LayerId id, const Roofline& roofline, std::int64_t batch);

/// Applying the optimizer: momentum SGD reads weight, gradient and momentum and writes weight and momentum, five
/// times the bytes of a variable (of the touched rows, when it is sparse), one kernel per variable.
Seconds estimate_update(const Model& model, const Roofline& roofline, std::int64_t batch);

}  // namespace simsync::detail
