// From TensorFlow's records of one worker and its servers to a trace of ours.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/error.hpp"
#include "models/trace/importers.hpp"
#include "models/trace/tensorflow_events.hpp"

namespace simsync {
namespace {

using detail::base_of;
using detail::is_transfer;
using detail::TfNode;

constexpr double kMicrosecond = 1e-6;

bool is_server(const TfNode& node) {
  return node.device.starts_with("/job:ps");
}

/// "/job:worker/replica:0/task:0"; empty for a device that names none, such as a stream of a GPU.
std::string task_of(const std::string& device) {
  const auto task = device.find("/task:");
  return task == std::string::npos ? std::string{} : device.substr(0, device.find('/', task + 1));
}

/// Records of streams and copies repeat what a GPU's operations say, except the stream that holds all kernels.
bool is_stream(const TfNode& node) {
  return node.device.find("/stream:") != std::string::npos || node.device.find("/memcpy") != std::string::npos;
}

bool is_kernel(const TfNode& node) {
  return node.device.ends_with("/stream:all") && !node.name.starts_with("MEMCPY");
}

bool on_gpu(const TfNode& node) {
  return node.device.find("GPU:") != std::string::npos || node.device.find("/gpu:") != std::string::npos;
}

bool updates(const TfNode& node) {
  return node.inputs.size() > 1 && (node.op.find("Apply") != std::string::npos ||
                                    node.op.find("Scatter") != std::string::npos || node.op.starts_with("AssignSub"));
}

/// The variable that a tensor is the value of: `conv1/weights/read` is that of `conv1/weights`.
std::string variable_of(const std::string& tensor) {
  for (const char* reader : {"/read", "/Read/ReadVariableOp", "/ReadVariableOp"}) {
    if (tensor.ends_with(reader)) return tensor.substr(0, tensor.size() - std::string(reader).size());
  }
  return tensor;
}

class StepImporter {
public:
  StepImporter(std::string path, int number) : path_(std::move(path)), nodes_(detail::load_tf_nodes(path_)) {
    step_.number = number;
  }
  TraceStep import();
  [[nodiscard]] Seconds wall() const { return Seconds{(last_ - first_) * kMicrosecond}; }

private:
  [[noreturn]] void lacks(const std::string& what, const std::string& help) const {
    throw InputError(fmt::format("{} {}", path_, what), help);
  }
  void expect_one_worker() const;
  void measure();
  void add_compute();
  void add_compute_of(const TfNode& node, const std::vector<const TfNode*>& kernels);
  void depend();
  void depend_on(const TfNode& node, TraceOp& op);
  void add_receive(const std::string& tensor, const TfNode& reader);
  void add_updates();
  void add_send(const std::string& tensor, const std::string& variable);
  [[nodiscard]] const TfNode* transfer(const std::string& tensor, bool to_server) const;
  [[nodiscard]] Seconds seconds(double micros) const { return Seconds{(micros - first_) * kMicrosecond}; }

  std::string path_;
  std::vector<TfNode> nodes_;
  double first_ = 0.0;
  double last_ = 0.0;
  TraceStep step_;
  std::map<std::string, std::vector<std::size_t>> made_;  ///< compute of the worker by the name of its node
  std::map<std::string, std::int64_t> served_;            ///< nodes of servers and the bytes that they make
  std::map<std::string, std::int64_t> received_;          ///< bytes by variable
  std::set<std::string> arrivals_;                        ///< names of receive operations
};

void StepImporter::expect_one_worker() const {
  std::set<std::string> tasks;
  for (const TfNode& node : nodes_) {
    if (!is_server(node) && !task_of(node.device).empty()) tasks.insert(task_of(node.device));
  }
  if (tasks.size() > 1)
    lacks(fmt::format("has the operations of {} workers: {}", tasks.size(), fmt::join(tasks, ", ")),
          "a trace is of one worker, alone with its servers");
  if (std::none_of(nodes_.begin(), nodes_.end(), is_server))
    lacks("has no operation of a parameter server (/job:ps)",
          "record the whole session: a worker that asks for full_trace gets the records of its servers too");
}

void StepImporter::measure() {
  if (nodes_.empty()) lacks("has no operation", {});
  first_ = nodes_.front().begin;
  last_ = first_;
  for (const TfNode& node : nodes_) {
    first_ = std::min(first_, node.begin);
    last_ = std::max(last_, node.end);
    if (is_server(node) && !is_transfer(node)) served_[node.name] = node.bytes;
  }
}

/// What a transfer says about `tensor`: RecvTensor, which knows its bytes, rather than the nodes at its ends.
const TfNode* StepImporter::transfer(const std::string& tensor, bool to_server) const {
  const TfNode* found = nullptr;
  for (const TfNode& node : nodes_) {
    if (is_server(node) != to_server || !is_transfer(node)) continue;
    if (node.op == "RecvTensor" && node.tensor == tensor) return &node;
    if (base_of(node.name) == tensor) found = &node;
  }
  return found;
}

/// One operation, or one per kernel where the records of a GPU's streams are there.
void StepImporter::add_compute_of(const TfNode& node, const std::vector<const TfNode*>& kernels) {
  auto& made = made_[node.name];
  const auto add = [&](double begin, double end) {
    const std::string name = made.empty() ? node.name : fmt::format("{}#{}", node.name, made.size());
    made.push_back(step_.ops.size());
    step_.ops.push_back({name, TraceOpKind::Compute, {}, {}, seconds(begin), seconds(end), {}});
  };
  for (const TfNode* kernel : kernels) add(kernel->begin, kernel->end);
  if (kernels.empty()) add(node.begin, node.end);
}

void StepImporter::add_compute() {
  std::map<std::string, std::vector<const TfNode*>> kernels;
  for (const TfNode& node : nodes_) {
    if (is_kernel(node)) kernels[node.name.substr(0, node.name.find(':'))].push_back(&node);
  }
  for (const TfNode& node : nodes_) {
    if (is_server(node) || is_stream(node) || is_transfer(node)) continue;
    const auto found = kernels.find(node.name);
    TfNode launch = node;
    if (!kernels.empty() && on_gpu(node)) launch.end = launch.begin;  // the host's part of it is no compute
    add_compute_of(launch, found == kernels.end() ? std::vector<const TfNode*>{} : found->second);
  }
  if (step_.ops.empty()) lacks("has no operation of a worker", "record the session of the worker");
}

void StepImporter::add_receive(const std::string& tensor, const TfNode& reader) {
  const std::string variable = variable_of(tensor);
  const TfNode* by = transfer(tensor, false);
  std::int64_t bytes = by == nullptr ? -1 : by->bytes;
  for (const std::string& name : {tensor, variable}) {
    if (bytes < 0 && served_.contains(name)) bytes = served_.at(name);
  }
  if (bytes < 0)
    lacks(fmt::format("does not tell the bytes of '{}'", variable),
          "RunMetadata does; a timeline does with generate_chrome_trace_format(show_memory=True)");
  received_[variable] += bytes;
  step_.ops.push_back({"receive " + tensor,
                       TraceOpKind::Receive,
                       variable,
                       {bytes},
                       seconds(by == nullptr ? reader.begin : by->begin),
                       seconds(by == nullptr ? reader.begin : by->end),
                       {}});
}

/// What `op` waits for; a tensor that no node of the worker makes is received, if a server makes it.
void StepImporter::depend_on(const TfNode& node, TraceOp& op) {
  for (const std::string& input : node.inputs) {
    const std::string tensor = base_of(input);
    if (const auto found = made_.find(tensor); found != made_.end()) {
      for (const std::size_t i : found->second) {
        if (step_.ops[i].name != op.name) op.after.push_back(step_.ops[i].name);
      }
    } else if (served_.contains(tensor) || served_.contains(variable_of(tensor)) ||
               transfer(tensor, false) != nullptr) {
      op.after.push_back("receive " + tensor);
    }
  }
}

void StepImporter::depend() {
  for (const TfNode& node : nodes_) {
    if (is_server(node) || is_stream(node) || is_transfer(node)) continue;
    TraceOp waits;
    waits.name = step_.ops[made_.at(node.name).front()].name;
    depend_on(node, waits);
    for (const std::string& name : waits.after) {
      if (name.starts_with("receive ") && arrivals_.insert(name).second) add_receive(name.substr(8), node);
    }
    for (const std::size_t i : made_.at(node.name)) step_.ops[i].after = waits.after;
  }
}

void StepImporter::add_send(const std::string& tensor, const std::string& variable) {
  const std::string name = "send " + tensor;
  if (!arrivals_.insert(name).second) return;
  TraceOp send{name, TraceOpKind::Send, variable, {}, {}, {}, {}};
  for (const std::size_t i : made_.at(tensor)) {
    send.after.push_back(step_.ops[i].name);
    send.start = std::max(send.start, step_.ops[i].end);
  }
  const TfNode* by = transfer(tensor, true);
  send.end = std::max(send.start, by == nullptr ? send.start : seconds(by->end));
  const auto known = received_.find(variable);
  send.bytes = {by != nullptr && by->bytes >= 0 ? by->bytes : known != received_.end() ? known->second : 0};
  step_.ops.push_back(std::move(send));
}

/// Updates of servers tell which tensors of the worker are gradients, and of which variables.
void StepImporter::add_updates() {
  for (const TfNode& node : nodes_) {
    if (!is_server(node) || !updates(node)) continue;
    const std::string variable = variable_of(base_of(node.inputs.front()));
    TraceOp update{node.name, TraceOpKind::Update, variable, {}, seconds(node.begin), seconds(node.end), {}};
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      const std::string tensor = base_of(node.inputs[i]);
      if (!made_.contains(tensor)) continue;
      add_send(tensor, variable);
      update.after.push_back("send " + tensor);
    }
    if (update.after.empty()) continue;
    const auto known = received_.find(variable);
    if (known != received_.end()) update.bytes = {known->second};
    step_.ops.push_back(std::move(update));
  }
}

TraceStep StepImporter::import() {
  expect_one_worker();
  measure();
  add_compute();
  depend();
  add_updates();
  if (arrivals_.empty() || std::none_of(step_.ops.begin(), step_.ops.end(),
                                        [](const TraceOp& op) { return op.kind == TraceOpKind::Update; }))
    lacks("has no operation of a server that applies a gradient of the worker (Apply..., Scatter...)",
          "record a step of asynchronous training with its servers");
  return std::move(step_);
}

}  // namespace

ImportedTrace import_tensorflow(const std::vector<std::string>& paths) {
  ImportedTrace out;
  for (const std::string& path : paths) {
    StepImporter importer(path, static_cast<int>(out.trace.steps.size()) + 1);
    out.trace.steps.push_back(importer.import());
    out.wall.push_back(importer.wall());
  }
  out.hints.is_backward = [](const TraceOp& op) { return op.name.starts_with("gradient"); };
  return out;
}

}  // namespace simsync
