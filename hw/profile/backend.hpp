// A device that runs products, convolutions and streams, and says how long they took.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "models/operation.hpp"

namespace simsync {

/// C[m, n] = A[m, k] B[k, n], row by row in memory; `count` independent products lie one behind the other.
struct Gemm {
  std::int64_t count = 1;
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  bool transpose_a = false;  ///< A is stored as [k, m]
  bool transpose_b = false;  ///< B is stored as [n, k]
};

enum class ConvolutionPass { Forward, WeightGradient, DataGradient };

/// One prepared piece of work with operands of its own.
class Kernel {
public:
  virtual ~Kernel() = default;
  /// Starts the work; it may still run on return.
  virtual void launch() = 0;
};

/// Kernels that run one after another: one pass of a layer.
struct Stage {
  std::vector<std::pair<std::unique_ptr<Kernel>, std::int64_t>> kernels;  ///< with how often each one runs
};

/// What the numbers were measured with.
struct DeviceDescription {
  std::string name;       ///< as the device says: `NVIDIA H200`
  std::string framework;  ///< libraries with versions, and threads
};

/// Copies of large page-locked buffers, one at a time.
struct HostBandwidth {
  BytesPerSecond to_device;
  BytesPerSecond to_host;
};

/// Timed work on one device at one precision.
///
/// Operands hold one finite value everywhere and come from a pool that is larger than the caches, so that a kernel
/// finds its inputs as cold as in a training step. Kernels must not outlive their backend.
class Backend {
public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual DeviceDescription device() const = 0;
  /// Bytes of an element of a matrix or an activation.
  [[nodiscard]] virtual std::int64_t element_bytes() const = 0;

  // @throws CapabilityError when the device cannot do it at this precision.
  virtual std::unique_ptr<Kernel> convolution(const Convolution& geometry, std::int64_t batch,
                                              ConvolutionPass pass) = 0;
  virtual std::unique_ptr<Kernel> gemm(const Gemm& gemm) = 0;
  /// Reads half of `size` and writes the other half.
  virtual std::unique_ptr<Kernel> stream(Bytes size) = 0;

  /// Runs the stages one after another and takes the time at the end of each.
  virtual std::vector<Seconds> run(const std::vector<const Stage*>& stages) = 0;
  /// Runs the stages one after another and takes the time of all.
  virtual Seconds run_whole(const std::vector<const Stage*>& stages) = 0;
  /// Between host and device; none where they are the same.
  virtual std::optional<HostBandwidth> host_bandwidth() { return std::nullopt; }
};

/// oneDNN on this machine's processor: fp32 or bf16. @throws CapabilityError for another precision or when this build
/// has no oneDNN.
std::unique_ptr<Backend> make_cpu_backend(const std::string& precision);
/// cuDNN and cuBLASLt on GPU `device` (`cuda:0`): fp32, tf32, fp16 or bf16. @throws CapabilityError for another
/// precision, when this build has no CUDA or when this machine has no such GPU; InputError for another text.
std::unique_ptr<Backend> make_cuda_backend(const std::string& device, const std::string& precision);
/// `cpu` or a GPU. @throws as above, and InputError for any other text.
std::unique_ptr<Backend> make_backend(const std::string& device, const std::string& precision);

}  // namespace simsync
