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
/// Some 300 bytes each are held.
constexpr std::size_t kMostEvents = 10'000'000;
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
    if (axis.is_number_float()) throw InputError(fmt::format("a gradient has an axis of {}", axis.dump()));
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
  if (types == arguments.end() || !types->is_array() || types->empty()) return;
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
  /// Events that are kept.
  [[nodiscard]] std::size_t kept() const {
    return events_.ops.size() + events_.kernels.size() + events_.launches.size() + events_.modules.size() +
           events_.collectives.size();
  }

private:
  [[nodiscard]] KinetoRange range(const json& event);
  void add_op(const json& event, const json& arguments);
  void add_annotation(const json& event, const json& arguments);
  void add_kernel(const json& event, const json& arguments);
  void add_module(const json& event);
  int thread_of(const json& event);

  KinetoEvents events_;
  std::map<std::string, int> threads_;
};

int EventReader::thread_of(const json& event) {
  const auto found = event.find("tid");
  const std::string name = found == event.end() ? std::string{} : found->dump();
  return threads_.emplace(name, static_cast<int>(threads_.size())).first->second;
}

KinetoRange EventReader::range(const json& event) {
  const double begin = number_of(event, "ts", 0.0);
  return {begin, begin + number_of(event, "dur", 0.0), text_of(event, "name"), thread_of(event)};
}

void EventReader::add_op(const json& event, const json& arguments) {
  KinetoOp op;
  static_cast<KinetoRange&>(op) = range(event);
  op.sequence = whole_of(arguments, "Sequence number", -1);
  if (op.name == kAccumulate) read_gradient(op, arguments);
  if (is_collective_call(op.name)) events_.collectives.push_back({op, collective_bytes(arguments)});
  events_.ops.push_back(std::move(op));
}

void EventReader::add_annotation(const json& event, const json& arguments) {
  KinetoRange annotation = range(event);
  if (annotation.name.starts_with("ProfilerStep#")) {
    events_.steps.push_back(std::move(annotation));
  } else if (annotation.name.starts_with("Optimizer.")) {
    events_.optimizers.push_back(std::move(annotation));
  } else if (annotation.name.starts_with("enumerate(DataLoader)")) {
    events_.loaders.push_back(std::move(annotation));
  } else if (is_collective_range(annotation.name)) {
    events_.collectives.push_back({std::move(annotation), collective_bytes(arguments)});
  }
}

void EventReader::add_kernel(const json& event, const json& arguments) {
  KinetoKernel kernel;
  static_cast<KinetoRange&>(kernel) = range(event);
  kernel.correlation = whole_of(arguments, "correlation", -1);
  kernel.host_copy = kernel.name.find("HtoD") != std::string::npos || kernel.name.find("DtoH") != std::string::npos;
  kernel.collective = is_collective_kernel(kernel.name);
  if (kernel.collective) kernel.bytes = collective_bytes(arguments);
  events_.kernels.push_back(std::move(kernel));
}

/// The Python tracer numbers the objects of each class: `nn.Module: Conv2d_0`.
void EventReader::add_module(const json& event) {
  const std::string head = "nn.Module: ";
  if (!text_of(event, "name").starts_with(head)) return;
  KinetoRange call = range(event);
  call.name = call.name.substr(head.size());
  events_.modules.push_back(std::move(call));
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
    events_.launches.emplace(whole_of(arguments, "correlation", -1), range(event));
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
  return std::move(events_);
}

}  // namespace

bool is_backward(const KinetoOp& op) {
  return op.name.starts_with(kEvaluate);
}

KinetoEvents load_kineto_events(const std::string& path) {
  EventReader reader;
  json rest;
  try {
    rest = each_of(path, "traceEvents", {"deviceProperties"}, [&](const json& event) {
      reader.take(event);
      if (reader.kept() > kMostEvents)
        throw InputError(fmt::format("{} has more than {} operators, kernels and launches", path, kMostEvents),
                         "some steps tell as much as many: record fewer");
    });
  } catch (const json::exception& error) {
    throw InputError(fmt::format("{} is not a trace of PyTorch's profiler: {}", path, error.what()));
  }
  KinetoEvents events = reader.finish();
  const auto devices = rest.find("deviceProperties");
  if (devices != rest.end() && devices->is_array() && !devices->empty())
    events.device = text_of(devices->front(), "name");
  return events;
}

}  // namespace simsync::detail
