// What a layer computes, as far as a timing on real hardware has to know: products and convolutions with their sizes.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace simsync {

/// How the window of a convolution slides over one axis of an image.
struct WindowAxis {
  std::int64_t size = 1;  ///< of the image
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;    ///< on either side
  std::int64_t positions = 1;  ///< of the window: the output's size
};

/// A convolution of [in_channels, height, width] to [out_channels, height.positions, width.positions].
struct Convolution {
  std::int64_t in_channels = 1;
  std::int64_t out_channels = 1;
  std::int64_t groups = 1;
  WindowAxis height;
  WindowAxis width;

  /// Per sample: every output element is a sum over the kernel's area and the input channels of its group.
  [[nodiscard]] double flops() const;
};

/// A product of [rows, inner] with [inner, columns].
struct MatrixProduct {
  std::int64_t rows = 1;  ///< per sample
  std::int64_t inner = 1;
  std::int64_t columns = 1;
  /// The second operand is a weight that all samples share: a batch adds rows. Otherwise it adds products.
  bool weights = true;
  std::int64_t heads = 1;         ///< products per sample that are independent of one another
  std::int64_t steps = 1;         ///< times that it is computed, each after the other
  std::int64_t sample_parts = 1;  ///< ranks that share out a batch, where it is part of a layer: each has some samples

  [[nodiscard]] double flops() const;  ///< per sample, all heads and steps
};

/// The work of a layer. Its FLOPs are those of the convolution and the products and, where there is either,
/// `pointwise_flops`; a layer without them (a norm, an activation, a pool) only streams its activations.
struct Operation {
  std::optional<Convolution> convolution;
  std::vector<MatrixProduct> products;
  double pointwise_flops = 0.0;  ///< per sample: what a layer of products computes element by element between them
  double pointwise_bytes = 0.0;  ///< per sample: read and written by that (32-bit elements)
  std::int64_t key_heads = 0;    ///< of an attention: heads of keys and values, which groups of query heads share
  double key_value_bytes = 0.0;  ///< per sample: keys and values that all queries of an attention read, likewise
  /// The backward pass begins with the first product again (fused attention, which does not keep the scores).
  bool first_product_again = false;
  bool causal = false;        ///< of an attention: products leave out the keys after each query
  bool data_gradient = true;  ///< false for a layer that reads only the sample: nobody asks for its gradient

  [[nodiscard]] bool has_products() const { return convolution || !products.empty(); }
  /// Per sample, forward.
  [[nodiscard]] double flops() const;
};

}  // namespace simsync
