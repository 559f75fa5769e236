#include "models/trace/trace.hpp"

#include <fmt/format.h>

#include <numeric>
#include <random>

#include "base/error.hpp"
#include "models/reader.hpp"
#include "models/trace/importers.hpp"
#include "models/trace/traced_model.hpp"
#include "models/trace/update_line.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/small_traces.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr const char* kHeader = "step,op,kind,variable,bytes,start_s,end_s,after\n";

/// What reading a file of these rows complains about.
std::string complaint(const std::string& rows) {
  try {
    (void)parse_trace(kHeader + rows, "t.csv");
  } catch (const InputError& error) {
    return error.diagnostics().front().text() + "\n";
  }
  return "none";
}

std::string refusal(const Trace& trace) {
  try {
    (void)layers_of(trace);
  } catch (const InputError& error) {
    return error.diagnostics().front().message;
  }
  return "none";
}

double sum(const std::vector<LayerTime>& times) {
  double total = 0.0;
  for (const LayerTime& time : times) total += time.forward.value() + time.backward.value();
  return total;
}

std::vector<std::string> names(const TracedModel& traced) {
  std::vector<std::string> out;
  for (const TracedLayer& layer : traced.layers) out.push_back(layer.name);
  return out;
}

}  // namespace

TEST_CASE("a trace that is written reads back", "[trace]") {
  const Trace trace{{two_layer_step(1), two_layer_step(4, 1.25)}};
  const Trace back = parse_trace(trace_text(trace), "t.csv");
  REQUIRE(back.steps.size() == 2);
  CHECK(back.steps[1].number == 4);
  CHECK(trace_text(back) == trace_text(trace));
  const TraceOp& fc = back.steps[1].ops[5];
  CHECK(fc.name == "fc");
  CHECK(fc.kind == TraceOpKind::Compute);
  CHECK(fc.after == std::vector<std::string>{"conv", "receive fc/weights", "receive global_step"});
  CHECK_THAT(fc.start.value(), WithinRel(6.25, 1e-12));
  CHECK(back.steps[0].ops[1].bytes.count == 800);
}

TEST_CASE("further columns of a trace are not looked at", "[trace]") {
  const Trace trace =
      parse_trace("why,step,op,kind,variable,bytes,start_s,end_s,after\nx,1,a,compute,,,0,1,\n", "t.csv");
  CHECK(trace.steps.front().ops.front().name == "a");
}

TEST_CASE("wrong rows of a trace are named with their line", "[trace]") {
  CHECK(complaint("1,a,computes,,0,0,1,\n") ==
        "t.csv:2:1: error: column 'kind': 'computes' is not one of receive, compute, send, update, all-reduce\n"
        "  help: did you mean 'compute'?\n");
  CHECK(complaint("1,a,compute,,0,2,1,\n") == "t.csv:2:1: error: operation 'a' ends at 1 s, before it starts at 2 s\n");
  CHECK(complaint("1,load,compute,,0,0,1,\n1,b,compute,,0,1,2,loda\n") ==
        "t.csv:3:1: error: column 'after': step 1 has no operation 'loda'\n  help: did you mean 'load'?\n");
  CHECK(complaint("1,a,compute,,0,0,1,c\n1,b,compute,,0,1,2,\n1,c,compute,,0,1,2,a;b\n") ==
        "t.csv:2:1: error: operation 'a' of step 1 waits for itself, or for others that wait for each other\n");
  CHECK(complaint("1,a,compute,,0,0,1,\n2,r,receive,v,4,0,1,\n") ==
        "t.csv:3:1: error: step 2 has no compute operation\n");
  CHECK(complaint("1,a,compute,,0,0,1,\n1,b,compute,,0,0,1,\n1,a,compute,,0,1,2,\n") ==
        "t.csv:4:1: error: step 1 has the operation 'a' already, in line 2\n");
  CHECK(complaint("1,r,receive,v,-4,0,1,\n") == "t.csv:2:1: error: column 'bytes': expected 0 to 1e+15, got -4\n");
  CHECK(complaint("1,r,receive,v,1.5,0,1,\n") ==
        "t.csv:2:1: error: column 'bytes': expected a whole number, got 1.5\n");
  CHECK(complaint("1,r,receive,,4,0,1,\n") == "t.csv:2:1: error: column 'variable' is empty, which no 'receive' is\n");
  CHECK(complaint("1,a,compute,v,0,0,1,\n") ==
        "t.csv:2:1: error: column 'variable': a compute operation names the all-reduced variables that it reads, and "
        "step 1 all-reduces no 'v'\n");
  CHECK(complaint("1,a,compute,,4,0,1,\n") == "t.csv:2:1: error: column 'bytes': a compute operation moves none\n");
  CHECK(complaint("1,a,compute,,0,,1,\n") == "t.csv:2:1: error: column 'start_s' is empty\n");
  CHECK(complaint("1,a,compute,,0,0,1,b;;c\n") ==
        "t.csv:2:1: error: column 'after': a name between two ';' is empty\n");
  CHECK(complaint("1,a;b,compute,,0,0,1,\n") ==
        "t.csv:2:1: error: column 'op': the name 'a;b' holds a ';', which separates names in 'after'\n");
  CHECK(complaint("").find("t.csv: the trace has no operation") != std::string::npos);
}

TEST_CASE("layers begin where a variable is first used and end where its gradient is ready", "[trace]") {
  const TracedModel traced = layers_of({{two_layer_step(1), two_layer_step(2, 2.0)}});
  REQUIRE(names(traced) == std::vector<std::string>{"outside", "conv", "fc"});
  CHECK(traced.layers[1].variables.front().name == "conv/weights");
  CHECK(traced.layers[1].variables.front().shape == std::vector<std::int64_t>{100});
  CHECK(traced.layers[2].variables.front().shape == std::vector<std::int64_t>{200});
  // load | conv | fc, and in the backward pass dfc | dconv | tail; the wait of fc until 5 s is no compute.
  const std::vector<std::pair<double, double>> expected{{1.0, 0.5}, {2.0, 4.0}, {1.0, 2.0}};
  for (std::size_t step = 0; step < 2; ++step) {
    for (std::size_t layer = 0; layer < 3; ++layer) {
      const double slow = step == 0 ? 1.0 : 2.0;
      CHECK_THAT(traced.steps[step][layer].forward.value(), WithinRel(slow * expected[layer].first, 1e-12));
      CHECK_THAT(traced.steps[step][layer].backward.value(), WithinRel(slow * expected[layer].second, 1e-12));
    }
  }
  REQUIRE(traced.notes.size() == 1);
  CHECK(traced.notes.front() == "left out, because received and never sent: global_step (8 B)");
}

TEST_CASE("variables that are used together are apart where their gradients are", "[trace]") {
  // One operation reads weights and bias; the bias' gradient is made first, so that it is the later layer of the two.
  TraceStep step;
  step.ops = {receive_op("fc/bias", 40, 0, 1),
              receive_op("fc/weights", 400, 0, 1),
              compute_op("fc", 1, 3, {"receive fc/bias", "receive fc/weights"}),
              compute_op("dbias", 3, 4, {"fc"}),
              compute_op("dweights", 4, 7, {"dbias"}),
              send_op("fc/bias", 40, 4, "dbias"),
              send_op("fc/weights", 400, 7, "dweights")};
  const TracedModel traced = layers_of({{step}});
  REQUIRE(names(traced) == std::vector<std::string>{"fc", "fc.bias"});
  CHECK(traced.layers[0].variables.front().name == "fc/weights");
  CHECK(traced.steps[0][0].forward.value() == 0.0);
  CHECK_THAT(traced.steps[0][0].backward.value(), WithinRel(3.0, 1e-12));
  CHECK_THAT(traced.steps[0][1].forward.value(), WithinRel(2.0, 1e-12));
  CHECK_THAT(traced.steps[0][1].backward.value(), WithinRel(1.0, 1e-12));

  // Ready together, they are one layer.
  step.ops[5].after = {"dweights"};
  const TracedModel together = layers_of({{step}});
  REQUIRE(names(together) == std::vector<std::string>{"fc"});
  CHECK(together.layers[0].variables.size() == 2);
}

TEST_CASE("compute of several streams counts once", "[trace]") {
  // 0-4 and 2-6 at once, then 8-9: 7 s. What both did counts for the one that began first.
  TraceStep step;
  step.ops = {receive_op("a/w", 4, 0, 0),
              receive_op("b/w", 4, 0, 0),
              compute_op("fa", 0, 4, {"receive a/w"}),
              compute_op("fb", 2, 6, {"receive b/w"}),
              compute_op("d", 8, 9, {"fa", "fb"}),
              send_op("a/w", 4, 9, "d"),
              send_op("b/w", 4, 9, "d")};
  CHECK_THAT(compute_of(step).value(), WithinRel(7.0, 1e-12));
  const TracedModel traced = layers_of({{step}});
  REQUIRE(names(traced) == std::vector<std::string>{"a", "b"});
  CHECK_THAT(traced.steps[0][0].forward.value(), WithinRel(4.0, 1e-12));
  CHECK_THAT(traced.steps[0][1].forward.value(), WithinRel(2.0, 1e-12));
  CHECK_THAT(traced.steps[0][1].backward.value(), WithinRel(1.0, 1e-12));
  CHECK(traced.steps[0][0].backward.value() == 0.0);
}

TEST_CASE("a gradient that is ready before one of a later layer counts as ready with it", "[trace]") {
  TraceStep step = two_layer_step(1);
  for (TraceOp& op : step.ops) {
    if (op.name == "send conv/weights") op.after = {"dfc"};
    if (op.name == "send fc/weights") op.after = {"dconv"};
  }
  const TracedModel traced = layers_of({{step}});
  CHECK_THAT(sum(traced.steps[0]), WithinRel(10.5, 1e-12));
  CHECK(traced.steps[0][1].backward.value() == 0.0);
  CHECK_THAT(traced.steps[0][2].backward.value(), WithinRel(6.0, 1e-12));
  CHECK(traced.notes.back() ==
        "1 gradients are ready before those of later layers, by up to 4.000 s, and count as ready with them");
}

TEST_CASE("messages that follow one another on the wire carry no data between variables", "[trace]") {
  TraceStep step = two_layer_step(1);
  for (TraceOp& op : step.ops) {
    if (op.name == "receive fc/weights") op.after = {"receive conv/weights"};
    if (op.name == "send conv/weights") op.after = {"dconv", "send fc/weights"};
  }
  const auto expected = layers_of({{two_layer_step(1)}});
  const auto ordered = layers_of({{step}});
  for (std::size_t layer = 0; layer < 3; ++layer) {
    CHECK(ordered.steps[0][layer].forward == expected.steps[0][layer].forward);
    CHECK(ordered.steps[0][layer].backward == expected.steps[0][layer].backward);
  }
}

TEST_CASE("the times of every step add up to its compute, whatever the operations", "[trace]") {
  constexpr unsigned kSeed = 20;
  INFO("seed " << kSeed);
  std::mt19937 draw(kSeed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(draw()) % n; };
  for (int round = 0; round < 200; ++round) {
    constexpr std::size_t kOps = 24;
    TraceStep step;
    for (std::size_t i = 0; i < kOps; ++i) {
      const double start = static_cast<double>(below(100));
      step.ops.push_back(compute_op(fmt::format("op{}", i), start, start + static_cast<double>(below(12))));
    }
    for (std::size_t v = 0; v < 6; ++v) {
      const std::string name = fmt::format("v{}/w", v);
      step.ops[below(kOps)].after.push_back("receive " + name);
      step.ops.push_back(receive_op(name, 4, 0, 1));
      step.ops.push_back(send_op(name, 4, 100, fmt::format("op{}", below(kOps))));
    }
    const TracedModel traced = layers_of({{step}});
    CHECK_THAT(sum(traced.steps[0]), WithinAbs(compute_of(step).value(), 1e-9));
    for (const LayerTime& time : traced.steps[0]) {
      CHECK(time.forward.value() >= 0.0);
      CHECK(time.backward.value() >= 0.0);
    }
  }
}

TEST_CASE("a trace that does not tell its layers is refused", "[trace]") {
  TraceStep step = two_layer_step(3);
  step.ops[4].after = {"load"};
  CHECK(refusal({{step}}) == "step 3: no compute operation comes after the receive of 'conv/weights'");
  step = two_layer_step(3);
  step.ops[9].after = {};
  CHECK(refusal({{step}}) == "step 3: the send of 'conv/weights' comes after no compute operation");
  step = two_layer_step(2);
  step.ops[0].bytes = {404};
  CHECK(refusal({{two_layer_step(1), step}}) ==
        "steps 1 and 2 differ: 'conv/weights' is received with 400 B in one and with 404 B in the other");
  step.ops = {compute_op("a", 0, 1)};
  CHECK(refusal({{step}}) == "no variable of the trace is both received and sent");
}

TEST_CASE("the model of a trace is one given in numbers", "[trace]") {
  const TracedModel traced = layers_of({{two_layer_step(1)}});
  const Model model = parse_model(
      model_text(traced, {.name = "two", .device = "GPU", .batch = 8, .framework = "f", .source = "made up"}),
      "t.yaml");
  CHECK(model.name() == "two");
  CHECK(model.default_batch() == 8);
  REQUIRE(model.variables().size() == 2);
  CHECK(model.variable(0).name == "conv/weights");
  CHECK(model.variable(1).name == "fc/weights");
  CHECK(model.parameter_bytes().count == 1200);
}

TEST_CASE("names that no model takes are made ones that it does", "[trace]") {
  TraceStep step;
  step.ops = {receive_op("tower:0/conv 1/w", 4, 0, 0), compute_op("f", 0, 1, {"receive tower:0/conv 1/w"}),
              send_op("tower:0/conv 1/w", 4, 1, "f")};
  const TracedModel traced = layers_of({{step}});
  CHECK(names(traced) == std::vector<std::string>{"tower_0.conv_1"});
  const Model model =
      parse_model(model_text(traced, {.name = "x", .device = "GPU", .framework = "f", .source = "made up"}), "t.yaml");
  CHECK(model.variable(0).name == "tower_0.conv_1/w");
}

TEST_CASE("all-reduced variables make layers, and their collectives are no compute", "[trace]") {
  const Trace trace = parse_trace(
      "step,op,kind,variable,bytes,start_s,end_s,after\n"
      "1,f1,compute,a,,0,1,\n"
      "1,f2,compute,b;a,,1,3,f1\n"
      "1,b2,compute,,,3,7,f2\n"
      "1,sum b,all-reduce,b,400,7,9,b2\n"
      "1,b1,compute,,,7,10,b2\n"
      "1,sum a,all-reduce,a,800,10,13,b1\n"
      "1,sum c,all-reduce,c,80,12,14,b1\n"
      "1,step,update,a,,14,14.5,sum a\n",
      "t.csv");
  CHECK(trace_text(parse_trace(trace_text(trace), "again")) == trace_text(trace));
  const ImportedTrace imported = import_own(trace);
  const TracedModel traced = layers_of(imported.trace, imported.hints);
  CHECK(names(traced) == std::vector<std::string>{"a", "b"});
  // Forward 1 and 2 s, backward 4 s of b's layer and 3 s of a's.
  CHECK_THAT(traced.steps[0][0].forward.value(), WithinRel(1.0, 1e-12));
  CHECK_THAT(traced.steps[0][0].backward.value(), WithinRel(3.0, 1e-12));
  CHECK_THAT(traced.steps[0][1].forward.value(), WithinRel(2.0, 1e-12));
  CHECK_THAT(traced.steps[0][1].backward.value(), WithinRel(4.0, 1e-12));
  CHECK(traced.layers[0].variables[0].shape == std::vector<std::int64_t>{200});
  REQUIRE(imported.update);
  CHECK_THAT(imported.update->value(), WithinRel(0.5, 1e-12));
  CHECK(!fit_updates(imported.trace));
  // From 7 to 9 and from 10 to 14 s; 400 + 800 + 80 B.
  CHECK(imported.notes == std::vector<std::string>{"left out: collectives of 1.2 KiB, 6.000 s in a step"});
  CHECK(traced.notes == std::vector<std::string>{"left out, because sent and never received: c (80 B)"});
}

TEST_CASE("updates on a server give a line where they tell one", "[trace]") {
  // 10 us + bytes / (2 GB/s), exactly; then sizes that say nothing about the constant.
  const auto with = [](const std::vector<std::pair<std::int64_t, double>>& updates) {
    TraceStep step;
    for (const auto& [bytes, time] : updates)
      step.ops.push_back(
          {fmt::format("u{}", step.ops.size()), TraceOpKind::Update, "v", {bytes}, Seconds{}, Seconds{time}, {}});
    return fit_updates({{step}});
  };
  const auto line = with({{2000, 11e-6}, {20000, 20e-6}, {200000, 110e-6}});
  REQUIRE(line);
  CHECK_THAT(line->per_tensor.value().value(), WithinRel(10e-6, 1e-6));
  CHECK_THAT(line->rate.value().value(), WithinRel(2e9, 1e-6));
  CHECK(line->operations == 3);
  const auto flat = with({{2000, 10e-6}, {20000, 30e-6}, {200000, 20e-6}, {40000, 20e-6}});
  REQUIRE(flat);
  CHECK_FALSE(flat->rate);
  CHECK_FALSE(with({{2000, 11e-6}, {20000, 20e-6}}));
}
