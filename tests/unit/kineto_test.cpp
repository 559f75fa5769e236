// Traces of PyTorch's profiler, made by hand in its form.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "models/trace/importers.hpp"
#include "models/trace/range_index.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/scratch_file.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

/// Events in Chrome's format; times in microseconds.
class Events {
public:
  Events& add(const std::string& category, const std::string& name, int thread, double begin, double end,
              const std::string& arguments = {}) {
    const char* comma = text_.empty() ? "" : ",\n";
    text_ += fmt::format(R"({}{{"ph":"X","cat":"{}","name":"{}","pid":1,"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                         comma, category, name, thread, begin, end - begin, arguments);
    return *this;
  }
  Events& op(const std::string& name, int thread, double begin, double end, int sequence = -1) {
    return add("cpu_op", name, thread, begin, end,
               sequence < 0 ? std::string{} : fmt::format(R"("Sequence number":{})", sequence));
  }
  Events& accumulate(int thread, double begin, const std::string& shape) {
    op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", thread, begin, begin + 2);
    const std::string arguments =
        shape.empty() ? std::string{} : fmt::format(R"("Input Dims":[{}],"Input type":["float"])", shape);
    return add("cpu_op", "torch::autograd::AccumulateGrad", thread, begin + 1, begin + 2, arguments);
  }
  Events& kernel(const std::string& name, int thread, double launched, double begin, double end) {
    const std::string correlation = fmt::format(R"("correlation":{})", ++correlation_);
    add("cuda_runtime", "cudaLaunchKernel", thread, launched, launched + 0.1, correlation);
    return add(name.starts_with("Memcpy") ? "gpu_memcpy" : "kernel", name, 7, begin, end, correlation);
  }
  [[nodiscard]] std::string file() const {
    return R"({"schemaVersion":1,"deviceProperties":[{"name":"NVIDIA A100"}],"traceEvents":[)" + text_ + "]}";
  }

private:
  std::string text_;
  int correlation_ = 0;
};

/// A step at `t`: a convolution and a linear layer on a GPU with the backward pass on thread 2; see the first test.
/// Nothing marks it but its optimizer, which steps from 100 to 150 us.
void add_unmarked_step(Events& events, int number, double t, const std::string& first_shape = "[16,3,3,3]") {
  const int node = 10 * number;
  events.kernel("Memcpy HtoD (Pinned -> Device)", 1, t + 5, t + 20, t + 30);
  events.op("aten::conv2d", 1, t + 10, t + 20, node).op("aten::convolution", 1, t + 11, t + 19, node);
  events.kernel("conv", 1, t + 12, t + 40, t + 140);
  events.op("aten::linear", 1, t + 30, t + 40).op("aten::t", 1, t + 31, t + 32, node + 1);
  events.op("aten::addmm", 1, t + 33, t + 39, node + 2).kernel("gemm", 1, t + 34, t + 140, t + 190);
  const std::string evaluate = "autograd::engine::evaluate_function: ";
  events.op(evaluate + "AddmmBackward0", 2, t + 50, t + 60, node + 2);
  events.kernel("gemm", 2, t + 52, t + 200, t + 260).kernel("sum", 2, t + 54, t + 260, t + 270);
  events.accumulate(2, t + 61, "[10]").op(evaluate + "TBackward0", 2, t + 64, t + 65, node + 1);
  events.accumulate(2, t + 66, "[10,16]").op(evaluate + "ConvolutionBackward0", 2, t + 70, t + 80, node);
  events.kernel("dconv", 2, t + 72, t + 270, t + 470).accumulate(2, t + 81, first_shape);
  events.kernel("ncclKernel_AllReduce_RING_LL_Sum_float", 2, t + 82.5, t + 300, t + 500);
  events.add("user_annotation", "Optimizer.step#SGD.step", 1, t + 100, t + 150);
  events.op("aten::add_", 1, t + 110, t + 120).kernel("add", 1, t + 112, t + 500, t + 520);
}

/// The same within ProfilerStep#number.
void add_step(Events& events, int number, double t, const std::string& first_shape = "[16,3,3,3]") {
  events.add("user_annotation", fmt::format("ProfilerStep#{}", number), 1, t, t + 900);
  add_unmarked_step(events, number, t, first_shape);
}

std::string refused(const Events& events) {
  return refusal_of(ScratchFile(events.file()), [](const std::string& path) { return import_kineto(path); });
}

}  // namespace

TEST_CASE("kernels are the compute of the operators that launched them", "[trace]") {
  Events events;
  add_step(events, 1, 1000);
  add_step(events, 2, 2000);
  const ScratchFile file(events.file());
  const ImportedTrace imported = import_kineto(file.path());
  REQUIRE(imported.trace.steps.size() == 2);
  CHECK(imported.device == "NVIDIA A100");
  CHECK_THAT(imported.wall[1].value(), WithinRel(900e-6, 1e-9));
  // conv 100, gemm 50 | gemm 60 and sum 10, dconv 200; neither NCCL, nor the copy, nor the optimizer.
  CHECK_THAT(compute_of(imported.trace.steps[1]).value(), WithinRel(420e-6, 1e-9));
  const TracedModel traced = layers_of(imported.trace, imported.hints);
  REQUIRE(traced.layers.size() == 2);
  CHECK(traced.layers[0].name == "conv2d.0");
  CHECK(traced.layers[0].kind == LayerKind::Conv);
  REQUIRE(traced.layers[0].variables.size() == 1);
  CHECK(traced.layers[0].variables[0].shape == std::vector<std::int64_t>{16, 3, 3, 3});
  CHECK(traced.layers[1].name == "linear.0");
  CHECK(traced.layers[1].kind == LayerKind::Dense);
  REQUIRE(traced.layers[1].variables.size() == 2);
  for (const TracedVariable& variable : traced.layers[1].variables)
    CHECK(variable.shape ==
          (variable.name == "linear.0/weight" ? std::vector<std::int64_t>{10, 16} : std::vector<std::int64_t>{10}));
  for (const auto& times : traced.steps) {
    CHECK_THAT(times[0].forward.value(), WithinRel(100e-6, 1e-9));
    CHECK_THAT(times[0].backward.value(), WithinRel(200e-6, 1e-9));
    CHECK_THAT(times[1].forward.value(), WithinRel(50e-6, 1e-9));
    CHECK_THAT(times[1].backward.value(), WithinRel(70e-6, 1e-9));
  }
  CHECK(imported.notes == std::vector<std::string>{"left out: collectives, 1 of untold size and 200.00 us in a step",
                                                   "left out: copies between host and device, 10.00 us in a step"});
  REQUIRE(imported.update);
  CHECK_THAT(imported.update->value(), WithinRel(20e-6, 1e-9));
}

// profile() without schedule= records no ProfilerStep#n: torch/profiler/profiler.py, record_steps.
TEST_CASE("without marks a step ends where the optimizer's step does", "[trace]") {
  Events events;
  add_unmarked_step(events, 1, 1000);
  // The first step has a kernel more, as warm-up has.
  events.op("aten::relu", 1, 1041, 1045).kernel("relu", 1, 1042, 1190, 1200);
  add_unmarked_step(events, 2, 2000);
  // A second optimizer that steps after the same gradients belongs to the same step.
  events.add("user_annotation", "Optimizer.step#Adam.step", 1, 2160, 2180);
  events.op("aten::mul_", 1, 2165, 2170).kernel("mul", 1, 2166, 2520, 2525);
  add_unmarked_step(events, 3, 3000);
  // What clears the gradients comes after the step that it belongs to and before the next one.
  events.add("user_annotation", "Optimizer.zero_grad#SGD.zero_grad", 1, 3200, 3210);
  const ScratchFile file(events.file());
  const ImportedTrace imported = import_kineto(file.path());
  REQUIRE(imported.trace.steps.size() == 2);
  CHECK(imported.notes.front() ==
        "no steps are marked (ProfilerStep#n): 3 are told by where the optimizer's steps end, and the first of them, "
        "which holds warm-up, is left out");
  for (const TraceStep& step : imported.trace.steps)
    CHECK_THAT(compute_of(step).value(), WithinRel(420e-6, 1e-9));  // as in the marked ones of the first test
  // From the end of the optimizer at 1150 to that of the second one at 2180, and from there to 3150.
  REQUIRE(imported.wall.size() == 2);
  CHECK_THAT(imported.wall[0].value(), WithinRel(1030e-6, 1e-9));
  CHECK_THAT(imported.wall[1].value(), WithinRel(970e-6, 1e-9));
  // The optimizers take 20 and 5 us in one step and 20 in the other.
  REQUIRE(imported.update);
  CHECK_THAT(imported.update->value(), WithinRel(22.5e-6, 1e-9));
}

TEST_CASE("of two unmarked steps none is left out", "[trace]") {
  Events events;
  add_unmarked_step(events, 1, 1000);
  add_unmarked_step(events, 2, 2000);
  const ScratchFile file(events.file());
  const ImportedTrace imported = import_kineto(file.path());
  CHECK(imported.trace.steps.size() == 2);
  CHECK(imported.notes.front() ==
        "no steps are marked (ProfilerStep#n): 2 are told by where the optimizer's steps end");
}

TEST_CASE("marked steps share nothing", "[trace]") {
  Events events;
  add_step(events, 1, 1000);
  add_step(events, 2, 2000);
  events.add("user_annotation", "ProfilerStep#3", 1, 1950, 3000);
  const ScratchFile file(events.file());
  const ImportedTrace imported = import_kineto(file.path());
  CHECK(imported.trace.steps.size() == 2);
  CHECK(imported.notes.front() == "left out: ProfilerStep#3, which accumulates no gradient");
}

TEST_CASE("the range that began last of those running is found, however ranges lie", "[trace]") {
  // Thread 1: 0..100 holds 10..40, which holds 20..30; 35..60 begins in the second and ends after it.
  const std::vector<detail::KinetoRange> ranges{
      {35, 60, "late", 1}, {0, 100, "all", 1}, {20, 30, "inner", 1}, {10, 40, "middle", 1}, {0, 50, "other", 2}};
  const detail::RangeIndex index(ranges);
  const auto around = [&](int thread, double time) {
    const detail::KinetoRange* found = index.around(thread, time);
    return found == nullptr ? std::string{} : std::string(found->name);
  };
  CHECK(around(1, -1).empty());
  CHECK(around(1, 0) == "all");
  CHECK(around(1, 20) == "inner");
  CHECK(around(1, 30) == "middle");
  CHECK(around(1, 39) == "late");
  CHECK(around(1, 60) == "all");
  CHECK(around(1, 100).empty());
  CHECK(around(2, 20) == "other");
  CHECK(around(3, 20).empty());
}

TEST_CASE("a long name is cut where a character ends", "[trace]") {
  Events events;
  add_step(events, 1, 1000);
  std::string name = "nn.Module: N";
  while (name.size() < 255) name += "a";
  // The 256th byte is the first of two that make a letter.
  events.add("python_function", name + "\u00e9\u00e9", 1, 1008, 1045);
  const ScratchFile file(events.file());
  const ImportedTrace imported = import_kineto(file.path());
  CHECK(imported.hints.variables.begin()->first == name.substr(11) + ".conv2d.0/weight");
}

TEST_CASE("the reading of a trace tells how far it is", "[trace]") {
  Events events;
  for (int step = 1; step <= 200; ++step) add_step(events, step, 1000.0 * step);
  const ScratchFile file(events.file());
  std::vector<double> shares;
  (void)import_kineto(file.path(), [&](double share) { shares.push_back(share); });
  REQUIRE(shares.size() > 2);
  CHECK(shares.front() > 0.0);
  CHECK(shares.front() < 0.5);
  CHECK(std::is_sorted(shares.begin(), shares.end()));
  CHECK(shares.back() == 1.0);
}

TEST_CASE("collectives say their bytes in the kernel, or where the operator handed them over", "[trace]") {
  const std::string arguments = R"("In msg nelems":1000,"Out msg nelems":250,"dtype":"Half")";
  Events events;
  add_step(events, 1, 1000);
  events.add("cpu_op", "record_param_comms", 2, 1082.4, 1082.6, arguments);
  const auto note = [](const std::string& text) {
    const ScratchFile file(text);
    return import_kineto(file.path()).notes.front();
  };
  // The larger of 1,000 and 250 elements, two bytes each.
  const std::string expected = "left out: collectives, 1 with 2.0 KiB and 200.00 us in a step";
  CHECK(note(events.file()) == expected);
  Events kernel;
  add_step(kernel, 1, 1000);
  std::string text = kernel.file();
  const std::string name = R"("name":"ncclKernel_AllReduce_RING_LL_Sum_float")";
  const auto at = text.find("\"args\":{", text.find(name)) + 8;
  CHECK(note(text.insert(at, arguments + ",")) == expected);
}

TEST_CASE("collectives of Gloo are ranges of the host and no compute", "[trace]") {
  Events events;
  events.add("user_annotation", "ProfilerStep#1", 1, 0, 400);
  events.op("aten::conv2d", 1, 10, 60, 1);
  events.op("autograd::engine::evaluate_function: ConvolutionBackward0", 1, 100, 190, 1).accumulate(1, 200, "[4]");
  events.op("c10d::allreduce_", 1, 210, 215);
  events.add("user_annotation", "gloo:all_reduce", 3, 211, 261, R"("Input Dims":[[4]],"Input type":["float"])");
  const ScratchFile file(events.file());
  const ImportedTrace imported = import_kineto(file.path());
  // 50 and 90, and the two that accumulate.
  CHECK_THAT(compute_of(imported.trace.steps[0]).value(), WithinRel(142e-6, 1e-9));
  CHECK(imported.notes == std::vector<std::string>{"left out: collectives, 1 with 16 B and 50.00 us in a step"});
  CHECK(!imported.update);
}

TEST_CASE("what follows the last gradient is the optimizer where none is marked", "[trace]") {
  Events events;
  events.add("user_annotation", "ProfilerStep#1", 1, 0, 400);
  events.op("aten::conv2d", 1, 10, 60, 1);
  events.op("autograd::engine::evaluate_function: ConvolutionBackward0", 1, 100, 190, 1).accumulate(1, 200, "[4]");
  events.op("aten::add_", 1, 220, 250);
  const ScratchFile file(events.file());
  const ImportedTrace imported = import_kineto(file.path());
  CHECK_THAT(compute_of(imported.trace.steps[0]).value(), WithinRel(142e-6, 1e-9));
  REQUIRE(imported.update);
  CHECK_THAT(imported.update->value(), WithinRel(30e-6, 1e-9));
  CHECK(imported.notes ==
        std::vector<std::string>{"no optimizer is marked (Optimizer.step): what begins after the last "
                                 "gradient of a step counts as one"});
}

TEST_CASE("layers are called like the modules that read their variables", "[trace]") {
  Events events;
  add_step(events, 1, 1000);
  events.add("python_function", "nn.Module: Net_0", 1, 1008, 1045);
  events.add("python_function", "nn.Module: Conv2d_0", 1, 1009, 1021);
  events.add("python_function", "nn.Module: Head_0", 1, 1028, 1042);
  const ScratchFile file(events.file());
  const ImportedTrace imported = import_kineto(file.path());
  const TracedModel traced = layers_of(imported.trace, imported.hints);
  REQUIRE(traced.layers.size() == 2);
  CHECK(traced.layers[0].name == "Conv2d_0");
  CHECK(traced.layers[0].kind == LayerKind::Conv);
  CHECK(traced.layers[1].name == "Head_0");
  // Two operators with variables in one module are told apart.
  Events one;
  add_step(one, 1, 1000);
  one.add("python_function", "nn.Module: Net_0", 1, 1008, 1045);
  const ScratchFile both(one.file());
  const ImportedTrace named = import_kineto(both.path());
  CHECK(named.hints.variables.contains("Net_0.conv2d.0/weight"));
  CHECK(named.hints.variables.contains("Net_0.linear.0/weight"));
}

TEST_CASE("what would have to be held as a whole has limits", "[trace]") {
  const auto refusal = [](const std::string& text) {
    return refusal_of(ScratchFile(text), [](const std::string& path) { return import_kineto(path); });
  };
  const std::size_t mega = 1 << 20;
  const std::string list = R"({"traceEvents":[{"ph":"X","name":")";
  CHECK(refusal(list + std::string(17 * mega, 'a') + R"("}]})") ==
        "FILE has a text of more than 16 MiB | this is no trace of a profiler");
  std::string numbers = R"({"traceEvents":[{"args":[1)";
  while (numbers.size() < 65 * mega) numbers += ",1";
  CHECK(refusal(numbers + "]}]}") == "FILE has an object of more than 64 MiB | this is no trace of a profiler");
  CHECK(refusal(std::string(300, '[')) ==
        "FILE has more than 256 objects and arrays inside one another | this is no trace of a profiler");
  // Gradients of one step, each with messages and a place in the step; 100,000 are taken.
  Events gradients;
  gradients.op("aten::conv2d", 1, 0, 1, 1);
  gradients.op("autograd::engine::evaluate_function: ConvolutionBackward0", 2, 5, 6, 1);
  for (int i = 0; i <= 100'000; ++i)
    gradients.add("cpu_op", "torch::autograd::AccumulateGrad", 2, 10 + i, 10.5 + i,
                  R"("Input Dims":[[4]],"Input type":["float"])");
  CHECK(refusal(gradients.file()) ==
        "FILE accumulates more than 100000 gradients in the whole trace | record steps of one model");
  // Many small events are no large object, nor are brackets and quotes in a text.
  std::string events = R"({"other":[1],"traceEvents":[{"name":"\\\"[[{"})";
  while (events.size() < 65 * mega) events += R"(,{"ph":"M","args":{"name":"[[[["}})";
  CHECK(refusal(events + "]}") ==
        "FILE has no operators (events of category cpu_op) | record with activities=[ProfilerActivity.CPU, ...]");
}

TEST_CASE("PyTorch's older profiler is refused by name", "[trace]") {
  const ScratchFile file(
      R"([{"name": "aten::conv2d", "ph": "X", "ts": 1, "dur": 5, "tid": 1, "pid": "CPU functions", "args": {}}])");
  CHECK(
      refusal_of(file, [](const std::string& path) { return import_kineto(path); }) ==
      "FILE comes from export_chrome_trace() of PyTorch's older profiler (a PyTorch without Kineto, such as Debian's "
      "python3-torch): it has neither the shapes of operators nor which backward function belongs to which of them | "
      "write the events of that profiler with models/trace/export_torch.py, or record with a PyTorch that has Kineto");
}

TEST_CASE("a gradient of two bytes an element keeps its bytes", "[trace]") {
  Events events;
  add_step(events, 1, 1000);
  std::string text = events.file();
  // The convolution's gradient: 16 x 3 x 3 x 3 elements of two bytes are 216 of four.
  const std::string dims = R"("Input Dims":[[16,3,3,3]],"Input type":[")";
  const auto at = text.find(dims);
  REQUIRE(at != std::string::npos);
  text.replace(at + dims.size(), 5, "c10::Half");
  const ScratchFile file(text);
  const ImportedTrace imported = import_kineto(file.path());
  CHECK(imported.hints.variables.at("conv2d.0/weight").shape == std::vector<std::int64_t>{216});
}

TEST_CASE("a trace that lacks what layers are made of is refused by name", "[trace]") {
  Events no_shapes;
  add_step(no_shapes, 1, 1000, "");
  CHECK(refused(no_shapes) ==
        "FILE has no shapes: nothing tells how large its gradients are | "
        "record with torch.profiler.profile(record_shapes=True)");
  CHECK(refused(Events{}) ==
        "FILE has no operators (events of category cpu_op) | record with activities=[ProfilerActivity.CPU, ...]");
  Events forward;
  forward.op("aten::conv2d", 1, 0, 10, 1);
  CHECK(refused(forward) ==
        "FILE has no backward pass: no gradient is accumulated (torch::autograd::AccumulateGrad) | "
        "record whole training steps");
  Events unmarked;
  unmarked.op("aten::conv2d", 1, 0, 10, 1);
  unmarked.op("autograd::engine::evaluate_function: ConvolutionBackward0", 1, 20, 30, 1).accumulate(1, 30, "[4]");
  const ScratchFile one(unmarked.file());
  CHECK(import_kineto(one.path()).notes ==
        std::vector<std::string>{"no steps are marked (ProfilerStep#n): the whole trace counts as one"});
  Events torn;
  torn.add("user_annotation", "ProfilerStep#1", 1, 0, 100);
  torn.op("autograd::engine::evaluate_function: ConvolutionBackward0", 1, 20, 30, 1).accumulate(1, 30, "[4]");
  CHECK(
      refused(torn) ==
      "FILE does not tell the forward operator of a gradient of shape [4] in ProfilerStep#1 | record whole steps: the "
      "'Sequence number' of a backward function is that of its forward operator");
  const auto gradient = [](const std::string& dims) {
    return refusal_of(ScratchFile(Events{}.op("aten::conv2d", 1, 0, 10, 1).accumulate(1, 30, dims).file()),
                      [](const std::string& path) { return import_kineto(path); });
  };
  CHECK(gradient("[3000000,3000000]") == "a gradient has more than 1000000000000 elements");
  CHECK(gradient("[\"x\"]") == "a gradient has an axis of \"x\"");
}

TEST_CASE("what is no JSON is refused with the place and with what stands there", "[trace]") {
  const auto refusal = [](const std::string& text) {
    const ScratchFile file(text);
    try {
      (void)import_kineto(file.path());
    } catch (const InputError& error) {
      std::string found = error.diagnostics().front().text();
      return found.substr(found.find(':') + 1);  // without the name of the file
    }
    return std::string("none");
  };
  const std::string help =
      "\n  help: a trace is what a profiler wrote: a JSON object or list, plain or compressed with gzip";
  CHECK(refusal("Dear reader") == "1:1: error: expected JSON, got 'D'" + help);
  CHECK(refusal("\x89PNG\r\n") == "1:1: error: expected JSON, got the byte 0x89" + help);
  CHECK(refusal("{\"traceEvents\": [\n{\"ph\": \"X\",}\n]}") == "2:12: error: expected JSON, got '}'" + help);
  const std::string cut = "error: expected JSON, and the file ends in the middle of it\n  help: was it cut off?";
  CHECK(refusal("{\"traceEvents\": [\n{}") == "2:3: " + cut);
  CHECK(refusal("") == "1:1: " + cut);
  CHECK(refusal("[1e999]").ends_with("has a number that is too large\n  help: this is no trace of a profiler"));
}
