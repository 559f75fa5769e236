// Records of TensorFlow, made by hand in the forms of step_stats.proto and of its timeline.
#include <fmt/format.h>

#include "models/trace/importers.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_file.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

const std::string kWorker = "/job:worker/replica:0/task:0/device:CPU:0";
const std::string kServer = "/job:ps/replica:0/task:0/device:CPU:0";

/// What one record tells, whatever the form.
struct Record {
  std::string device;
  std::string name;
  std::string label;  ///< timeline_label
  int begin = 0;      ///< microseconds after the step began
  int end = 0;
  int bytes = -1;
};

std::string applied(const std::string& variable, const std::string& gradient) {
  return fmt::format(
      "GradientDescent/update_{0}/ApplyGradientDescent = ApplyGradientDescent({0}, GradientDescent/learning_rate, {1})",
      variable, gradient);
}

std::string arrives(const std::string& tensor, const std::string& from, const std::string& to) {
  return fmt::format("[800B] edge_5_{} from {} to {}", tensor, from, to);
}

/// Two layers: conv 100-300 and fc 500-600, whose weights arrive at 500; gradients of fc at 600-800, of conv at
/// 800-1200.
std::vector<Record> records() {
  const std::string dfc = "gradients/fc_grad/MatMul_1";
  const std::string dconv = "gradients/conv_grad/Conv2DBackpropFilter";
  return {
      {kServer, "conv/weights", "conv/weights = VariableV2()", 0, 1, 400},
      {kServer, "conv/weights/read", "conv/weights/read = Identity(conv/weights)", 1, 2, 400},
      {kServer, "fc/weights/read", "fc/weights/read = Identity(fc/weights)", 1, 2, 800},
      {kWorker, "RecvTensor", arrives("conv/weights/read", kServer, kWorker), 2, 100, 400},
      {kWorker, "RecvTensor", arrives("fc/weights/read", kServer, kWorker), 2, 500, 800},
      {kWorker, "conv/weights/read/_1", "conv/weights/read/_1 = _Recv(edge_5_conv/weights/read @" + kServer, 2, 2, 400},
      {kWorker, "fc/weights/read/_3", "fc/weights/read/_3 = _Recv(edge_7_fc/weights/read @" + kServer, 2, 2, 800},
      {kWorker, "conv", "conv = Conv2D(images, conv/weights/read/_1)", 100, 300, 64},
      {kWorker, "fc", "[cpu 1.5MB 2.0MB] fc = MatMul(conv, fc/weights/read/_3)", 500, 600, 64},
      {kWorker, dfc, dfc + " = MatMul(conv, fc:0)", 600, 800, 800},
      {kWorker, dconv, dconv + " = Conv2DBackpropFilter(images, " + dfc + ")", 800, 1200, 400},
      {kWorker, dfc + "/_5", dfc + "/_5 = _Send(edge_9_" + dfc + " @" + kServer, 800, 801},
      {kServer, "RecvTensor", arrives(dfc, kWorker, kServer), 801, 900, 800},
      {kServer, "GradientDescent/update_fc/weights/ApplyGradientDescent", applied("fc/weights", dfc + "/_6"), 900, 930},
      {kServer, "GradientDescent/update_conv/weights/ApplyGradientDescent", applied("conv/weights", dconv + "/_8"),
       1300, 1320},
      {kServer, "GradientDescent", "GradientDescent = AssignAdd(global_step, GradientDescent/value)", 1320, 1321, 8},
  };
}

/// As google.protobuf.json_format writes it: names in camel case, 64-bit integers as text.
std::string run_metadata(const std::vector<Record>& records) {
  std::string text = R"({"stepStats":{"devStats":[)";
  for (const std::string& device : {kWorker, kServer, std::string("/job:worker/replica:0/task:1/device:CPU:0")}) {
    std::string nodes;
    for (const Record& record : records) {
      if (record.device != device) continue;
      nodes += fmt::format(
          R"({}{{"nodeName":"{}","allStartMicros":"{}","opStartRelMicros":"1","opEndRelMicros":"{}","allEndRelMicros":"{}",)"
          R"("timelineLabel":"{}","output":[{{"tensorDescription":{{"dtype":"DT_FLOAT","allocationDescription":)"
          R"({{"requestedBytes":"{}","allocatorName":"cpu"}}}}}}]}})",
          nodes.empty() ? "" : ",", record.name, 1500000000000000 + record.begin, record.end - record.begin,
          record.end - record.begin, record.label, record.bytes);
    }
    text += fmt::format(R"({}{{"device":"{}","nodeStats":[{}]}})", device == kWorker ? "" : ",", device, nodes);
  }
  return text + "]}}";
}

/// As timeline.py writes it: labels taken apart, those without closing bracket and of RecvTensor lost; the bytes of
/// outputs in snapshots, with show_memory.
std::string timeline(const std::vector<Record>& records, bool memory) {
  std::string text =
      fmt::format(R"({{"traceEvents":[{{"name":"process_name","ph":"M","pid":1,"args":{{"name":"{} Compute"}}}},)"
                  R"({{"name":"process_name","ph":"M","pid":3,"args":{{"name":"{} Compute"}}}})",
                  kWorker, kServer);
  for (const Record& record : records) {
    const auto open = record.label.find('(');
    const bool whole = record.label.ends_with(')');
    const auto sign = record.label.find(" = ");
    const std::string op = record.name == "RecvTensor" ? record.name
                           : whole                     ? record.label.substr(sign + 3, open - sign - 3)
                                                       : "unknown";
    std::string inputs;
    const std::string list = whole ? record.label.substr(open + 1, record.label.size() - open - 2) : std::string{};
    int count = 0;
    for (std::size_t begin = 0; begin < list.size();) {
      const std::size_t end = std::min(list.find(", ", begin), list.size());
      inputs += fmt::format(R"(,"input{}":"{}")", count++, list.substr(begin, end - begin));
      begin = end + 2;
    }
    const int pid = record.device == kWorker ? 1 : 3;
    text += fmt::format(
        R"(,{{"ph":"X","cat":"Op","name":"{}","pid":{},"tid":0,"ts":{},"dur":{},"args":{{"name":"{}","op":"{}"{}}}}})",
        op, pid, 1500000000000000 + record.begin, record.end - record.begin, record.name, op, inputs);
    if (memory && record.bytes >= 0)
      text += fmt::format(
          R"(,{{"ph":"O","cat":"Tensor","name":"{}","pid":2,"tid":0,"id":1,"ts":0,"args":{{"snapshot":)"
          R"({{"tensor_description":"dtype: DT_FLOAT\nallocation_description {{\n  requested_bytes: {}\n}}\n"}}}}}})",
          record.name, record.bytes);
  }
  return text + "]}";
}

ImportedTrace read_one(const std::string& path) {
  return import_tensorflow({path});
}

void check_layers(const ImportedTrace& imported) {
  const TracedModel traced = layers_of(imported.trace, imported.hints);
  REQUIRE(traced.layers.size() == 2);
  CHECK(traced.layers[0].name == "conv");
  CHECK(traced.layers[0].variables.front().name == "conv/weights");
  CHECK(traced.layers[0].variables.front().shape == std::vector<std::int64_t>{100});
  CHECK(traced.layers[1].variables.front().name == "fc/weights");
  CHECK(traced.layers[1].variables.front().shape == std::vector<std::int64_t>{200});
  for (const auto& times : traced.steps) {
    CHECK_THAT(times[0].forward.value(), WithinRel(200e-6, 1e-6));
    CHECK_THAT(times[0].backward.value(), WithinRel(400e-6, 1e-6));
    CHECK_THAT(times[1].forward.value(), WithinRel(100e-6, 1e-6));
    CHECK_THAT(times[1].backward.value(), WithinRel(200e-6, 1e-6));
  }
  CHECK(traced.notes.empty());
}

const TraceOp& op_of(const TraceStep& step, const std::string& name) {
  for (const TraceOp& op : step.ops) {
    if (op.name == name) return op;
  }
  FAIL("no operation " << name);
  return step.ops.front();
}

}  // namespace

TEST_CASE("RunMetadata of several steps gives layers, messages and updates", "[trace]") {
  const ScratchFile file(run_metadata(records()));
  const ImportedTrace imported = import_tensorflow({file.path(), file.path()});
  REQUIRE(imported.trace.steps.size() == 2);
  check_layers(imported);
  CHECK_THAT(imported.wall[0].value(), WithinRel(1321e-6, 1e-6));
  const TraceStep& step = imported.trace.steps[0];
  CHECK(op_of(step, "fc").after == std::vector<std::string>{"conv", "receive fc/weights/read"});
  CHECK_THAT(op_of(step, "receive fc/weights/read").end.value(), WithinRel(500e-6, 1e-6));
  const TraceOp& send = op_of(step, "send gradients/fc_grad/MatMul_1");
  CHECK(send.variable == "fc/weights");
  CHECK(send.bytes.count == 800);
  CHECK_THAT(send.end.value(), WithinRel(900e-6, 1e-6));
  const TraceOp& update = op_of(step, "GradientDescent/update_fc/weights/ApplyGradientDescent");
  CHECK(update.kind == TraceOpKind::Update);
  CHECK_THAT((update.end - update.start).value(), WithinRel(30e-6, 1e-6));
  CHECK(parse_trace(trace_text(imported.trace), "written").steps.size() == 2);
}

TEST_CASE("the names of the .proto file are read as well", "[trace]") {
  std::string text = run_metadata(records());
  const std::vector<std::pair<std::string, std::string>> kNames{{"stepStats", "step_stats"},
                                                                {"devStats", "dev_stats"},
                                                                {"nodeStats", "node_stats"},
                                                                {"nodeName", "node_name"},
                                                                {"allStartMicros", "all_start_micros"},
                                                                {"allEndRelMicros", "all_end_rel_micros"},
                                                                {"timelineLabel", "timeline_label"},
                                                                {"tensorDescription", "tensor_description"},
                                                                {"allocationDescription", "allocation_description"},
                                                                {"requestedBytes", "requested_bytes"}};
  for (const auto& [camel, snake] : kNames) {
    for (auto at = text.find(camel); at != std::string::npos; at = text.find(camel, at))
      text.replace(at, camel.size(), snake);
  }
  const ScratchFile file(text);
  check_layers(read_one(file.path()));
}

TEST_CASE("a timeline gives the same layers, if it tells bytes", "[trace]") {
  const ScratchFile file(timeline(records(), true));
  check_layers(read_one(file.path()));
  CHECK(refusal_of(ScratchFile(timeline(records(), false)), read_one) ==
        "FILE does not tell the bytes of 'conv/weights' | RunMetadata does; a timeline does with "
        "generate_chrome_trace_format(show_memory=True)");
}

TEST_CASE("kernels of a GPU are its compute, not their launch", "[trace]") {
  auto gpu = records();
  for (Record& record : gpu) {
    if (record.device == kWorker && record.name == "conv") record.device = "gpu";
  }
  std::string text = run_metadata(gpu);
  const std::string device = "/job:worker/replica:0/task:0/device:GPU:0";
  const auto node = [](const std::string& name, const std::string& label, int begin, int end) {
    return fmt::format(R"({{"nodeName":"{}","allStartMicros":"{}","allEndRelMicros":"{}","timelineLabel":"{}"}})", name,
                       1500000000000000 + begin, end - begin, label);
  };
  // Launched at 100-110; two kernels of 50 and 100 us.
  const std::string more =
      fmt::format(R"({{"device":"{}","nodeStats":[{}]}},{{"device":"{}/stream:all","nodeStats":[{},{}]}},)", device,
                  node("conv", "conv = Conv2D(images, conv/weights/read/_1)", 100, 110), device,
                  node("conv:Conv2D", "", 120, 170), node("conv:Conv2D", "", 200, 300));
  const std::string head = R"("devStats":[)";
  text.insert(text.find(head) + head.size(), more);
  const ScratchFile file(text);
  const ImportedTrace imported = read_one(file.path());
  const TracedModel traced = layers_of(imported.trace, imported.hints);
  CHECK_THAT(traced.steps[0][0].forward.value(), WithinRel(150e-6, 1e-6));
}

TEST_CASE("records of anything but one worker with its servers are refused by name", "[trace]") {
  const auto refused = [](const std::vector<Record>& list) {
    return refusal_of(ScratchFile(run_metadata(list)), read_one);
  };
  std::vector<Record> alone;
  std::vector<Record> unapplied;
  for (const Record& record : records()) {
    if (record.device == kWorker) alone.push_back(record);
    if (record.label.find("Apply") == std::string::npos) unapplied.push_back(record);
  }
  CHECK(refused(alone) ==
        "FILE has no operation of a parameter server (/job:ps) | record the whole session: a worker that asks for "
        "full_trace gets the records of its servers too");
  CHECK(
      refused(unapplied) ==
      "FILE has no operation of a server that applies a gradient of the worker (Apply..., Scatter...) | record a step "
      "of asynchronous training with its servers");
  auto two = records();
  two.push_back({"/job:worker/replica:0/task:1/device:CPU:0", "conv", "conv = Conv2D(images)", 0, 1});
  CHECK(refused(two) ==
        "FILE has the operations of 2 workers: /job:worker/replica:0/task:0, /job:worker/replica:0/task:1 | a trace is "
        "of "
        "one worker, alone with its servers");
  CHECK(refusal_of(ScratchFile("{}"), read_one) ==
        "FILE has neither step statistics (step_stats) nor a timeline (traceEvents) | expected RunMetadata as JSON, or "
        "what tensorflow.python.client.timeline writes");
}
