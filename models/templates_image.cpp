// Layers of convolutional networks; tensors are [channels, height, width].
#include <fmt/format.h>

#include "models/templates.hpp"

namespace simsync::detail {
namespace {

const char* const kImageAxes = "[channels, height, width]";

/// How a window slides over one axis.
struct Window {
  Pair kernel;
  Pair stride;
  Pair padding;
};

Window read_window(Statement& s, std::optional<Pair> default_stride) {
  Window window;
  window.kernel = s.pair("kernel", 1);
  window.stride = s.pair("stride", 1, default_stride.value_or(window.kernel));
  window.padding = s.pair("padding", 0, Pair{0, 0});
  return window;
}

/// Positions of the window: floor((size + 2 padding - kernel) / stride) + 1. Rounded up instead, the last window
/// must still start inside the image or its left padding (PyTorch's rule for ceil_mode).
std::int64_t positions(const Statement& s, std::int64_t size, std::int64_t kernel, std::int64_t stride,
                       std::int64_t padding, bool round_up) {
  const std::int64_t span = size + 2 * padding - kernel;
  if (span < 0) s.refuse(fmt::format("a kernel of {} does not fit into {} with padding {}", kernel, size, padding));
  if (!round_up) return span / stride + 1;
  const std::int64_t count = (span + stride - 1) / stride + 1;
  return (count - 1) * stride >= size + padding ? count - 1 : count;
}

Shape slide(const Statement& s, const Shape& image, const Window& w, bool round_up) {
  return {image[0], positions(s, image[1], w.kernel.height, w.stride.height, w.padding.height, round_up),
          positions(s, image[2], w.kernel.width, w.stride.width, w.padding.width, round_up)};
}

Convolution convolution_of(const Shape& in, const Shape& out, const Window& w, std::int64_t groups) {
  return {.in_channels = in[0],
          .out_channels = out[0],
          .groups = groups,
          .height = {in[1], w.kernel.height, w.stride.height, w.padding.height, out[1]},
          .width = {in[2], w.kernel.width, w.stride.width, w.padding.width, out[2]}};
}

double area(const Pair& kernel) {
  return static_cast<double>(kernel.height) * static_cast<double>(kernel.width);
}

Tensor conv(Statement& s) {
  const Tensor in = s.input();
  s.expect_axes(in, 3, kImageAxes);
  const std::string name = s.name();
  const std::int64_t out = s.integer("out");
  const Window window = read_window(s, Pair{1, 1});
  const std::int64_t groups = s.integer_or("groups", 1);
  const bool bias = s.flag_or("bias", true);
  s.close();
  if (in.shape[0] % groups != 0 || out % groups != 0)
    s.refuse(fmt::format("{} groups divide neither evenly {} input nor {} output channels", groups, in.shape[0], out));
  Shape output = slide(s, in.shape, window, false);
  output[0] = out;
  // Each output element is a sum over kernel area x input channels of its group.
  const std::int64_t depth = in.shape[0] / groups;
  const double taps = area(window.kernel) * static_cast<double>(depth);
  LayerSpec spec{
      .name = name, .kind = LayerKind::Conv, .output = output, .forward_flops = 2.0 * taps * count_of(output)};
  spec.operation.convolution = convolution_of(in.shape, output, window, groups);
  spec.variables.push_back({"weight", {out, depth, window.kernel.height, window.kernel.width}});
  if (bias) spec.variables.push_back({"bias", {out}});
  return s.emit(spec, {in});
}

Tensor batch_norm(Statement& s) {
  const Tensor in = s.input();
  const std::string name = s.name();
  s.close();
  const std::int64_t features = in.shape[feature_axis(in.shape)];
  // Per element: sum, sum of squares (2), subtract the mean, scale, shift; the running statistics are not trained.
  LayerSpec spec{.name = name, .kind = LayerKind::Norm, .output = in.shape, .forward_flops = 6.0 * count_of(in.shape)};
  spec.variables = {{"weight", {features}}, {"bias", {features}}};
  return s.emit(spec, {in});
}

Tensor pool(Statement& s) {
  const Tensor in = s.input();
  s.expect_axes(in, 3, kImageAxes);
  const std::string name = s.name();
  const Window window = read_window(s, std::nullopt);
  const bool round_up = s.flag_or("ceil", false);
  s.close();
  const Shape output = slide(s, in.shape, window, round_up);
  return s.emit({.name = name,
                 .kind = LayerKind::Pool,
                 .output = output,
                 .forward_flops = area(window.kernel) * count_of(output)},
                {in});
}

Tensor adaptive_pool(Statement& s) {
  const Tensor in = s.input();
  s.expect_axes(in, 3, kImageAxes);
  const std::string name = s.name();
  const Pair size = s.pair("out", 1);
  s.close();
  return s.emit({.name = name,
                 .kind = LayerKind::Pool,
                 .output = {in.shape[0], size.height, size.width},
                 .forward_flops = count_of(in.shape)},
                {in});
}

}  // namespace

const std::vector<NamedTemplate>& image_templates() {
  static const std::vector<NamedTemplate> kTemplates{{"conv", conv},
                                                     {"batch_norm", batch_norm},
                                                     {"max_pool", pool},
                                                     {"avg_pool", pool},
                                                     {"adaptive_pool", adaptive_pool}};
  return kTemplates;
}

}  // namespace simsync::detail
