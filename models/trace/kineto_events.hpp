// The events of a Kineto trace that matter here, without their arguments.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace simsync::detail {

/// Microseconds on the clock of the trace.
struct KinetoRange {
  double begin = 0.0;
  double end = 0.0;
  std::string_view name;  ///< a text of KinetoEvents::names
  int thread = 0;         ///< numbered by first occurrence
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
  /// Every name once, cut after kLongestName bytes: traces repeat few names many times.
  std::unique_ptr<std::unordered_set<std::string>> names = std::make_unique<std::unordered_set<std::string>>();
  std::vector<KinetoOp> ops;  ///< by begin; an operator comes before those inside it
  std::vector<KinetoKernel> kernels;
  std::unordered_map<std::int64_t, KinetoRange> launches;  ///< calls of the driver by correlation
  std::vector<KinetoRange> steps;       ///< ProfilerStep#n, by begin; none begins before the last one ended
  std::vector<KinetoRange> optimizers;  ///< Optimizer.step, Optimizer.zero_grad
  std::vector<KinetoRange> loaders;     ///< enumerate(DataLoader)
  std::vector<KinetoRange> modules;     ///< calls of modules: Conv2d_0
  /// Collectives of the back end (`gloo:all_reduce`), and operators that hand them over, which tell their bytes; by
  /// begin.
  std::vector<KinetoCollective> collectives;
  std::string device;
  /// Events as PyTorch's older profiler writes them (export_chrome_trace without Kineto): no categories, no arguments.
  std::size_t without_arguments = 0;
};

/// Bytes of a name that are kept.
inline constexpr std::size_t kLongestName = 256;

/// Reads the file; tells `progress` the share of it that is read. @throws InputError when it is not the JSON of a
/// profiler, or when its events need more memory than kMostHeld (kineto_events.cpp).
KinetoEvents load_kineto_events(const std::string& path, const std::function<void(double)>& progress);

/// Those of `ranges`, which are sorted by begin, that begin in [begin, end): the first of them, and one past the last.
template <class Range>
std::pair<std::size_t, std::size_t> begun_within(const std::vector<Range>& ranges, double begin, double end) {
  const auto first_from = [&](double time) {
    const auto before = [](const Range& range, double value) { return range.begin < value; };
    return static_cast<std::size_t>(std::lower_bound(ranges.begin(), ranges.end(), time, before) - ranges.begin());
  };
  return {first_from(begin), first_from(end)};
}

/// Whether the operator adds a gradient to those of its variable.
bool accumulates(const KinetoOp& op);
/// Whether the operator evaluates a node of the backward pass.
bool is_backward(const KinetoOp& op);

}  // namespace simsync::detail
