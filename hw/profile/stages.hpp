// The kernels that a layer consists of.
#pragma once
#include "hw/profile/backend.hpp"
#include "models/model.hpp"

namespace simsync {

/// A layer's two passes, ready to run.
struct LayerStages {
  Stage forward;
  Stage backward;  ///< weight gradient, then data gradient
};

/// Whether a layer can be timed: not when it is a convolution, product or recurrence that was given in numbers only.
bool has_kernels(const Layer& layer);

/// Prepares the kernels of one layer for `batch` samples.
///
/// Convolutions and products run as such, an LSTM as the products that it consists of (its input's for all tokens at
/// once, the recurrent ones token by token, the weight gradients for all tokens at once). Everything else (norms,
/// activations, pooling, look-ups, losses) is a stream of the bytes that its kernels have to touch: such layers are
/// bound by memory. Biases are left out.
LayerStages make_stages(const Model& model, LayerId id, std::int64_t batch, Backend& backend);

}  // namespace simsync
