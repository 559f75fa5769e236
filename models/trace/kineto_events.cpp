#include "models/trace/kineto_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.hpp"
#include "models/trace/json_file.hpp"
#include "models/trace/kineto_collectives.hpp"

namespace simsync::detail {
namespace {

using nlohmann::json;

constexpr const char* kAccumulate = "torch::autograd::AccumulateGrad";
constexpr const char* kEvaluate = "autograd::engine::evaluate_function";
constexpr std::int64_t kElementBytes = 4;
/// Bytes of the events that are kept, with their names. The import needs up to three times as much.
constexpr std::size_t kMostHeld = std::size_t{768} << 20U;
/// What a gradient needs later on, beyond other operators: messages of its variable and their places in the step.
constexpr std::size_t kGradient = 512;
/// What a node of a hash table takes beside its value.
constexpr std::size_t kNode = 32;
constexpr std::int64_t kMostElements = 1'000'000'000'000;

/// Bytes of an element of a tensor, as the profiler names its type.
std::int64_t element_bytes(const std::string& type) {
  static const std::map<std::string, std::int64_t> kBytes{
      {"float", 4}, {"double", 8}, {"c10::Half", 2}, {"c10::BFloat16", 2}, {"c10::complex<float>", 8}};
  const auto found = kBytes.find(type);
  if (found == kBytes.end()) throw InputError(fmt::format("a gradient has elements of the unknown type '{}'", type));
  return found->second;
}

/// The shape of a gradient in elements of four bytes; of another element size it is flattened to as many bytes.
std::vector<std::int64_t> shape_of(const json& dims, const std::string& type) {
  std::vector<std::int64_t> shape;
  std::int64_t elements = 1;
  for (const json& axis : dims) {
    if (!axis.is_number_integer()) throw InputError(fmt::format("a gradient has an axis of {}", axis.dump()));
    shape.push_back(std::max<std::int64_t>(axis.get<std::int64_t>(), 1));
    if (shape.back() > kMostElements / elements)
      throw InputError(fmt::format("a gradient has more than {} elements", kMostElements));
    elements *= shape.back();
  }
  const std::int64_t bytes = element_bytes(type);
  if (bytes != kElementBytes || shape.empty()) return {(elements * bytes + kElementBytes - 1) / kElementBytes};
  return shape;
}

/// What the inputs of the operator say about the gradient, which is the first of them.
void read_gradient(KinetoOp& op, const json& arguments) {
  const auto dims = arguments.find("Input Dims");
  const auto types = arguments.find("Input type");
  if (dims == arguments.end() || !dims->is_array() || dims->empty() || !dims->front().is_array()) return;
  if (types == arguments.end() || !types->is_array() || types->empty() || !types->front().is_string()) return;
  const auto type = types->front().get<std::string>();
  op.undefined = type.empty();
  if (op.undefined) return;
  op.shape = shape_of(dims->front(), type);
  op.has_shape = true;
}

class EventReader {
public:
  void take(const json& event);
  KinetoEvents finish();
  /// Bytes of what is kept.
  [[nodiscard]] std::size_t held() const { return held_; }

private:
  [[nodiscard]] std::string_view kept_name(std::string_view name);
  [[nodiscard]] KinetoRange range(const json& event);
  template <class Range>
  void keep(std::vector<Range>& where, Range range) {
    held_ += sizeof(Range);
    where.push_back(std::move(range));
  }
  void add_op(const json& event, const json& arguments);
  void add_annotation(const json& event, const json& arguments);
  void add_kernel(const json& event, const json& arguments);
  void add_module(const json& event);
  int thread_of(const json& event);

  KinetoEvents events_;
  std::map<std::string, int> threads_;
  std::size_t held_ = 0;
};

int EventReader::thread_of(const json& event) {
  const auto found = event.find("tid");
  const std::string name = found == event.end() ? std::string{} : found->dump();
  const auto [known, added] = threads_.emplace(name, static_cast<int>(threads_.size()));
  if (added) held_ += sizeof(*known) + kNode + name.size();
  return known->second;
}

/// The text of it that all events of that name share, without what is beyond kLongestName (no half of a character).
std::string_view EventReader::kept_name(std::string_view name) {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  std::size_t length = std::min(name.size(), kLongestName);
  while (length > 0 && length < name.size() && continues(name[length])) --length;
  const auto [found, added] = events_.names->insert(std::string(name.substr(0, length)));
  if (added) held_ += sizeof(std::string) + kNode + length;
  return *found;
}

KinetoRange EventReader::range(const json& event) {
  const double begin = number_of(event, "ts", 0.0);
  return {begin, begin + number_of(event, "dur", 0.0), kept_name(text_of(event, "name")), thread_of(event)};
}

void EventReader::add_op(const json& event, const json& arguments) {
  KinetoOp op;
  static_cast<KinetoRange&>(op) = range(event);
  op.sequence = whole_of(arguments, "Sequence number", -1);
  if (accumulates(op)) {
    read_gradient(op, arguments);
    held_ += kGradient;
  }
  held_ += op.shape.size() * sizeof(op.shape.front());
  if (is_collective_call(op.name)) keep(events_.collectives, {op, collective_bytes(arguments)});
  keep(events_.ops, std::move(op));
}

void EventReader::add_annotation(const json& event, const json& arguments) {
  const KinetoRange annotation = range(event);
  if (annotation.name.starts_with("ProfilerStep#")) {
    keep(events_.steps, annotation);
  } else if (annotation.name.starts_with("Optimizer.")) {
    keep(events_.optimizers, annotation);
  } else if (annotation.name.starts_with("enumerate(DataLoader)")) {
    keep(events_.loaders, annotation);
  } else if (is_collective_range(annotation.name)) {
    keep(events_.collectives, {annotation, collective_bytes(arguments)});
  }
}

void EventReader::add_kernel(const json& event, const json& arguments) {
  KinetoKernel kernel;
  static_cast<KinetoRange&>(kernel) = range(event);
  kernel.correlation = whole_of(arguments, "correlation", -1);
  kernel.host_copy =
      kernel.name.find("HtoD") != std::string_view::npos || kernel.name.find("DtoH") != std::string_view::npos;
  kernel.collective = is_collective_kernel(text_of(event, "name"));
  if (kernel.collective) kernel.bytes = collective_bytes(arguments);
  keep(events_.kernels, kernel);
}

/// The Python tracer numbers the objects of each class: `nn.Module: Conv2d_0`.
void EventReader::add_module(const json& event) {
  constexpr std::string_view kHead = "nn.Module: ";
  if (!text_of(event, "name").starts_with(kHead)) return;
  KinetoRange call = range(event);
  call.name.remove_prefix(kHead.size());
  keep(events_.modules, call);
}

void EventReader::take(const json& event) {
  if (text_of(event, "ph") != "X") return;
  static const json kNone = json::object();
  const auto found = event.find("args");
  const json& arguments = found != event.end() && found->is_object() ? *found : kNone;
  const std::string category = text_of(event, "cat");
  if (category == "cpu_op") {
    add_op(event, arguments);
  } else if (category == "user_annotation") {
    add_annotation(event, arguments);
  } else if (category == "python_function") {
    add_module(event);
  } else if (category == "cuda_runtime" || category == "cuda_driver") {
    if (events_.launches.emplace(whole_of(arguments, "correlation", -1), range(event)).second)
      held_ += sizeof(KinetoRange) + kNode;
  } else if (category == "kernel" || category == "gpu_memcpy" || category == "gpu_memset") {
    add_kernel(event, arguments);
  } else if (category.empty() && text_of(event, "pid").ends_with(" functions")) {
    ++events_.without_arguments;
  }
}

/// Operators that run while another one of their thread does are inside it.
void nest(std::vector<KinetoOp>& ops) {
  std::sort(ops.begin(), ops.end(), [](const KinetoOp& a, const KinetoOp& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::map<int, std::size_t> outermost;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto found = outermost.find(ops[i].thread);
    const bool inside = found != outermost.end() && ops[i].begin < ops[found->second].end;
    ops[i].top = inside ? found->second : i;
    if (!inside) outermost[ops[i].thread] = i;
  }
}

KinetoEvents EventReader::finish() {
  nest(events_.ops);
  const auto by_begin = [](const KinetoRange& a, const KinetoRange& b) { return a.begin < b.begin; };
  std::sort(events_.steps.begin(), events_.steps.end(), by_begin);
  for (std::size_t i = 1; i < events_.steps.size(); ++i)
    events_.steps[i - 1].end = std::min(events_.steps[i - 1].end, events_.steps[i].begin);
  std::stable_sort(events_.collectives.begin(), events_.collectives.end(), by_begin);
  return std::move(events_);
}

}  // namespace

bool accumulates(const KinetoOp& op) {
  return op.name == kAccumulate;
}

bool is_backward(const KinetoOp& op) {
  return op.name.starts_with(kEvaluate);
}

KinetoEvents load_kineto_events(const std::string& path, const std::function<void(double)>& progress) {
  EventReader reader;
  const auto take = [&](const json& event) {
    reader.take(event);
    if (reader.held() > kMostHeld)
      throw InputError(
          fmt::format("{} has operators, kernels and launches of more than {} MiB", path, kMostHeld >> 20U),
          "some steps tell as much as many: record fewer");
  };
  const json rest = each_of(path, "traceEvents", {.kept = {"deviceProperties"}, .progress = progress}, take);
  KinetoEvents events = reader.finish();
  const auto devices = rest.find("deviceProperties");
  if (devices != rest.end() && devices->is_array() && !devices->empty())
    events.device = text_of(devices->front(), "name");
  return events;
}

}  // namespace simsync::detail
