#include "sim/timeline/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "sim/timeline/instance_filter.hpp"
#include "strategies/pipeline/pipeline_schedule.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/explain_support.hpp"

namespace simsync {
namespace {

using namespace test;
using nlohmann::json;

struct Trace {
  json whole;
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::string> rows;    ///< process, thread -> name
  std::map<std::string, std::vector<json>> events;    ///< `node0 ...|gpu0 compute` -> its events
  std::map<int, std::pair<json, json>> arrows;        ///< by id: where it begins and ends
  std::map<std::string, std::vector<json>> counters;  ///< `node0 ...|nic-out Gbit/s` -> its samples
  std::vector<std::string> left_out;
  std::size_t size = 0;  ///< of the file
};

/// An arrow's end lies in a box of its row: Perfetto binds it to that.
void require_in_box(const Trace& trace, const json& end) {
  const std::pair<int, int> key{end["pid"], end["tid"]};
  const std::string row = trace.processes.at(key.first) + "|" + trace.rows.at(key);
  const double at = end["ts"];
  const auto& boxes = trace.events.at(row);
  REQUIRE(std::any_of(boxes.begin(), boxes.end(), [&](const json& box) {
    return box["ts"].get<double>() <= at && at <= box["ts"].get<double>() + box["dur"].get<double>();
  }));
}

/// What the Trace Event format asks of flow events: each id begins once and ends once, and later.
void require_arrows(const Trace& trace) {
  for (const auto& [id, ends] : trace.arrows) {
    CAPTURE(id);
    REQUIRE(ends.first.is_object());
    REQUIRE(ends.second.is_object());
    REQUIRE(ends.first["ts"].get<double>() <= ends.second["ts"].get<double>());
    REQUIRE(ends.first["name"] == ends.second["name"]);
    REQUIRE(ends.first["cat"] == ends.second["cat"]);
    REQUIRE(ends.second["bp"] == "e");
    require_in_box(trace, ends.first);
    require_in_box(trace, ends.second);
  }
}

/// Reads a trace back and checks what holds for every one.
Trace trace_of(const Problem& problem, const Prediction& prediction, const TimelineOptions& options = {}) {
  std::stringstream text;
  Trace trace;
  trace.left_out = write_timeline(text, {problem.plan, problem.cluster, prediction}, options);
  trace.size = text.str().size();
  trace.whole = json::parse(text);
  double before = 0.0;
  std::map<std::pair<int, int>, std::vector<std::pair<std::int64_t, std::int64_t>>> times;
  for (const json& event : trace.whole["traceEvents"]) {
    const std::pair<int, int> row{event["pid"], event["tid"]};
    if (event["ph"] == "M") {
      if (event["name"] == "process_name") trace.processes[row.first] = event["args"]["name"];
      if (event["name"] == "thread_name") trace.rows[row] = event["args"]["name"];
      continue;
    }
    REQUIRE(event["ts"].get<double>() >= before);
    before = event["ts"];
    if (event["ph"] == "C") {
      trace.counters[trace.processes.at(row.first) + "|" + event["name"].get<std::string>()].push_back(event);
      continue;
    }
    if (event["ph"] == "s" || event["ph"] == "f") {
      auto& ends = trace.arrows[event["id"].get<int>()];
      json& end = event["ph"] == "s" ? ends.first : ends.second;
      REQUIRE(end.is_null());
      end = event;
      continue;
    }
    REQUIRE(event["ph"] == "X");
    REQUIRE(event["dur"].get<double>() >= 0.0);
    REQUIRE(trace.rows.contains(row));
    const std::int64_t begin = std::llround(event["ts"].get<double>() * 1e3);
    times[row].emplace_back(begin, begin + std::llround(event["dur"].get<double>() * 1e3));
    trace.events[trace.processes.at(row.first) + "|" + trace.rows.at(row)].push_back(event);
  }
  for (auto& [row, spans] : times) {
    CAPTURE(trace.rows.at(row));
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i) REQUIRE(spans[i - 1].second <= spans[i].first);
  }
  require_arrows(trace);
  return trace;
}

std::vector<std::string> names(const std::vector<json>& events) {
  std::vector<std::string> out;
  for (const json& event : events) out.push_back(event["name"]);
  return out;
}

TEST_CASE("a timeline has a row for each stream and each link", "[engine][timeline]") {
  // Steps of 149 ms (explain_test.cpp): forward [0, 10], backward [10, 30], all-reduce [30, 144], update [144, 149].
  const Problem problem = two_ranks();
  const Prediction prediction = recorded(problem);
  const Trace trace = trace_of(problem, prediction);
  const std::string node = "node0 (1 x GPU)|";
  REQUIRE(trace.events.contains("node1 (1 x GPU)|gpu0 compute"));
  const auto& compute = trace.events.at(node + "gpu0 compute");
  REQUIRE(compute.size() == 3 * prediction.steps.size());
  // One op in the plan, two boxes: forward and backward of the only layer were merged.
  const auto compute_names = names(compute);
  REQUIRE(std::vector<std::string>(compute_names.begin(), compute_names.begin() + 3) ==
          std::vector<std::string>{"forward a", "backward a", "update all variables"});
  REQUIRE_THAT(compute[1]["ts"].get<double>(), WithinAbs(10e3, 1e-2));
  REQUIRE_THAT(compute[1]["dur"].get<double>(), WithinAbs(20e3, 1e-2));
  REQUIRE(compute[1]["args"]["layer"] == "a");
  REQUIRE(compute[2]["args"]["cause"] == "all-reduce a/weight");

  const json& reduce = trace.events.at(node + "gpu0 communication").front();
  REQUIRE(reduce["name"] == "all-reduce a/weight");
  REQUIRE_THAT(reduce["ts"].get<double>(), WithinAbs(30e3, 1e-2));
  REQUIRE_THAT(reduce["dur"].get<double>(), WithinAbs(114e3, 1e-1));
  REQUIRE(reduce["args"]["bytes"] == 10e6);
  REQUIRE(reduce["args"]["cause"] == "forward a ... backward a on node1:gpu0");

  // 2 ms launch and 2 ms latency before the flow, which carries 2 x (5 + 0.5) MB.
  const json& flow = trace.events.at(node + "nic-out").front();
  REQUIRE(flow["name"] == "all-reduce a/weight");
  REQUIRE_THAT(flow["ts"].get<double>(), WithinAbs(34e3, 1e-1));
  REQUIRE_THAT(flow["args"]["bytes"].get<double>(), WithinRel(11e6, 1e-9));
  REQUIRE(flow["args"]["route"] == "node0/gpu0/pcie-out > node0/nic-out > node1/nic-in > node1/gpu0/pcie-in");
  REQUIRE(names(trace.events.at("job|iterations")).front() == "iteration 1");
  REQUIRE(trace.whole["otherData"]["fidelity"] == "fluid");
}

TEST_CASE("of many steps the first are shown, fewer of large ones", "[engine][timeline]") {
  const auto shown = [](std::size_t parts) {
    Problem problem = two_ranks();
    problem.profile.variation = 0.3;
    problem.options.steps_per_worker = 100;
    compile_again(problem);
    for (Op& op : problem.plan.ops) {
      auto* work = std::get_if<Compute>(&op.body);
      if (work == nullptr) continue;
      const ComputePart first = work->parts.front();
      work->parts.assign(parts, {first.layer, first.phase, (1.0 / static_cast<double>(parts)) * work->duration});
    }
    const Trace trace = trace_of(problem, recorded(problem), {.most_boxes = 40'000});
    const std::size_t steps = trace.events.at("job|iterations").size();
    CHECK(trace.left_out.front() == "all but the first " + std::to_string(steps) + " of 100 steps");
    return steps;
  };
  CHECK(shown(1) == 60);
  // Two ranks, two ops of compute: a little more than 4 x 200 boxes a step, of which 40,000 are shown.
  CHECK(shown(200) < 50);
  CHECK(shown(200) >= 45);
}

TEST_CASE("arrows lead from what ended to what it let begin", "[engine][timeline]") {
  // In every step the all-reduce waits for a backward (of the other row of the GPU), the update for the all-reduce.
  const Problem problem = two_ranks();
  const Prediction prediction = recorded(problem);
  const Trace trace = trace_of(problem, prediction);
  std::set<std::pair<double, double>> times;  // ms from the beginning of the first step
  for (const auto& [id, ends] : trace.arrows)
    times.emplace(std::round(ends.first["ts"].get<double>() / 1e3), std::round(ends.second["ts"].get<double>() / 1e3));
  CHECK(times.contains({30.0, 30.0}));
  CHECK(times.contains({144.0, 144.0}));
  // One update on each of two devices, and one all-reduce, in each of the steps.
  CHECK(trace.arrows.size() == 3 * prediction.steps.size());
}

TEST_CASE("counters show what each link carries", "[engine][timeline]") {
  // 11 MB, 0.5 of them for each message's fixed cost, at the 100 MB/s = 0.8 Gbit/s of the NIC from 34 to 144 ms, and
  // nothing before and after.
  Problem problem = two_ranks();
  problem.options.record_rates = true;
  const Trace trace = trace_of(problem, recorded(problem));
  const auto& samples = trace.counters.at("node0 (1 x GPU)|nic-out Gbit/s");
  const auto rate_at = [&](double ms) {
    double rate = -1.0;
    for (const json& sample : samples)
      if (sample["ts"].get<double>() <= ms * 1e3) rate = sample["args"]["Gbit/s"];
    return rate;
  };
  CHECK(rate_at(20.0) == 0.0);
  CHECK_THAT(rate_at(90.0), WithinAbs(0.8, 0.001));
  CHECK(rate_at(147.0) == 0.0);
  double bytes = 0.0;  // of the first step
  for (std::size_t i = 1; i < samples.size() && samples[i]["ts"].get<double>() <= 149e3; ++i)
    bytes += samples[i - 1]["args"]["Gbit/s"].get<double>() * 125.0 *
             (samples[i]["ts"].get<double>() - samples[i - 1]["ts"].get<double>());
  CHECK_THAT(bytes, WithinRel(11e6, 0.02));
}

TEST_CASE("a timeline of one rank and the last step is small, and counts everybody's bytes", "[engine][timeline]") {
  Problem problem =
      problem_of(chain({{1000, 300}, {500, 700}}), slow_cluster(4), "ps", 4, {Seconds{0.010}, Seconds{0.020}});
  const Prediction whole = recorded(problem);
  const Trace all = trace_of(problem, whole);
  problem.options.recorded_ranks = representative_ranks(problem.plan, problem.cluster);
  problem.options.recorded_steps = 1;
  problem.options.record_rates = true;
  REQUIRE(problem.options.recorded_ranks == std::vector<Place>{{0, 0}});
  const Prediction part = recorded(problem);
  CHECK(part.step == whole.step);
  CHECK(part.spans.size() < whole.spans.size() / 4);
  const Trace trace = trace_of(problem, part, {.ranks = problem.options.recorded_ranks, .last_steps = 1});
  CHECK(trace.size < all.size / 3);
  REQUIRE(trace.events.at("job|iterations").size() == 1);
  CHECK(trace.events.at("job|iterations").front()["name"] == "iteration " + std::to_string(whole.steps.size()));
  CHECK(trace.events.contains("node0 (1 x GPU)|gpu0 compute"));
  CHECK(!trace.events.contains("node1 (1 x GPU)|gpu0 compute"));
  // The same picture from a record of everything.
  problem.options.recorded_ranks = {};
  const Trace filtered = trace_of(problem, recorded(problem), {.ranks = {{0, 0}}, .last_steps = 1});
  for (const auto& [row, events] : trace.events) {
    CAPTURE(row);
    CHECK(names(filtered.events.at(row)) == names(events));
  }
  CHECK((filtered.counters == trace.counters));
}

TEST_CASE("where there are too many boxes, the shortest are merged", "[engine][timeline]") {
  std::vector<std::vector<std::int64_t>> shapes(26, {100, 1000});
  const Problem problem = problem_of(chain(shapes), slow_cluster(8), "ps", 8, {Seconds{0.001}, Seconds{0.002}});
  const Prediction prediction = recorded(problem);
  const auto boxes = [](const Trace& trace) {
    std::size_t sum = 0;
    for (const auto& row : trace.events) sum += row.second.size();
    return sum;
  };
  const Trace whole = trace_of(problem, prediction, {.last_steps = 1});
  for (const std::string& text : whole.left_out) CHECK_THAT(text, !Catch::Matchers::StartsWith("single boxes"));
  const Trace thin = trace_of(problem, prediction, {.last_steps = 1, .most_boxes = 300});
  CHECK(boxes(thin) <= 300);
  REQUIRE(thin.left_out.size() == 2);
  CHECK_THAT(thin.left_out.back(), ContainsSubstring(" arrows: between the same two merged boxes it draws one"));
  CHECK_THAT(thin.left_out.front(), Catch::Matchers::StartsWith("single boxes shorter than "));
  CHECK_THAT(thin.left_out.front(), ContainsSubstring("neighbors are merged"));
  std::set<std::string> seen;
  for (const auto& row : thin.events)
    for (const auto& name : names(row.second)) seen.insert(name);
  CHECK(
      std::any_of(seen.begin(), seen.end(), [](const auto& name) { return name.find(" and ") != std::string::npos; }));
}

TEST_CASE("arrows lead from and to merged boxes", "[engine][timeline]") {
  // P3 cuts 26 variables into pieces of 10 KB: far more messages than boxes, nearly all of which are merged.
  std::vector<std::vector<std::int64_t>> shapes(26, {100, 1000});
  const Problem problem =
      problem_of(chain(shapes), slow_cluster(4), "p3", 4, {Seconds{0.001}, Seconds{0.002}}, {{"slice", "10000"}});
  const Prediction prediction = recorded(problem);
  const Trace whole = trace_of(problem, prediction, {.last_steps = 1});
  const Trace thin = trace_of(problem, prediction, {.last_steps = 1, .most_boxes = 200});
  CHECK(whole.left_out.empty());
  CHECK(!thin.arrows.empty());
  CHECK(thin.arrows.size() < whole.arrows.size());
  std::set<std::int64_t> starts, ends_of_spans;  // ns
  for (const Span& span : prediction.spans) {
    starts.insert(std::llround(span.start.value() * 1e9));
    ends_of_spans.insert(std::llround(span.end.value() * 1e9));
  }
  const auto in_merged_box = [&](const json& end) {
    const std::pair<int, int> key{end["pid"], end["tid"]};
    const auto& boxes = thin.events.at(thin.processes.at(key.first) + "|" + thin.rows.at(key));
    const double at = end["ts"];
    return std::any_of(boxes.begin(), boxes.end(), [&](const json& box) {
      const double begin = box["ts"];
      return box["args"].contains("boxes") && begin <= at && at <= begin + box["dur"].get<double>();
    });
  };
  bool merged = false;
  for (const auto& [id, ends] : thin.arrows) {
    // At the times of the spans, not of the merged boxes; an arrow begins a nanosecond before its box is over.
    const std::int64_t from = std::llround(ends.first["ts"].get<double>() * 1e3);
    CHECK((ends_of_spans.contains(from) || ends_of_spans.contains(from + 1)));
    CHECK(starts.contains(std::llround(ends.second["ts"].get<double>() * 1e3)));
    merged = merged || in_merged_box(ends.first) || in_merged_box(ends.second);
  }
  CHECK(merged);
}

TEST_CASE("a folded timeline says what its nodes stand for", "[engine][timeline]") {
  const Problem problem =
      problem_of(chain({{1000, 2500}}), slow_cluster(5), "all-reduce", 5, {Seconds{0.010}, Seconds{0.020}});
  const Prediction prediction = recorded(problem);
  REQUIRE(prediction.fidelity == Fidelity::Folded);
  REQUIRE(prediction.stands_for == std::map<int, int>{{0, 5}});
  const Trace trace = trace_of(problem, prediction);
  REQUIRE(trace.events.contains("node0 (1 x GPU), stands for 5 nodes|gpu0 compute"));
  REQUIRE(trace.whole["otherData"]["nodes_represented"] == json{{"node0", 5}});
  REQUIRE(trace.whole["otherData"]["workers"] == 5);
}

TEST_CASE("crowded links stay readable", "[engine][timeline]") {
  // Twenty-six variables on one server: their pulls by seven other nodes are one box each, and no more than nine rows.
  std::vector<std::vector<std::int64_t>> shapes(26, {100, 1000});
  const Problem problem = problem_of(chain(shapes), slow_cluster(8), "ps", 8, {Seconds{0.001}, Seconds{0.002}});
  const Prediction prediction = recorded(problem);
  const Trace trace = trace_of(problem, prediction);
  std::map<std::string, int> rows_of_link;
  std::set<std::string> seen;
  for (const auto& [row, events] : trace.events) {
    if (row.find("|nic-out") != std::string::npos) ++rows_of_link[row.substr(0, row.find('|'))];
    for (const auto& name : names(events)) seen.insert(name);
  }
  for (const auto& [node, rows] : rows_of_link) REQUIRE(rows <= 9);
  REQUIRE(seen.contains("pull a/weight x7"));
  REQUIRE(seen.contains("push a/weight"));
  REQUIRE(seen.contains("serve a/weight"));
  REQUIRE(std::any_of(seen.begin(), seen.end(), [](const std::string& name) { return name.ends_with(" more"); }));
}

TEST_CASE("every fidelity and strategy gives rows without overlaps", "[engine][timeline]") {
  const auto builder = GENERATE(as<std::string>{}, "ddp", "wfbp", "byteps", "p3", "poseidon", "ps-load-balancing");
  const auto fidelity = GENERATE(Fidelity::Auto, Fidelity::Steps);
  CAPTURE(builder);
  Problem problem = problem_of(chain({{1000, 300}, {500, 700}, {2000, 400}}), slow_cluster(3, 2), builder, 6,
                               {Seconds{0.010}, Seconds{0.020}});
  problem.options.fidelity = fidelity;
  const Trace trace = trace_of(problem, recorded(problem));
  REQUIRE(!trace.events.empty());
}

TEST_CASE("passes of a stage have a row of their own, in the order of the schedule", "[engine][timeline]") {
  const auto schedule = GENERATE(as<std::string>{}, "gpipe", "1f1b", "interleaved", "zero-bubble");
  const int chunks = schedule == "interleaved" ? 2 : 1;
  CAPTURE(schedule);
  const Problem problem = prepare({.model = "gpt2",
                                   .cluster = "two-nodes",
                                   .strategy = "ddp",
                                   .workers = 2,
                                   .batch = 4,
                                   .settings = {{"strategy.pipeline", "2"},
                                                {"strategy.schedule", schedule},
                                                {"strategy.chunks", std::to_string(chunks)},
                                                {"strategy.micro_steps", "4"}}});
  const Trace trace = trace_of(problem, recorded(problem), {.last_steps = 1});
  const PipelineShape shape = problem.strategy.graph.parallel.shape(4);
  for (int stage = 0; stage < 2; ++stage) {
    const auto& boxes = trace.events.at("node0 (2 x T4)|gpu" + std::to_string(stage) + " passes");
    std::vector<std::string> order;
    for (const StageTask& task : stage_order(shape, stage)) order.push_back(name_of(task));
    CHECK(names(boxes) == order);
    CHECK(boxes.front()["args"]["micro_batch"] == 0);
    CHECK(boxes.front()["args"]["ranks"] == "ranks of stage " + std::to_string(stage));
  }
}

}  // namespace
}  // namespace simsync
