#include "models/trace/tensorflow_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/error.hpp"
#include "models/trace/json_file.hpp"

namespace simsync::detail {
namespace {

using nlohmann::json;

/// Keys of RunMetadata that are large and not needed here.
const std::set<std::string>& left_out_keys() {
  static const std::set<std::string> kKeys{"partition_graphs", "partitionGraphs",   "cost_graph",   "costGraph",
                                           "function_graphs",  "functionGraphs",    "memory",       "memory_stats",
                                           "memoryStats",      "referenced_tensor", "thread_names", "referencedTensor",
                                           "session_metadata", "sessionMetadata",   "threadNames"};
  return kKeys;
}

/// The value of `key` in the spelling of the .proto file or in that of its JSON form; null when there is none.
const json& member(const json& object, const char* snake, const char* camel) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  auto found = object.find(snake);
  if (found == object.end()) found = object.find(camel);
  return found == object.end() ? kNull : *found;
}

double number(const json& object, const char* snake, const char* camel, double fallback) {
  return number_of(object, object.contains(snake) ? snake : camel, fallback);
}

std::string text(const json& object, const char* snake, const char* camel) {
  return text_of(object, object.contains(snake) ? snake : camel);
}

/// "name = op(input, input)"; the label of a transfer lacks the bracket at its end in some versions.
void read_label(TfNode& node, const std::string& label) {
  static const std::regex kLabel(R"(.* = ([^ (]+)\(([^)]*)\)?)");
  std::smatch match;
  node.op = "unknown";
  if (!std::regex_match(label, match, kLabel)) return;
  node.op = match[1];
  const std::string inputs = match[2];
  for (std::size_t begin = 0; begin < inputs.size();) {
    const std::size_t end = std::min(inputs.find(", ", begin), inputs.size());
    node.inputs.push_back(inputs.substr(begin, end - begin));
    begin = end + 2;
  }
}

/// "[1.2MB] edge_7_conv1/weights/read from /job:ps/... to /job:worker/...": the tensor.
std::string tensor_of(const std::string& label) {
  static const std::regex kLabel(R"((?:\[[^\]]*\] )*(?:edge_\d+_)?(\S+) from .*)");
  std::smatch match;
  return std::regex_match(label, match, kLabel) ? match[1].str() : std::string{};
}

std::int64_t output_bytes(const json& outputs) {
  if (!outputs.is_array() || outputs.empty()) return -1;
  const json& description = member(outputs.front(), "tensor_description", "tensorDescription");
  const json& allocation = member(description, "allocation_description", "allocationDescription");
  if (!allocation.is_object()) return -1;
  return whole_of(allocation, allocation.contains("requested_bytes") ? "requested_bytes" : "requestedBytes", -1);
}

TfNode node_of(const json& stats, const std::string& device) {
  TfNode node;
  node.device = device;
  node.name = text(stats, "node_name", "nodeName");
  node.begin = number(stats, "all_start_micros", "allStartMicros", 0.0);
  const double relative = number(stats, "op_end_rel_micros", "opEndRelMicros", 0.0);
  node.end = node.begin + number(stats, "all_end_rel_micros", "allEndRelMicros", relative);
  node.bytes = output_bytes(member(stats, "output", "output"));
  const std::string label = text(stats, "timeline_label", "timelineLabel");
  if (node.name == "RecvTensor") {
    node.op = node.name;
    node.tensor = base_of(tensor_of(label));
  } else if (const auto mark = label.find("@@"); mark != std::string::npos) {
    node.name = label.substr(mark + 2, label.find('#', mark) - mark - 2);  // a kernel of newer versions
    node.op = "kernel";
  } else {
    read_label(node, label);
  }
  return node;
}

std::vector<TfNode> nodes_of_statistics(const json& devices) {
  std::vector<TfNode> nodes;
  for (const json& device : devices) {
    const std::string name = text_of(device, "device");
    const json& records = member(device, "node_stats", "nodeStats");
    if (!records.is_array()) continue;
    for (const json& stats : records) nodes.push_back(node_of(stats, name));
  }
  return nodes;
}

/// The bytes in the text form of a TensorDescription; -1 when it has none.
std::int64_t described_bytes(const std::string& description) {
  static const std::regex kBytes(R"(requested_bytes: (\d{1,15}))");
  std::smatch match;
  return std::regex_search(description, match, kBytes) ? std::stoll(match[1]) : -1;
}

TfNode node_of_event(const json& event, const json& arguments, const std::string& device) {
  TfNode node;
  node.device = device;
  node.name = text_of(arguments, "name");
  node.op = text_of(arguments, "op");
  for (int i = 0; arguments.contains(fmt::format("input{}", i)); ++i)
    node.inputs.push_back(text_of(arguments, fmt::format("input{}", i).c_str()));
  node.begin = number_of(event, "ts", 0.0);
  node.end = node.begin + number_of(event, "dur", 0.0);
  return node;
}

/// Processes of a timeline are devices, "/job:ps/... Compute"; tensors are objects beside them.
std::vector<TfNode> nodes_of_timeline(const json& events) {
  std::map<std::int64_t, std::string> devices;
  std::map<std::string, std::int64_t> bytes;
  std::vector<TfNode> nodes;
  for (const json& event : events) {
    if (text_of(event, "ph") != "M" || text_of(event, "name") != "process_name") continue;
    const std::string name = text_of(member(event, "args", "args"), "name");
    devices[whole_of(event, "pid", -1)] = name.substr(0, name.find(' '));
  }
  for (const json& event : events) {
    const std::string phase = text_of(event, "ph");
    const json& arguments = member(event, "args", "args");
    if (phase == "O") {
      const std::string description = text_of(member(arguments, "snapshot", "snapshot"), "tensor_description");
      if (const auto count = described_bytes(description); count >= 0) bytes[text_of(event, "name")] = count;
    } else if (phase == "X" && arguments.is_object()) {
      nodes.push_back(node_of_event(event, arguments, devices[whole_of(event, "pid", -1)]));
    }
  }
  for (TfNode& node : nodes) {
    if (const auto found = bytes.find(node.name); found != bytes.end()) node.bytes = found->second;
  }
  return nodes;
}

}  // namespace

std::string base_of(const std::string& input) {
  static const std::regex kMarks(R"(\^?(.*?)(?:/_\d+)?(?::\d+)?)");
  std::smatch match;
  return std::regex_match(input, match, kMarks) ? match[1].str() : input;
}

bool is_transfer(const TfNode& node) {
  if (node.op == "_Recv" || node.op == "_HostRecv" || node.op == "_Send" || node.op == "_HostSend") return true;
  return node.op == "RecvTensor" || (node.op == "unknown" && node.name != base_of(node.name));
}

std::vector<TfNode> load_tf_nodes(const std::string& path) {
  const json file = load_json(path, left_out_keys());
  const json& metadata = member(file, "step_stats", "stepStats");
  const json& devices = member(metadata.is_object() ? metadata : file, "dev_stats", "devStats");
  if (devices.is_array()) return nodes_of_statistics(devices);
  const json& events = member(file, "traceEvents", "traceEvents");
  if (events.is_array()) return nodes_of_timeline(events);
  throw InputError(fmt::format("{} has neither step statistics (step_stats) nor a timeline (traceEvents)", path),
                   "expected RunMetadata as JSON, or what tensorflow.python.client.timeline writes");
}

}  // namespace simsync::detail
