#include "sim/problem/least_bytes.hpp"

#include "strategies/sbp/linear_layer.hpp"

namespace simsync {

double least_elements_sent(const Model& model, int ranks, std::int64_t samples) {
  double elements = 0.0;
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    const Layer& layer = model.layer(id);
    if (layer.kind != LayerKind::Dense || layer.dense_rows <= 0.0) continue;
    for (const MatrixProduct& product : layer.operation.products) {
      const LinearLayer linear{.m = samples * product.rows, .k = product.inner, .n = product.columns};
      elements += elements_sent(linear, best_grid(linear, ranks));
    }
  }
  return elements;
}

}  // namespace simsync
