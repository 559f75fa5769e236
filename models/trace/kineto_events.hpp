// The events of a Kineto trace that matter here, without their arguments.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace simsync::detail {

/// Microseconds on the clock of the trace.
struct KinetoRange {
  double begin = 0.0;
  double end = 0.0;
  std::string name;
  int thread = 0;  ///< numbered by first occurrence
};

/// An operator on the host.
struct KinetoOp : KinetoRange {
  std::int64_t sequence = -1;  ///< of the autograd node that it makes or evaluates
  std::size_t top = 0;         ///< index of the outermost operator around it, or of itself
  /// Of an operator that accumulates a gradient: elements of four bytes; see `has_shape`.
  std::vector<std::int64_t> shape;
  bool has_shape = false;
  bool undefined = false;  ///< it accumulates nothing: its function gave no gradient
};

/// What ran on the device.
struct KinetoKernel : KinetoRange {
  std::int64_t correlation = -1;
  bool host_copy = false;  ///< from or to the host
  bool collective = false;
  double bytes = 0.0;  ///< payload of a collective; 0 when not told
};

/// A collective as the host saw it.
struct KinetoCollective : KinetoRange {
  double bytes = 0.0;  ///< payload; 0 when not told
};

struct KinetoEvents {
  std::vector<KinetoOp> ops;  ///< by begin; an operator comes before those inside it
  std::vector<KinetoKernel> kernels;
  std::unordered_map<std::int64_t, KinetoRange> launches;  ///< calls of the driver by correlation
  std::vector<KinetoRange> steps;                          ///< ProfilerStep#n, by begin
  std::vector<KinetoRange> optimizers;                     ///< Optimizer.step, Optimizer.zero_grad
  std::vector<KinetoRange> loaders;                        ///< enumerate(DataLoader)
  std::vector<KinetoRange> modules;                        ///< calls of modules: Conv2d_0
  /// Collectives of the back end (`gloo:all_reduce`), and operators that hand them over, which tell their bytes.
  std::vector<KinetoCollective> collectives;
  std::string device;
  /// Events as PyTorch's older profiler writes them (export_chrome_trace without Kineto): no categories, no arguments.
  std::size_t without_arguments = 0;
};

/// Reads the file. @throws InputError when it is not the JSON of a profiler.
KinetoEvents load_kineto_events(const std::string& path);

/// Whether the operator evaluates a node of the backward pass.
bool is_backward(const KinetoOp& op);

}  // namespace simsync::detail
