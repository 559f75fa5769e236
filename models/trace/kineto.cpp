// From the events of a Kineto trace to a trace of ours.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "models/layer_times.hpp"
#include "models/trace/importers.hpp"
#include "models/trace/kineto_collectives.hpp"
#include "models/trace/kineto_events.hpp"
#include "models/trace/kineto_names.hpp"
#include "models/trace/kineto_steps.hpp"
#include "models/trace/range_index.hpp"

namespace simsync {
namespace {

using detail::accumulates;
using detail::begun_within;
using detail::is_backward;
using detail::KinetoEvents;
using detail::KinetoGradient;
using detail::KinetoKernel;
using detail::KinetoOp;
using detail::KinetoRange;

constexpr double kMicrosecond = 1e-6;
constexpr std::int64_t kElementBytes = 4;
constexpr const char* kAccumulate = "torch::autograd::AccumulateGrad";
constexpr const char* kBackward = "backward ";
/// Of a step: a model file of more variables is larger than any that is read.
constexpr std::size_t kMostGradients = 100'000;
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// A kernel by the call that launched it.
struct Launch {
  double begin = 0.0;  ///< of the call
  int thread = 0;
  std::size_t kernel = 0;
};

/// Compute of a step, and when the host began it.
struct Work {
  double launched = 0.0;
  double begin = 0.0;
  double end = 0.0;
  bool backward = false;
};

/// Time of all steps that is no work of their layers, in microseconds.
struct LeftOut {
  double loader = 0.0;
  double collectives = 0.0;
  double collective_bytes = 0.0;
  std::size_t collective_count = 0;
  double copies = 0.0;
  std::size_t undefined = 0;  ///< variables whose functions gave no gradient
};

class KinetoImporter {
public:
  KinetoImporter(std::string path, KinetoEvents events) : path_(std::move(path)), events_(std::move(events)) {}
  ImportedTrace import();

private:
  [[noreturn]] void lacks(const std::string& what, const std::string& help) const {
    throw InputError(fmt::format("{} {}", path_, what), help);
  }
  void check() const;
  void link();
  void link_launches();
  [[nodiscard]] std::size_t forward_of(const KinetoOp& owner) const;
  [[nodiscard]] std::vector<KinetoGradient> gradients(const KinetoRange& step);
  [[nodiscard]] bool is_left_out(int thread, double begin, double duration);
  void leave_out_collectives(const KinetoRange& step);
  [[nodiscard]] std::optional<double> unmarked_optimizer(const KinetoRange& step,
                                                         const std::vector<KinetoGradient>& gradients) const;
  [[nodiscard]] std::vector<Work> work(const KinetoRange& step);
  void add_kernel(std::vector<Work>& out, const Launch& launch);
  [[nodiscard]] const KinetoOp* outermost_at(const Launch& launch) const;
  [[nodiscard]] TraceOp message(TraceOpKind kind, const KinetoGradient& gradient, Seconds at) const;
  [[nodiscard]] TraceStep step_of(const KinetoRange& range, const std::vector<KinetoGradient>& gradients,
                                  const std::vector<Work>& work) const;
  void add_step(int number, const KinetoRange& range);
  [[nodiscard]] std::string collectives_text(std::size_t steps) const;
  void add_notes(std::size_t steps);

  std::string path_;
  KinetoEvents events_;
  std::vector<std::size_t> owners_;  ///< by operator that accumulates: the backward operator before it on its thread
  std::vector<std::pair<std::int64_t, std::size_t>> forwards_;   ///< nodes, and the operators that make them; sorted
  std::unordered_map<int, std::vector<std::size_t>> outermost_;  ///< operators by thread, by begin
  std::vector<Launch> launches_;                                 ///< by begin
  detail::RangeIndex modules_{events_.modules};
  detail::RangeIndex optimizers_{events_.optimizers};
  detail::RangeIndex loaders_{events_.loaders};
  std::vector<double> optimizer_steps_;  ///< their begins, sorted
  LeftOut left_out_;
  double optimizer_ = 0.0;                 ///< time of the optimizer in the step at hand, in microseconds
  std::optional<double> optimizer_begin_;  ///< where the step marks none: what the host begins from here on
  bool any_unmarked_ = false;
  std::vector<Seconds> updates_;  ///< by step
  ImportedTrace out_;
};

void KinetoImporter::check() const {
  if (events_.ops.empty() && events_.without_arguments > 0)
    lacks(
        "comes from export_chrome_trace() of PyTorch's older profiler (a PyTorch without Kineto, such as Debian's "
        "python3-torch): it has neither the shapes of operators nor which backward function belongs to which of them",
        "write the events of that profiler with models/trace/export_torch.py, or record with a PyTorch that has "
        "Kineto");
  if (events_.ops.empty())
    lacks("has no operators (events of category cpu_op)", "record with activities=[ProfilerActivity.CPU, ...]");
  bool backward = false;
  for (const KinetoOp& op : events_.ops) {
    if (!accumulates(op)) continue;
    backward = true;
    if (!op.has_shape && !op.undefined)
      lacks("has no shapes: nothing tells how large its gradients are",
            "record with torch.profiler.profile(record_shapes=True)");
  }
  if (!backward)
    lacks("has no backward pass: no gradient is accumulated (torch::autograd::AccumulateGrad)",
          "record whole training steps");
}

/// Who made which node, and which function's gradients are accumulated where.
void KinetoImporter::link() {
  owners_.assign(events_.ops.size(), kNone);
  std::unordered_map<int, std::size_t> last;
  for (std::size_t i = 0; i < events_.ops.size(); ++i) {
    const KinetoOp& op = events_.ops[i];
    if (op.top == i) outermost_[op.thread].push_back(i);
    if (accumulates(op)) {
      const auto found = last.find(op.thread);
      if (found != last.end()) owners_[i] = found->second;
    } else if (is_backward(op) && !op.name.ends_with(kAccumulate)) {
      last[op.thread] = i;
    }
    if (op.sequence >= 0 && !is_backward(events_.ops[op.top])) forwards_.emplace_back(op.sequence, i);
  }
  std::sort(forwards_.begin(), forwards_.end());
  for (const KinetoRange& range : detail::optimizer_steps(events_)) optimizer_steps_.push_back(range.begin);
  std::sort(optimizer_steps_.begin(), optimizer_steps_.end());
  link_launches();
}

void KinetoImporter::link_launches() {
  for (std::size_t i = 0; i < events_.kernels.size(); ++i) {
    const auto host = events_.launches.find(events_.kernels[i].correlation);
    if (host != events_.launches.end()) launches_.push_back({host->second.begin, host->second.thread, i});
  }
  std::stable_sort(launches_.begin(), launches_.end(),
                   [](const Launch& a, const Launch& b) { return a.begin < b.begin; });
}

/// The outermost operator around the last one before `owner` that counted up to its node.
std::size_t KinetoImporter::forward_of(const KinetoOp& owner) const {
  const auto before = begun_within(events_.ops, owner.begin, owner.begin).first;
  const auto next = std::lower_bound(forwards_.begin(), forwards_.end(), std::pair{owner.sequence, before});
  if (next == forwards_.begin() || std::prev(next)->first != owner.sequence) return kNone;
  return events_.ops[std::prev(next)->second].top;
}

std::vector<KinetoGradient> KinetoImporter::gradients(const KinetoRange& step) {
  std::vector<KinetoGradient> found;
  const auto [first, last] = begun_within(events_.ops, step.begin, step.end);
  for (std::size_t i = first; i < last; ++i) {
    const KinetoOp& op = events_.ops[i];
    if (!accumulates(op)) continue;
    if (op.undefined) {
      ++left_out_.undefined;
      continue;
    }
    const std::size_t forward = owners_[i] == kNone ? kNone : forward_of(events_.ops[owners_[i]]);
    if (forward == kNone || events_.ops[forward].begin < step.begin)
      lacks(fmt::format("does not tell the forward operator of a gradient of shape [{}] in {}",
                        fmt::join(op.shape, ", "), step.name),
            "record whole steps: the 'Sequence number' of a backward function is that of its forward operator");
    if (found.size() == kMostGradients)
      lacks(fmt::format("accumulates more than {} gradients in {}", kMostGradients, step.name),
            "record steps of one model");
    found.push_back({i, forward, {}});
  }
  return found;
}

const KinetoOp* KinetoImporter::outermost_at(const Launch& launch) const {
  const auto found = outermost_.find(launch.thread);
  if (found == outermost_.end()) return nullptr;
  const auto& tops = found->second;
  const auto after = std::upper_bound(tops.begin(), tops.end(), launch.begin,
                                      [&](double time, std::size_t i) { return time < events_.ops[i].begin; });
  if (after == tops.begin()) return nullptr;
  const KinetoOp& op = events_.ops[*(after - 1)];
  return launch.begin < op.end ? &op : nullptr;
}

/// Whether the host began it within an optimizer or a data loader, whose time is noted then.
bool KinetoImporter::is_left_out(int thread, double begin, double duration) {
  const bool after_gradients = optimizer_begin_ && begin >= *optimizer_begin_;
  if (after_gradients || optimizers_.around(thread, begin) != nullptr) {
    optimizer_ += duration;
    return true;
  }
  if (loaders_.around(thread, begin) == nullptr) return false;
  left_out_.loader += duration;
  return true;
}

void KinetoImporter::add_kernel(std::vector<Work>& out, const Launch& launch) {
  const KinetoKernel& kernel = events_.kernels[launch.kernel];
  const double duration = kernel.end - kernel.begin;
  if (kernel.collective) {
    left_out_.collectives += duration;
    left_out_.collective_bytes += kernel.bytes;
    ++left_out_.collective_count;
  } else if (kernel.host_copy) {
    left_out_.copies += duration;
  } else if (!is_left_out(launch.thread, launch.begin, duration)) {
    const KinetoOp* op = outermost_at(launch);
    out.push_back({launch.begin, kernel.begin, kernel.end, op != nullptr && is_backward(*op)});
  }
}

/// Collectives that no kernel tells of: without a device they are ranges of the back end (Gloo). Where kernels do not
/// tell their bytes, the operators that handed them over may.
void KinetoImporter::leave_out_collectives(const KinetoRange& step) {
  const bool untold = left_out_.collective_bytes <= 0.0;
  const auto [first, last] = begun_within(events_.collectives, step.begin, step.end);
  for (std::size_t i = first; i < last; ++i) {
    const detail::KinetoCollective& call = events_.collectives[i];
    const bool range = detail::is_collective_range(call.name);
    if (events_.kernels.empty() && range) {
      left_out_.collectives += call.end - call.begin;
      left_out_.collective_bytes += call.bytes;
      ++left_out_.collective_count;
    } else if (!events_.kernels.empty() && untold && call.name == "record_param_comms") {
      left_out_.collective_bytes += call.bytes;
    }
  }
}

/// The end of the last gradient in a step that marks no optimizer.
std::optional<double> KinetoImporter::unmarked_optimizer(const KinetoRange& step,
                                                         const std::vector<KinetoGradient>& gradients) const {
  const auto next = std::lower_bound(optimizer_steps_.begin(), optimizer_steps_.end(), step.begin);
  if (next != optimizer_steps_.end() && *next < step.end) return std::nullopt;
  double last = step.begin;
  for (const KinetoGradient& gradient : gradients) last = std::max(last, events_.ops[gradient.op].end);
  return last;
}

/// What the worker computes for the operators that the host began in `step`, in the order in which it began them.
std::vector<Work> KinetoImporter::work(const KinetoRange& step) {
  std::vector<Work> out;
  const auto [launch, launched] = begun_within(launches_, step.begin, step.end);
  for (std::size_t i = launch; i < launched; ++i) add_kernel(out, launches_[i]);
  if (!events_.kernels.empty()) return out;
  const auto [first, last] = begun_within(events_.ops, step.begin, step.end);
  for (std::size_t i = first; i < last; ++i) {
    const KinetoOp& op = events_.ops[i];
    if (op.top != i || detail::is_collective_call(op.name)) continue;
    if (!is_left_out(op.thread, op.begin, op.end - op.begin))
      out.push_back({op.begin, op.begin, op.end, is_backward(op)});
  }
  return out;
}

/// A message of a variable: an instant, since the trace has none.
TraceOp KinetoImporter::message(TraceOpKind kind, const KinetoGradient& gradient, Seconds at) const {
  Bytes bytes{kElementBytes};
  for (const std::int64_t axis : events_.ops[gradient.op].shape) bytes.count *= axis;
  return {fmt::format("{} {}", name_of(kind), gradient.variable), kind, gradient.variable, bytes, at, at, {}};
}

/// Compute reads what the host has received when it began it; a send waits for the compute that the host began before.
TraceStep KinetoImporter::step_of(const KinetoRange& range, const std::vector<KinetoGradient>& gradients,
                                  const std::vector<Work>& work) const {
  const auto seconds = [&](double time) { return Seconds{(time - range.begin) * kMicrosecond}; };
  const auto position = [&](double time) {  // of the first work that the host began at `time` or later
    const auto at = std::lower_bound(work.begin(), work.end(), time,
                                     [](const Work& a, double value) { return a.launched < value; });
    return static_cast<std::size_t>(at - work.begin());
  };
  TraceStep step;
  step.ops.reserve(work.size() + 2 * gradients.size());
  for (std::size_t i = 0; i < work.size(); ++i) {
    // Without the name of the kernel: short texts are held in place, and there may be millions.
    std::string title = fmt::format("{}{}", work[i].backward ? kBackward : "forward ", i);
    step.ops.push_back(
        {std::move(title), TraceOpKind::Compute, {}, {}, seconds(work[i].begin), seconds(work[i].end), {}});
  }
  for (const KinetoGradient& gradient : gradients) {
    const double begin = events_.ops[gradient.forward].begin;
    const double end = events_.ops[gradient.op].end;
    TraceOp receive = message(TraceOpKind::Receive, gradient, seconds(begin));
    TraceOp send = message(TraceOpKind::Send, gradient, seconds(end));
    step.ops[std::min(position(begin), work.size() - 1)].after.push_back(receive.name);
    send.after.push_back(step.ops[std::max<std::size_t>(position(end), 1) - 1].name);
    step.ops.push_back(std::move(receive));
    step.ops.push_back(std::move(send));
  }
  return step;
}

void KinetoImporter::add_step(int number, const KinetoRange& range) {
  auto gradients = this->gradients(range);
  if (gradients.empty()) {
    out_.notes.push_back(fmt::format("left out: {}, which accumulates no gradient", range.name));
    return;
  }
  name_variables(gradients, events_.ops, modules_, out_.hints);
  optimizer_ = 0.0;
  optimizer_begin_ = unmarked_optimizer(range, gradients);
  const auto work = this->work(range);
  leave_out_collectives(range);
  any_unmarked_ = any_unmarked_ || (optimizer_begin_ && optimizer_ > 0.0);
  updates_.push_back(Seconds{optimizer_ * kMicrosecond});
  if (work.empty()) lacks(fmt::format("has no compute in {}", range.name), {});
  out_.trace.steps.push_back(step_of(range, gradients, work));
  out_.trace.steps.back().number = number;
  out_.wall.push_back(Seconds{(range.end - range.begin) * kMicrosecond});
}

std::string KinetoImporter::collectives_text(std::size_t steps) const {
  const double count = static_cast<double>(steps);
  const std::string bytes = left_out_.collective_bytes > 0.0
                                ? "with " + format_bytes(left_out_.collective_bytes / count)
                                : std::string("of untold size");
  return fmt::format("left out: collectives, {:.3g} {} and {} in a step",
                     static_cast<double>(left_out_.collective_count) / count, bytes,
                     format_seconds(Seconds{left_out_.collectives * kMicrosecond / count}));
}

void KinetoImporter::add_notes(std::size_t steps) {
  const double count = static_cast<double>(steps);
  if (any_unmarked_)
    out_.notes.emplace_back(
        "no optimizer is marked (Optimizer.step): what begins after the last gradient of a step counts as one");
  const auto note = [&](double time, const char* what) {
    if (time > 0.0)
      out_.notes.push_back(
          fmt::format("left out: {}, {} in a step", what, format_seconds(Seconds{time * kMicrosecond / count})));
  };
  note(left_out_.loader, "data loaders");
  if (left_out_.collective_count > 0) out_.notes.push_back(collectives_text(steps));
  note(left_out_.copies, "copies between host and device");
  if (left_out_.undefined > 0)
    out_.notes.push_back(
        fmt::format("left out: {} variables whose functions gave no gradient", left_out_.undefined / steps));
}

ImportedTrace KinetoImporter::import() {
  check();
  link();
  const auto ranges = steps_of(events_, out_.notes);
  int number = 0;
  for (const KinetoRange& range : ranges) add_step(++number, range);
  if (out_.trace.steps.empty()) lacks("accumulates no gradient in any of its steps", "record whole training steps");
  add_notes(out_.trace.steps.size());
  if (const Seconds update = median(updates_); update.value() > 0.0) out_.update = update;
  out_.hints.is_backward = [](const TraceOp& op) { return op.name.starts_with(kBackward); };
  out_.device = events_.kernels.empty() ? std::string{} : events_.device;
  return std::move(out_);
}

}  // namespace

ImportedTrace import_kineto(const std::string& path, const std::function<void(double)>& progress) {
  return KinetoImporter(path, detail::load_kineto_events(path, progress)).import();
}

}  // namespace simsync
