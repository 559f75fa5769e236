#include "sim/timeline/timeline.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

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

class Writer {
public:
  Writer(std::ostream& out, const Plan& plan, const Cluster& cluster, const Prediction& prediction)
      : out_(out), plan_(plan), cluster_(cluster), prediction_(prediction), rows_(plan, prediction) {}

  void write() {
    out_ << "{\"displayTimeUnit\":\"ms\",\n\"otherData\":" << about() << ",\n\"traceEvents\":[";
    for (const int process : rows_.processes()) write_process(process);
    for (const auto& thread : rows_.threads()) {
      name("thread_name", thread.process, thread.number, {{"name", thread.name}});
      name("thread_sort_index", thread.process, thread.number, {{"sort_index", thread.number}});
    }
    for (const TimelineEvent& event : rows_.events()) write_event(event);
    out_ << "\n]}\n";
  }

private:
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
    for (std::size_t i = 0; i < prediction_.nodes.size(); ++i)
      stands_for["node" + std::to_string(prediction_.nodes[i])] = prediction_.stands_for[i];
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
    const auto found = std::find(prediction_.nodes.begin(), prediction_.nodes.end(), node);
    if (found == prediction_.nodes.end()) return out;
    const int represents = prediction_.stands_for[static_cast<std::size_t>(found - prediction_.nodes.begin())];
    if (represents > 1) out += ", stands for " + std::to_string(represents) + " nodes";
    return out;
  }

  void write_event(const TimelineEvent& event) {
    const auto& thread = rows_.threads()[static_cast<std::size_t>(event.thread)];
    Json json{{"ph", "X"},
              {"pid", thread.process},
              {"tid", thread.number},
              {"ts", static_cast<double>(event.begin) / kNanosecondsPerMicrosecond},
              {"dur", static_cast<double>(event.end - event.begin) / kNanosecondsPerMicrosecond}};
    switch (event.kind) {
      case TimelineEvent::Kind::Iteration:
        describe_iteration(json, event.index);
        break;
      case TimelineEvent::Kind::Op:
      case TimelineEvent::Kind::Part:
        describe_op(json, event);
        break;
      case TimelineEvent::Kind::Flow:
        describe_flow(json, event);
        break;
      case TimelineEvent::Kind::More:
        json["name"] = std::to_string(event.count) + " more";
        json["cat"] = "more";
        break;
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
    json["name"] = part ? title_of(plan_, op.parts[static_cast<std::size_t>(event.part)]) : title_of(plan_, op);
    json["cat"] = op.kind == OpKind::Compute ? "compute" : op.kind == OpKind::HostWork ? "host" : "communication";
    Json args{{"iteration", number_of_iteration(span.iteration)}};
    add_layer(args, part ? op.parts[static_cast<std::size_t>(event.part)].layer : op.reason.layer);
    if (op.bytes > 0.0) args["bytes"] = op.bytes;
    if (op.kind == OpKind::Collective) args["algorithm"] = name_of(op.algorithm);
    if (span.start > span.ready) args["waited_us"] = (span.start - span.ready).value() * kMicroseconds;
    if (span.cause >= 0) args["cause"] = cause_of(span);
    json["args"] = std::move(args);
  }

  /// `backward fc6 on node0:gpu1`, with its iteration when that is another one.
  std::string cause_of(const Span& span) const {
    const Span& cause = prediction_.spans[static_cast<std::size_t>(span.cause)];
    const Op& op = plan_.ops[static_cast<std::size_t>(cause.op)];
    std::string out = title_of(plan_, op);
    if (op.scope == Scope::Rank) out += " on " + name_of(prediction_.ranks[static_cast<std::size_t>(cause.cell)]);
    if (op.scope == Scope::Node)
      out += " on node" + std::to_string(prediction_.nodes[static_cast<std::size_t>(cause.cell)]);
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
    if (!several) add_way(args, flow);
    json["args"] = std::move(args);
  }

  void add_way(Json& args, const FlowSpan& flow) const {
    const FlowPath& path = prediction_.traffic.paths[static_cast<std::size_t>(flow.path)];
    if (flow.hop >= 0) args["hop"] = flow.hop;
    if (std::isfinite(path.cap.value())) args["cap_bytes_per_s"] = path.cap.value();
    std::string way;
    for (const int link : path.links)
      way += (way.empty() ? "" : " > ") + prediction_.traffic.links[static_cast<std::size_t>(link)].name;
    args["way"] = std::move(way);
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
  bool first_ = true;
};

}  // namespace

void write_timeline(std::ostream& out, const Plan& plan, const Cluster& cluster, const Prediction& prediction) {
  Writer(out, plan, cluster, prediction).write();
}

}  // namespace simsync
