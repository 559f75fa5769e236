#include "hw/profile/stages.hpp"

#include <cmath>

#include "base/error.hpp"
#include "models/roofline.hpp"

namespace simsync {
namespace {

void add(Stage& stage, std::unique_ptr<Kernel> kernel, std::int64_t times = 1) {
  stage.kernels.emplace_back(std::move(kernel), times);
}

void add_stream(Stage& stage, double bytes, double kernels, Backend& backend) {
  const auto count = static_cast<std::int64_t>(kernels);
  const Bytes each{std::llround(bytes / kernels)};
  if (each.count > 0) add(stage, backend.stream(each), count);
}

void add_convolution(LayerStages& stages, const Operation& operation, std::int64_t batch, Backend& backend) {
  const Convolution& geometry = *operation.convolution;
  add(stages.forward, backend.convolution(geometry, batch, ConvolutionPass::Forward));
  add(stages.backward, backend.convolution(geometry, batch, ConvolutionPass::WeightGradient));
  if (operation.data_gradient)
    add(stages.backward, backend.convolution(geometry, batch, ConvolutionPass::DataGradient));
}

/// y = x W^T, dW = dy^T x, dx = dy W, with the samples as rows. The weight gradient sums over the steps at once.
void add_weight_product(LayerStages& stages, const MatrixProduct& p, bool data_gradient, std::int64_t batch,
                        Backend& backend) {
  const std::int64_t rows = p.rows * batch;
  add(stages.forward, backend.gemm({.m = rows, .n = p.columns, .k = p.inner, .transpose_b = true}), p.steps);
  add(stages.backward, backend.gemm({.m = p.columns, .n = p.inner, .k = rows * p.steps, .transpose_a = true}));
  if (data_gradient) add(stages.backward, backend.gemm({.m = rows, .n = p.inner, .k = p.columns}), p.steps);
}

/// C = A B, dB = A^T dC, dA = dC B^T, one product per sample and head.
void add_activation_product(LayerStages& stages, const MatrixProduct& p, std::int64_t batch, Backend& backend) {
  const std::int64_t count = p.heads * batch;
  add(stages.forward, backend.gemm({.count = count, .m = p.rows, .n = p.columns, .k = p.inner}), p.steps);
  add(stages.backward, backend.gemm({.count = count, .m = p.inner, .n = p.columns, .k = p.rows, .transpose_a = true}),
      p.steps);
  add(stages.backward, backend.gemm({.count = count, .m = p.rows, .n = p.inner, .k = p.columns, .transpose_b = true}),
      p.steps);
}

bool is_product(LayerKind kind) {
  return kind == LayerKind::Conv || kind == LayerKind::Dense || kind == LayerKind::Attention ||
         kind == LayerKind::Recurrent;
}

}  // namespace

bool has_kernels(const Layer& layer) {
  return !is_product(layer.kind) || layer.operation.has_products();
}

LayerStages make_stages(const Model& model, LayerId id, std::int64_t batch, Backend& backend) {
  const Layer& layer = model.layer(id);
  SIMSYNC_ASSERT(has_kernels(layer));
  const Operation& operation = layer.operation;
  LayerStages stages;
  if (!operation.has_products()) {
    const LayerTraffic traffic = layer_traffic(model, id, batch, static_cast<double>(backend.element_bytes()));
    add_stream(stages.forward, traffic.forward.bytes, traffic.forward.kernels, backend);
    add_stream(stages.backward, traffic.backward.bytes, traffic.backward.kernels, backend);
    return stages;
  }
  if (operation.convolution) add_convolution(stages, operation, batch, backend);
  for (const MatrixProduct& product : operation.products) {
    if (product.weights) {
      add_weight_product(stages, product, operation.data_gradient, batch, backend);
    } else {
      add_activation_product(stages, product, batch, backend);
    }
  }
  if (operation.first_product_again) {
    const MatrixProduct& first = operation.products.front();
    add(stages.backward,
        backend.gemm({.count = first.heads * batch, .m = first.rows, .n = first.columns, .k = first.inner}),
        first.steps);
  }
  const double between = operation.pointwise_bytes * static_cast<double>(batch * backend.element_bytes()) / 4.0;
  add_stream(stages.forward, between, 1.0, backend);
  add_stream(stages.backward, 2.0 * between, 1.0, backend);
  return stages;
}

}  // namespace simsync
