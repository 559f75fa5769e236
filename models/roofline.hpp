// Layer times from floating point operations and bytes.
#pragma once
#include "models/profile.hpp"

namespace simsync {

/// What one pass of a layer moves through the device's memory.
struct PassTraffic {
  double bytes = 0.0;
  double kernels = 1.0;  ///< that it is made of; several passes over one tensor may be one kernel
};

struct LayerTraffic {
  PassTraffic forward;
  PassTraffic backward;
};

/// Bytes that the kernels of a layer have to touch for `batch` samples of `element_bytes` per element.
LayerTraffic layer_traffic(const Model& model, LayerId id, std::int64_t batch, double element_bytes);

namespace detail {

/// Forward and backward of one layer for `batch` samples.
///
/// A pass takes max(work / (peak e(work)), bytes / memory rate) + launch, with
/// e(w) = share w / (w + half_efficiency), where share is compute_efficiency or that of product_rate: a kernel has to
/// fill the device before it runs at full speed (Hockney and Jesshope's n_1/2). The curve applies to matrix products
/// and convolutions; other kernels are bound by memory. A recurrent layer is as many kernels as it has steps.
LayerTime estimate_layer(const Model& model, LayerId id, const Roofline& roofline, std::int64_t batch);

/// Applying the optimizer: momentum SGD reads weight, gradient and momentum and writes weight and momentum, five
/// times the bytes of a variable (of the touched rows, when it is sparse), one kernel per variable.
Seconds estimate_update(const Model& model, const Roofline& roofline, std::int64_t batch);

}  // namespace detail
}  // namespace simsync
