// From the events of a Kineto trace to a trace of ours.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "models/trace/importers.hpp"
#include "models/trace/kineto_events.hpp"

namespace simsync {
namespace {

using detail::is_backward;
using detail::KinetoEvents;
using detail::KinetoKernel;
using detail::KinetoOp;
using detail::KinetoRange;

constexpr double kMicrosecond = 1e-6;
constexpr std::int64_t kElementBytes = 4;
constexpr const char* kAccumulate = "torch::autograd::AccumulateGrad";
constexpr const char* kBackward = "backward ";
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// Compute of a step, and when the host began it.
struct Work {
  double launched = 0.0;
  KinetoRange range;
  bool backward = false;
};

/// A gradient: the operator that accumulates it, and the forward operator that read its variable.
struct Gradient {
  std::size_t op = 0;
  std::size_t forward = 0;
  std::string variable;
};

/// Time of a step that is no work of its layers.
struct LeftOut {
  double optimizer = 0.0;
  double loader = 0.0;
  double collectives = 0.0;
  double copies = 0.0;
};

LayerKind kind_of(const std::string& op) {
  static const std::array<std::pair<const char*, LayerKind>, 9> kKinds{{{"conv", LayerKind::Conv},
                                                                        {"norm", LayerKind::Norm},
                                                                        {"embedding", LayerKind::Embedding},
                                                                        {"attention", LayerKind::Attention},
                                                                        {"lstm", LayerKind::Recurrent},
                                                                        {"gru", LayerKind::Recurrent},
                                                                        {"linear", LayerKind::Dense},
                                                                        {"addmm", LayerKind::Dense},
                                                                        {"matmul", LayerKind::Dense}}};
  for (const auto& [part, kind] : kKinds) {
    if (op.find(part) != std::string::npos) return kind;
  }
  return LayerKind::Elementwise;
}

bool is_collective(const std::string& kernel) {
  return kernel.find("nccl") != std::string::npos || kernel.find("NCCL") != std::string::npos;
}

class KinetoImporter {
public:
  KinetoImporter(std::string path, KinetoEvents events) : path_(std::move(path)), events_(std::move(events)) {}
  ImportedTrace import();

private:
  [[noreturn]] void lacks(const std::string& what, const std::string& help) const {
    throw InputError(fmt::format("{} {}", path_, what), help);
  }
  void check() const;
  [[nodiscard]] std::vector<KinetoRange> steps();
  void link();
  [[nodiscard]] std::size_t forward_of(const KinetoOp& owner) const;
  [[nodiscard]] std::vector<Gradient> gradients(const KinetoRange& step);
  void name(std::vector<Gradient>& gradients);
  [[nodiscard]] bool is_left_out(const KinetoRange& host, double duration);
  [[nodiscard]] std::vector<Work> work(const KinetoRange& step);
  void add_kernel(std::vector<Work>& out, const KinetoKernel& kernel, const KinetoRange& host);
  [[nodiscard]] const KinetoOp* outermost_at(const KinetoRange& host) const;
  [[nodiscard]] TraceOp message(TraceOpKind kind, const Gradient& gradient, Seconds at) const;
  [[nodiscard]] TraceStep step_of(const KinetoRange& range, const std::vector<Gradient>& gradients,
                                  const std::vector<Work>& work) const;
  void add_step(int number, const KinetoRange& range);
  void add_notes(std::size_t steps);

  std::string path_;
  KinetoEvents events_;
  std::vector<std::size_t> owners_;  ///< by operator that accumulates: the backward operator before it on its thread
  std::unordered_map<std::int64_t, std::vector<std::size_t>> forwards_;  ///< operators by the node that they make
  std::unordered_map<int, std::vector<std::size_t>> outermost_;          ///< operators by thread, by begin
  LeftOut left_out_;
  std::size_t undefined_ = 0;
  ImportedTrace out_;
};

void KinetoImporter::check() const {
  if (events_.ops.empty())
    lacks("has no operators (events of category cpu_op)", "record with activities=[ProfilerActivity.CPU, ...]");
  bool backward = false;
  for (const KinetoOp& op : events_.ops) {
    if (op.name != kAccumulate) continue;
    backward = true;
    if (!op.has_shape && !op.undefined)
      lacks("has no shapes: nothing tells how large its gradients are",
            "record with torch.profiler.profile(record_shapes=True)");
  }
  if (!backward)
    lacks("has no backward pass: no gradient is accumulated (torch::autograd::AccumulateGrad)",
          "record whole training steps");
}

/// The marked steps; without marks the whole trace, if it is not of several steps.
std::vector<KinetoRange> KinetoImporter::steps() {
  if (!events_.steps.empty()) return events_.steps;
  const auto updates = std::count_if(events_.optimizers.begin(), events_.optimizers.end(),
                                     [](const KinetoRange& range) { return range.name.starts_with("Optimizer.step"); });
  if (updates > 1)
    lacks(fmt::format("marks no steps (ProfilerStep#n), and its optimizers step {} times", updates),
          "call step() of the profiler after every step");
  out_.notes.emplace_back("no steps are marked (ProfilerStep#n): the whole trace counts as one");
  KinetoRange whole = events_.ops.front();
  for (const KinetoOp& op : events_.ops) whole.end = std::max(whole.end, op.end);
  for (const KinetoKernel& kernel : events_.kernels) whole.end = std::max(whole.end, kernel.end);
  whole.end += 1.0;
  return {whole};
}

/// Who made which node, and which function's gradients are accumulated where.
void KinetoImporter::link() {
  owners_.assign(events_.ops.size(), kNone);
  std::unordered_map<int, std::size_t> last;
  for (std::size_t i = 0; i < events_.ops.size(); ++i) {
    const KinetoOp& op = events_.ops[i];
    if (op.top == i) outermost_[op.thread].push_back(i);
    if (op.name == kAccumulate) {
      const auto found = last.find(op.thread);
      if (found != last.end()) owners_[i] = found->second;
    } else if (is_backward(op) && !op.name.ends_with(kAccumulate)) {
      last[op.thread] = i;
    }
    if (op.sequence >= 0 && !is_backward(events_.ops[op.top])) forwards_[op.sequence].push_back(i);
  }
}

/// The outermost operator around the last one before `owner` that counted up to its node.
std::size_t KinetoImporter::forward_of(const KinetoOp& owner) const {
  const auto found = forwards_.find(owner.sequence);
  if (found == forwards_.end()) return kNone;
  std::size_t forward = kNone;
  for (const std::size_t i : found->second) {
    if (events_.ops[i].begin < owner.begin) forward = events_.ops[i].top;
  }
  return forward;
}

std::vector<Gradient> KinetoImporter::gradients(const KinetoRange& step) {
  std::vector<Gradient> found;
  for (std::size_t i = 0; i < events_.ops.size(); ++i) {
    const KinetoOp& op = events_.ops[i];
    if (op.name != kAccumulate || op.begin < step.begin || op.begin >= step.end) continue;
    if (op.undefined) {
      ++undefined_;
      continue;
    }
    const std::size_t forward = owners_[i] == kNone ? kNone : forward_of(events_.ops[owners_[i]]);
    if (forward == kNone || events_.ops[forward].begin < step.begin)
      lacks(fmt::format("does not tell the forward operator of a gradient of shape [{}] in {}",
                        fmt::join(op.shape, ", "), step.name),
            "record whole steps: the 'Sequence number' of a backward function is that of its forward operator");
    found.push_back({i, forward, {}});
  }
  return found;
}

/// Variables are called by the forward operator that reads them, counted in the order of the forward pass.
void KinetoImporter::name(std::vector<Gradient>& gradients) {
  std::map<std::size_t, std::vector<Gradient*>> by_forward;
  for (Gradient& gradient : gradients) by_forward[gradient.forward].push_back(&gradient);
  std::map<std::string, int> counts;
  for (auto& [forward, members] : by_forward) {
    std::string op = events_.ops[forward].name;
    if (op.starts_with("aten::")) op = op.substr(6);
    const std::string folder = fmt::format("{}.{}", op, counts[op]++);
    // Of two variables the weight has the most axes.
    std::stable_sort(members.begin(), members.end(), [&](const Gradient* a, const Gradient* b) {
      return events_.ops[a->op].shape.size() > events_.ops[b->op].shape.size();
    });
    for (std::size_t i = 0; i < members.size(); ++i) {
      const char* part = i == 0 ? "weight" : "bias";
      members[i]->variable =
          members.size() <= 2 ? fmt::format("{}/{}", folder, part) : fmt::format("{}/parameter{}", folder, i);
      auto& hint = out_.hints.variables[members[i]->variable];
      hint = {events_.ops[members[i]->op].shape, kind_of(op)};
    }
  }
}

const KinetoOp* KinetoImporter::outermost_at(const KinetoRange& host) const {
  const auto found = outermost_.find(host.thread);
  if (found == outermost_.end()) return nullptr;
  const auto& tops = found->second;
  const auto after = std::upper_bound(tops.begin(), tops.end(), host.begin,
                                      [&](double time, std::size_t i) { return time < events_.ops[i].begin; });
  if (after == tops.begin()) return nullptr;
  const KinetoOp& op = events_.ops[*(after - 1)];
  return host.begin < op.end ? &op : nullptr;
}

/// Whether the host began it within an optimizer or a data loader, whose time is noted then.
bool KinetoImporter::is_left_out(const KinetoRange& host, double duration) {
  const auto within = [&](const std::vector<KinetoRange>& ranges) {
    return std::any_of(ranges.begin(), ranges.end(), [&](const KinetoRange& range) {
      return range.thread == host.thread && host.begin >= range.begin && host.begin < range.end;
    });
  };
  if (within(events_.optimizers)) {
    left_out_.optimizer += duration;
    return true;
  }
  if (!within(events_.loaders)) return false;
  left_out_.loader += duration;
  return true;
}

void KinetoImporter::add_kernel(std::vector<Work>& out, const KinetoKernel& kernel, const KinetoRange& host) {
  const double duration = kernel.end - kernel.begin;
  if (is_collective(kernel.name)) {
    left_out_.collectives += duration;
  } else if (kernel.host_copy) {
    left_out_.copies += duration;
  } else if (!is_left_out(host, duration)) {
    const KinetoOp* op = outermost_at(host);
    out.push_back({host.begin, kernel, op != nullptr && is_backward(*op)});
  }
}

/// What the worker computes for the operators that the host began in `step`, in the order in which it began them.
std::vector<Work> KinetoImporter::work(const KinetoRange& step) {
  const auto begun = [&](const KinetoRange& host) { return host.begin >= step.begin && host.begin < step.end; };
  std::vector<Work> out;
  for (const KinetoKernel& kernel : events_.kernels) {
    const auto host = events_.launches.find(kernel.correlation);
    if (host != events_.launches.end() && begun(host->second)) add_kernel(out, kernel, host->second);
  }
  for (std::size_t i = 0; events_.kernels.empty() && i < events_.ops.size(); ++i) {
    const KinetoOp& op = events_.ops[i];
    if (op.top == i && begun(op) && !is_left_out(op, op.end - op.begin)) out.push_back({op.begin, op, is_backward(op)});
  }
  std::stable_sort(out.begin(), out.end(), [](const Work& a, const Work& b) { return a.launched < b.launched; });
  return out;
}

/// A message of a variable: an instant, since the trace has none.
TraceOp KinetoImporter::message(TraceOpKind kind, const Gradient& gradient, Seconds at) const {
  Bytes bytes{kElementBytes};
  for (const std::int64_t axis : events_.ops[gradient.op].shape) bytes.count *= axis;
  return {fmt::format("{} {}", name_of(kind), gradient.variable), kind, gradient.variable, bytes, at, at, {}};
}

/// Compute reads what the host has received when it began it; a send waits for the compute that the host began before.
TraceStep KinetoImporter::step_of(const KinetoRange& range, const std::vector<Gradient>& gradients,
                                  const std::vector<Work>& work) const {
  const auto seconds = [&](double time) { return Seconds{(time - range.begin) * kMicrosecond}; };
  const auto position = [&](double time) {  // of the first work that the host began at `time` or later
    const auto at = std::lower_bound(work.begin(), work.end(), time,
                                     [](const Work& a, double value) { return a.launched < value; });
    return static_cast<std::size_t>(at - work.begin());
  };
  TraceStep step;
  for (std::size_t i = 0; i < work.size(); ++i) {
    const KinetoRange& done = work[i].range;
    std::string title = fmt::format("{}{} {}", work[i].backward ? kBackward : "forward ", i, done.name);
    std::replace(title.begin(), title.end(), ';', ',');
    step.ops.push_back({std::move(title), TraceOpKind::Compute, {}, {}, seconds(done.begin), seconds(done.end), {}});
  }
  for (const Gradient& gradient : gradients) {
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
  name(gradients);
  const auto work = this->work(range);
  if (work.empty()) lacks(fmt::format("has no compute in {}", range.name), {});
  out_.trace.steps.push_back(step_of(range, gradients, work));
  out_.trace.steps.back().number = number;
  out_.wall.push_back(Seconds{(range.end - range.begin) * kMicrosecond});
}

void KinetoImporter::add_notes(std::size_t steps) {
  const auto note = [&](double time, const char* what) {
    if (time > 0.0)
      out_.notes.push_back(fmt::format("left out: {}, {} in a step", what,
                                       format_seconds(Seconds{time * kMicrosecond / static_cast<double>(steps)})));
  };
  note(left_out_.optimizer, "optimizers");
  note(left_out_.loader, "data loaders");
  note(left_out_.collectives, "collectives (kernels of NCCL)");
  note(left_out_.copies, "copies between host and device");
  if (undefined_ > 0)
    out_.notes.push_back(fmt::format("left out: {} variables whose functions gave no gradient", undefined_ / steps));
}

ImportedTrace KinetoImporter::import() {
  check();
  link();
  const auto ranges = steps();
  int number = 0;
  for (const KinetoRange& range : ranges) add_step(++number, range);
  if (out_.trace.steps.empty()) lacks("accumulates no gradient in any of its steps", "record whole training steps");
  add_notes(out_.trace.steps.size());
  out_.hints.is_backward = [](const TraceOp& op) { return op.name.starts_with(kBackward); };
  out_.device = events_.kernels.empty() ? std::string{} : events_.device;
  return std::move(out_);
}

}  // namespace

ImportedTrace import_kineto(const std::string& path) {
  return KinetoImporter(path, detail::load_kineto_events(path)).import();
}

}  // namespace simsync
