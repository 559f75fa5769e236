#include "sim/timeline/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "sim/timeline/timeline_arrows.hpp"
#include "sim/timeline/timeline_rows.hpp"
#include "strategies/names.hpp"

namespace simsync {
namespace {

using detail::TimelineEvent;
using detail::TimelineRows;
using Json = nlohmann::ordered_json;

constexpr double kNanosecondsPerMicrosecond = 1e3;
constexpr double kSecondsPerNanosecond = 1e-9;
constexpr double kMicroseconds = 1e6;

/// One line of the file, in order of time.
struct Line {
  enum class Kind : std::uint8_t { Box, ArrowBegin, ArrowEnd, Counter };  // in this order where times are equal
  std::int64_t at = 0;                                                    ///< ns
  Kind kind = Kind::Box;
  std::size_t index = 0;  ///< of the event, arrow or sample
};

/// The rate of a link from `at` on.
struct Sample {
  std::int64_t at = 0;  ///< ns
  int link = 0;
  double rate = 0.0;  ///< bytes/s
};

class Writer {
public:
  Writer(std::ostream& out, const Recorded& recorded, const TimelineOptions& options)
      : out_(out),
        plan_(recorded.plan),
        cluster_(recorded.cluster),
        prediction_(recorded.prediction),
        rows_(recorded.plan, recorded.prediction, options),
        arrows_(detail::arrows_of(rows_, recorded.prediction, kMostArrows)) {
    take_samples();
  }

  std::vector<std::string> write() {
    out_ << "{\"displayTimeUnit\":\"ms\",\n\"otherData\":" << about() << ",\n\"traceEvents\":[";
    for (const int process : rows_.processes()) write_process(process);
    for (const auto& thread : rows_.threads()) {
      name("thread_name", thread.process, thread.number, {{"name", thread.name}});
      name("thread_sort_index", thread.process, thread.number, {{"sort_index", thread.number}});
    }
    for (const Line& line : lines()) write_line(line);
    out_ << "\n]}\n";
    std::vector<std::string> left_out = rows_.left_out();
    if (arrows_.left_out > 0)
      left_out.push_back(fmt::format("{} of {} arrows: between the same two merged boxes it draws one, and at most {}",
                                     arrows_.left_out, arrows_.left_out + arrows_.drawn.size(), kMostArrows));
    return left_out;
  }

private:
  static constexpr std::size_t kMostArrows = 50'000;
  static constexpr std::size_t kMostSamples = 60'000;

  /// Rates change where intervals differ by more than a hundredth of what the link carries.
  void take_samples() {
    std::size_t intervals = 0;
    for (const LinkRate& rate : prediction_.traffic.rates)
      if (draws(rate)) intervals += rate.bytes.size();
    const std::size_t together = intervals / kMostSamples + 1;  // intervals that count as one
    for (const LinkRate& rate : prediction_.traffic.rates)
      if (draws(rate)) take_samples(rate, together);
  }

  [[nodiscard]] bool draws(const LinkRate& rate) const {
    const auto [begin, end] = rows_.iterations();
    const Seconds from = begin > 0 ? prediction_.iteration_end[begin - 1] : Seconds{};
    if (end == 0 || rate.begin < from || rate.end > prediction_.iteration_end[end - 1]) return false;
    return rows_.draws_link(link_row(rate));
  }

  [[nodiscard]] detail::RowKey link_row(const LinkRate& rate) const {
    return detail::row_of_link(prediction_.traffic.links[static_cast<std::size_t>(rate.link)].name);
  }

  void take_samples(const LinkRate& rate, std::size_t together) {
    constexpr double kSeen = 0.01;
    const double most = prediction_.traffic.links[static_cast<std::size_t>(rate.link)].bandwidth.value();
    double before = -1.0;
    for (std::size_t i = 0; i < rate.bytes.size(); i += together) {
      double bytes = 0.0;
      for (std::size_t k = i; k < std::min(i + together, rate.bytes.size()); ++k) bytes += rate.bytes[k];
      const Seconds begin = rate.begin + static_cast<double>(i) * rate.width;
      const Seconds end = std::min(rate.end, begin + static_cast<double>(together) * rate.width);
      const double now = end > begin ? bytes / (end - begin).value() : 0.0;
      if (before >= 0.0 && std::abs(now - before) <= kSeen * most && (now > 0.0) == (before > 0.0)) continue;
      samples_.push_back({detail::nanoseconds(begin), rate.link, now});
      before = now;
    }
    samples_.push_back({detail::nanoseconds(rate.end), rate.link, 0.0});
  }

  [[nodiscard]] std::vector<Line> lines() const {
    std::vector<Line> out;
    for (std::size_t i = 0; i < rows_.events().size(); ++i)
      out.push_back({rows_.events()[i].begin, Line::Kind::Box, i});
    for (std::size_t i = 0; i < arrows_.drawn.size(); ++i) {
      const detail::TimelineArrow& arrow = arrows_.drawn[i];
      // Inside the box: at its very end it is over.
      out.push_back({std::max(rows_.events()[arrow.from].begin, arrow.ended - 1), Line::Kind::ArrowBegin, i});
      out.push_back({arrow.began, Line::Kind::ArrowEnd, i});
    }
    for (std::size_t i = 0; i < samples_.size(); ++i) out.push_back({samples_[i].at, Line::Kind::Counter, i});
    std::stable_sort(out.begin(), out.end(),
                     [](const Line& a, const Line& b) { return a.at != b.at ? a.at < b.at : a.kind < b.kind; });
    return out;
  }

  void write_line(const Line& line) {
    switch (line.kind) {
      case Line::Kind::Box:
        return write_event(rows_.events()[line.index]);
      case Line::Kind::ArrowBegin:
        return write_arrow_end(line, rows_.events()[arrows_.drawn[line.index].from], "s");
      case Line::Kind::ArrowEnd:
        return write_arrow_end(line, rows_.events()[arrows_.drawn[line.index].to], "f");
      case Line::Kind::Counter:
        return write_sample(samples_[line.index]);
    }
  }

  static double microseconds(std::int64_t at) { return static_cast<double>(at) / kNanosecondsPerMicrosecond; }

  void write_arrow_end(const Line& line, const TimelineEvent& event, const char* phase) {
    const auto& thread = rows_.threads()[static_cast<std::size_t>(event.thread)];
    Json json{{"ph", phase},          {"pid", thread.process}, {"tid", thread.number}, {"ts", microseconds(line.at)},
              {"id", line.index + 1}, {"name", "lets begin"},  {"cat", "cause"}};
    if (line.kind == Line::Kind::ArrowEnd) json["bp"] = "e";  // binds to the box around it
    put(json);
  }

  void write_sample(const Sample& sample) {
    constexpr double kBitsPerGigabit = 8e-9;
    const auto row = detail::row_of_link(prediction_.traffic.links[static_cast<std::size_t>(sample.link)].name);
    put({{"ph", "C"},
         {"pid", row.process},
         {"tid", 0},
         {"ts", microseconds(sample.at)},
         {"name", row.name + " Gbit/s"},
         {"args", {{"Gbit/s", std::round(sample.rate * kBitsPerGigabit * 1e4) / 1e4}}}});
  }

  Json about() const {
    Json out{{"model", plan_.model},
             {"cluster", cluster_.name},
             {"strategy", plan_.strategy},
             {"workers", plan_.rank_count()},
             {"step_time_s", prediction_.step.value()},
             {"steady", prediction_.steady},
             {"fidelity", name_of(prediction_.fidelity)},
             {"simulated_ranks", prediction_.simulated_ranks}};
    Json stands_for = Json::object();
    for (const auto& [node, nodes] : prediction_.stands_for) stands_for["node" + std::to_string(node)] = nodes;
    out["nodes_represented"] = std::move(stands_for);
    return out;
  }

  /// One more element of the list of events.
  void put(const Json& event) {
    out_ << (first_ ? "\n" : ",\n") << event;
    first_ = false;
  }

  void name(const char* what, int process, int thread, Json args) {
    put({{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", std::move(args)}});
  }

  void write_process(int process) {
    name("process_name", process, 0, {{"name", process_name(process)}});
    name("process_sort_index", process, 0, {{"sort_index", process}});
  }

  std::string process_name(int process) const {
    if (process == detail::kJobProcess) return "job";
    if (process == detail::kNetworkProcess) return "network";
    const int node = process - detail::kFirstNode;
    std::string out = "node" + std::to_string(node);
    const NodeGroup& group = cluster_.group_of(node);
    if (group.gpus > 0) out += " (" + std::to_string(group.gpus) + " x " + group.device + ")";
    const auto represents = prediction_.stands_for.find(node);
    if (represents != prediction_.stands_for.end() && represents->second > 1)
      out += ", stands for " + std::to_string(represents->second) + " nodes";
    return out;
  }

  void write_event(const TimelineEvent& event) {
    const auto& thread = rows_.threads()[static_cast<std::size_t>(event.thread)];
    Json json{{"ph", "X"},
              {"pid", thread.process},
              {"tid", thread.number},
              {"ts", microseconds(event.begin)},
              {"dur", microseconds(event.end - event.begin)}};
    switch (event.kind) {
      case TimelineEvent::Kind::Iteration:
        describe_iteration(json, event.index);
        break;
      case TimelineEvent::Kind::Op:
      case TimelineEvent::Kind::Part:
        describe_op(json, event);
        break;
      case TimelineEvent::Kind::Pass:
        describe_pass(json, event);
        break;
      case TimelineEvent::Kind::Flow:
        describe_flow(json, event);
        break;
      case TimelineEvent::Kind::More:
        json["name"] = std::to_string(event.count) + " more";
        json["cat"] = "more";
        break;
    }
    if (event.merged > 1) {
      json["name"] = json["name"].get<std::string>() + " and " + std::to_string(event.merged - 1) + " more";
      json["args"]["boxes"] = event.merged;
    }
    put(json);
  }

  void describe_iteration(Json& json, std::int32_t k) const {
    json["name"] = "iteration " + std::to_string(number_of_iteration(k));
    json["cat"] = "iteration";
    json["args"] = {{"step_time_s", prediction_.steps[static_cast<std::size_t>(k)].value()}};
  }

  void describe_op(Json& json, const TimelineEvent& event) const {
    const Span& span = prediction_.spans[static_cast<std::size_t>(event.index)];
    const Op& op = plan_.ops[static_cast<std::size_t>(span.op)];
    const bool part = event.kind == TimelineEvent::Kind::Part;
    json["name"] =
        part ? title_of(plan_, op.compute().parts[static_cast<std::size_t>(event.part)]) : title_of(plan_, op);
    json["cat"] = op.kind() == OpKind::Compute ? "compute" : op.kind() == OpKind::HostWork ? "host" : "communication";
    Json args{{"iteration", number_of_iteration(span.iteration)}};
    add_layer(args, part ? op.compute().parts[static_cast<std::size_t>(event.part)].layer : op.reason.layer);
    if (op.bytes() > 0.0) args["bytes"] = op.bytes();
    if (const auto* all = std::get_if<Collective>(&op.body)) args["algorithm"] = name_of(all->algorithm);
    if (span.start > span.ready) args["waited_us"] = (span.start - span.ready).value() * kMicroseconds;
    if (span.cause >= 0) args["cause"] = cause_of(span);
    json["args"] = std::move(args);
  }

  void describe_pass(Json& json, const TimelineEvent& event) const {
    const Span& span = prediction_.spans[static_cast<std::size_t>(event.index)];
    const Op& op = plan_.ops[static_cast<std::size_t>(span.op)];
    const StageTask& task = *op.compute().parts[static_cast<std::size_t>(event.part)].pass;
    json["name"] = name_of(task);
    json["cat"] = "pass";
    json["args"] = {{"iteration", number_of_iteration(span.iteration)},
                    {"micro_batch", task.micro_batch},
                    {"chunk", task.chunk},
                    {"ranks", prediction_.groupings[static_cast<std::size_t>(op.grouping)].name()}};
  }

  /// `backward fc6 on node0:gpu1`, with its iteration when that is another one.
  std::string cause_of(const Span& span) const {
    const Span& cause = prediction_.spans[static_cast<std::size_t>(span.cause)];
    const Op& op = plan_.ops[static_cast<std::size_t>(cause.op)];
    std::string out = title_of(plan_, op);
    const Grouping& grouping = prediction_.groupings[static_cast<std::size_t>(op.grouping)];
    const Place& first = prediction_.ranks[static_cast<std::size_t>(grouping.ranks(cause.group).front())];
    if (op.grouping == kEachRank) {
      out += " on " + name_of(first);
    } else if (op.grouping == kEachNode) {
      out += " on node" + std::to_string(first.node);
    } else if (op.grouping != kWholeJob) {
      out += " of " + grouping.name() + " " + std::to_string(cause.group);
    }
    if (cause.iteration != span.iteration) out += ", iteration " + std::to_string(number_of_iteration(cause.iteration));
    return out;
  }

  void describe_flow(Json& json, const TimelineEvent& event) const {
    const FlowSpan& flow = prediction_.traffic.flows[static_cast<std::size_t>(event.index)];
    const Op& op = plan_.ops[static_cast<std::size_t>(flow.op)];
    const bool several = event.count > 1;
    json["name"] = title_of(plan_, op) + (several ? " x" + std::to_string(event.count) : "");
    json["cat"] = "flow";
    Json args{{"iteration", number_of_iteration(flow.iteration)}, {"bytes", event.bytes}};
    add_layer(args, op.reason.layer);
    if (several) args["flows"] = event.count;
    if (event.end > event.begin)
      args["bytes_per_s"] = event.bytes / (static_cast<double>(event.end - event.begin) * kSecondsPerNanosecond);
    if (!several && event.merged == 1) add_route(args, flow);
    json["args"] = std::move(args);
  }

  void add_route(Json& args, const FlowSpan& flow) const {
    const FlowPath& path = prediction_.traffic.paths[static_cast<std::size_t>(flow.path)];
    if (flow.hop >= 0) args["hop"] = flow.hop;
    if (std::isfinite(path.cap.value())) args["cap_bytes_per_s"] = path.cap.value();
    std::string route;
    for (const int link : path.links)
      route += (route.empty() ? "" : " > ") + prediction_.traffic.links[static_cast<std::size_t>(link)].name;
    args["route"] = std::move(route);
  }

  void add_layer(Json& args, std::int32_t layer) const {
    if (layer >= 0 && static_cast<std::size_t>(layer) < plan_.layers.size())
      args["layer"] = plan_.layers[static_cast<std::size_t>(layer)];
  }

  std::ostream& out_;
  const Plan& plan_;
  const Cluster& cluster_;
  const Prediction& prediction_;
  TimelineRows rows_;
  detail::TimelineArrows arrows_;
  std::vector<Sample> samples_;
  bool first_ = true;
};

}  // namespace

std::vector<std::string> write_timeline(std::ostream& out, const Recorded& recorded, const TimelineOptions& options) {
  return Writer(out, recorded, options).write();
}

}  // namespace simsync
