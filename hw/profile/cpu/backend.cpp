// oneDNN: convolutions in the blocked layouts that it prefers, products in row-major order.
#include "hw/profile/backend.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <oneapi/dnnl/dnnl.hpp>
#include <thread>
#include <unordered_map>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "hw/profile/available_memory.hpp"
#include "hw/profile/buffer_pool.hpp"

namespace simsync {
namespace {

using dnnl::memory;
using Clock = std::chrono::steady_clock;
using Arguments = std::unordered_map<int, memory>;

constexpr std::size_t kPoolBytes = std::size_t{1} << 30;

/// The kernel promises more memory than there is, and ends who uses it. @throws CapabilityError
void expect_memory(std::size_t size) {
  constexpr double kShare = 0.9;  // the rest is for what oneDNN needs besides operands
  const auto available = static_cast<double>(available_memory().count);
  if (static_cast<double>(size) <= kShare * available) return;
  throw CapabilityError(
      fmt::format("an operand of a layer takes {}, this machine has {} of memory left: a smaller "
                  "--batch needs less",
                  format_bytes(static_cast<double>(size)), format_bytes(available)));
}

/// Pages that were written once, so that each has memory of its own. 0x3c3c is a small number in 16 and 32 bits.
BufferPool::Buffer allocate(std::size_t size) {
  constexpr std::size_t kLine = 64;
  constexpr int kFill = 0x3c;
  expect_memory(size);
  void* data = std::aligned_alloc(kLine, (size + kLine - 1) / kLine * kLine);
  if (data == nullptr) throw std::bad_alloc();
  std::memset(data, kFill, size);
  return {data, &std::free};
}

/// The processor's name as the kernel gives it.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "cpu";
}

/// @throws CapabilityError when oneDNN has no such primitive, for bf16 on an older processor for example.
template <class Make>
std::unique_ptr<Kernel> offered(const char* what, const Make& make) {
  try {
    return make();
  } catch (const dnnl::error& error) {
    throw CapabilityError(fmt::format("oneDNN cannot run {} here: {}", what, error.message));
  }
}

class PrimitiveKernel final : public Kernel {
public:
  PrimitiveKernel(dnnl::primitive primitive, Arguments arguments, dnnl::stream stream)
      : primitive_(std::move(primitive)), arguments_(std::move(arguments)), stream_(std::move(stream)) {}
  void launch() override { primitive_.execute(stream_, arguments_); }

private:
  dnnl::primitive primitive_;
  Arguments arguments_;
  dnnl::stream stream_;
};

/// Shapes of a convolution in oneDNN's terms.
struct ConvolutionShapes {
  memory::dims source;
  memory::dims weights;
  memory::dims target;
  memory::dims strides;
  memory::dims padding;
};

ConvolutionShapes shapes_of(const Convolution& c, std::int64_t batch) {
  const std::int64_t in = c.in_channels / c.groups;
  memory::dims weights{c.out_channels, in, c.height.kernel, c.width.kernel};
  if (c.groups > 1) weights = {c.groups, c.out_channels / c.groups, in, c.height.kernel, c.width.kernel};
  return {.source = {batch, c.in_channels, c.height.size, c.width.size},
          .weights = weights,
          .target = {batch, c.out_channels, c.height.positions, c.width.positions},
          .strides = {c.height.stride, c.width.stride},
          .padding = {c.height.padding, c.width.padding}};
}

class CpuBackend final : public Backend {
public:
  explicit CpuBackend(memory::data_type type) : type_(type), pool_(kPoolBytes, allocate) {}

  [[nodiscard]] DeviceDescription device() const override {
    const dnnl_version_t* version = dnnl_version();
    return {processor_name(), fmt::format("oneDNN {}.{}.{}, {} threads", version->major, version->minor, version->patch,
                                          std::thread::hardware_concurrency())};
  }

  [[nodiscard]] std::int64_t element_bytes() const override { return type_ == memory::data_type::f32 ? 4 : 2; }

  std::unique_ptr<Kernel> convolution(const Convolution& geometry, std::int64_t batch, ConvolutionPass pass) override {
    return offered("a convolution", [&] { return make_convolution(shapes_of(geometry, batch), pass); });
  }

  std::unique_ptr<Kernel> gemm(const Gemm& g) override {
    const auto matrix = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
      const memory::dims strides =
          transposed ? memory::dims{rows * columns, 1, rows} : memory::dims{rows * columns, columns, 1};
      memory::dims sizes{g.count, rows, columns};
      if (g.count > 1) return memory::desc(sizes, type_, strides);
      return memory::desc({rows, columns}, type_, memory::dims{strides[1], strides[2]});
    };
    const memory::desc a = matrix(g.m, g.k, g.transpose_a);
    const memory::desc b = matrix(g.k, g.n, g.transpose_b);
    const memory::desc c = matrix(g.m, g.n, false);
    return offered("a matrix product", [&] {
      const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), engine_);
      return kernel(dnnl::matmul(description), {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    });
  }

  /// max(x, 0) reads each element once and writes it once.
  std::unique_ptr<Kernel> stream(Bytes size) override {
    constexpr std::int64_t kPerElement = 8;
    const memory::desc vector({std::max<std::int64_t>(size.count / kPerElement, 1)}, memory::data_type::f32,
                              memory::format_tag::a);
    const dnnl::eltwise_forward::desc relu(dnnl::prop_kind::forward_training, dnnl::algorithm::eltwise_relu, vector,
                                           0.0F);
    const dnnl::eltwise_forward::primitive_desc description(relu, engine_);
    return kernel(dnnl::eltwise_forward(description), {{DNNL_ARG_SRC, vector}, {DNNL_ARG_DST, vector}});
  }

  std::vector<Seconds> run(const std::vector<const Stage*>& stages) override {
    std::vector<Clock::time_point> stamps{Clock::now()};
    for (const Stage* stage : stages) {
      launch(*stage);
      stamps.push_back(Clock::now());
    }
    std::vector<Seconds> times;
    for (std::size_t i = 1; i < stamps.size(); ++i) times.push_back(between(stamps[i - 1], stamps[i]));
    return times;
  }

  Seconds run_whole(const std::vector<const Stage*>& stages) override {
    const auto start = Clock::now();
    for (const Stage* stage : stages) launch(*stage);
    return between(start, Clock::now());
  }

private:
  static Seconds between(Clock::time_point start, Clock::time_point end) {
    return Seconds{std::chrono::duration<double>(end - start).count()};
  }

  void launch(const Stage& stage) {
    for (const auto& [kernel, times] : stage.kernels) {
      for (std::int64_t i = 0; i < times; ++i) kernel->launch();
    }
    stream_.wait();
  }

  [[nodiscard]] memory::desc any(const memory::dims& sizes) const { return {sizes, type_, memory::format_tag::any}; }

  [[nodiscard]] dnnl::convolution_forward::primitive_desc forward_of(const ConvolutionShapes& s) const {
    return {
        dnnl::convolution_forward::desc(dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct,
                                        any(s.source), any(s.weights), any(s.target), s.strides, s.padding, s.padding),
        engine_};
  }

  std::unique_ptr<Kernel> make_convolution(const ConvolutionShapes& shapes, ConvolutionPass pass) {
    const auto forward = forward_of(shapes);
    switch (pass) {
      case ConvolutionPass::Forward:
        return kernel(dnnl::convolution_forward(forward), {{DNNL_ARG_SRC, forward.src_desc()},
                                                           {DNNL_ARG_WEIGHTS, forward.weights_desc()},
                                                           {DNNL_ARG_DST, forward.dst_desc()}});
      case ConvolutionPass::WeightGradient:
        return weight_gradient(shapes, forward);
      case ConvolutionPass::DataGradient:
        return data_gradient(shapes, forward);
    }
    throw std::logic_error("unknown pass of a convolution");
  }

  std::unique_ptr<Kernel> weight_gradient(const ConvolutionShapes& s,
                                          const dnnl::convolution_forward::primitive_desc& forward) {
    const dnnl::convolution_backward_weights::primitive_desc description(
        dnnl::convolution_backward_weights::desc(dnnl::algorithm::convolution_direct, any(s.source), any(s.weights),
                                                 any(s.target), s.strides, s.padding, s.padding),
        engine_, forward);
    return kernel(dnnl::convolution_backward_weights(description),
                  {{DNNL_ARG_SRC, description.src_desc()},
                   {DNNL_ARG_DIFF_DST, description.diff_dst_desc()},
                   {DNNL_ARG_DIFF_WEIGHTS, description.diff_weights_desc()}});
  }

  std::unique_ptr<Kernel> data_gradient(const ConvolutionShapes& s,
                                        const dnnl::convolution_forward::primitive_desc& forward) {
    const dnnl::convolution_backward_data::primitive_desc description(
        dnnl::convolution_backward_data::desc(dnnl::algorithm::convolution_direct, any(s.source), any(s.weights),
                                              any(s.target), s.strides, s.padding, s.padding),
        engine_, forward);
    return kernel(dnnl::convolution_backward_data(description), {{DNNL_ARG_DIFF_DST, description.diff_dst_desc()},
                                                                 {DNNL_ARG_WEIGHTS, description.weights_desc()},
                                                                 {DNNL_ARG_DIFF_SRC, description.diff_src_desc()}});
  }

  std::unique_ptr<Kernel> kernel(dnnl::primitive primitive, const std::vector<std::pair<int, memory::desc>>& operands) {
    std::vector<std::size_t> sizes;
    for (const auto& [role, description] : operands) sizes.push_back(description.get_size());
    const auto buffers = pool_.take(sizes);
    Arguments arguments;
    for (std::size_t i = 0; i < operands.size(); ++i)
      arguments.emplace(operands[i].first, memory(operands[i].second, engine_, buffers[i]));
    return std::make_unique<PrimitiveKernel>(std::move(primitive), std::move(arguments), stream_);
  }

  memory::data_type type_;
  BufferPool pool_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const std::string& precision) {
  if (precision == "fp32") return std::make_unique<CpuBackend>(memory::data_type::f32);
  if (precision == "bf16") return std::make_unique<CpuBackend>(memory::data_type::bf16);
  throw CapabilityError(
      fmt::format("oneDNN does not train at precision {} on a CPU: expected fp32 or bf16", precision));
}

}  // namespace simsync
