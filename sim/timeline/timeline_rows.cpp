#include "sim/timeline/timeline_rows.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

namespace simsync::detail {
namespace {

// Where rows stand in a process.
constexpr int kPerGpu = 2;
constexpr int kHostOrder = 1000;
constexpr int kLinkOrder = 2000;

/// Of steps that vary hundreds are simulated: the first ones, as long as a viewer takes them in.
std::size_t shown_iterations(const Plan& plan, const Prediction& prediction) {
  constexpr std::size_t kMost = 60;
  constexpr std::size_t kLeast = 2;
  constexpr std::size_t kMostEvents = 400'000;  // of some 250 bytes
  std::size_t events = prediction.traffic.flows.size();
  for (const Span& span : prediction.spans)
    events += std::max<std::size_t>(1, plan.ops[static_cast<std::size_t>(span.op)].parts.size());
  const std::size_t iterations = prediction.iteration_end.size();
  const std::size_t fitting = events == 0 ? kMost : std::max(kLeast, kMostEvents * iterations / events);
  return std::min({iterations, kMost, fitting});
}

RowKey compute_row(Place gpu) {
  return {gpu.node + kFirstNode, gpu.gpu * kPerGpu, "gpu" + std::to_string(gpu.gpu) + " compute"};
}

RowKey communication_row(Place place) {
  if (place.gpu < 0) return {place.node + kFirstNode, kHostOrder + 1, "cpu0 communication"};
  return {place.node + kFirstNode, place.gpu * kPerGpu + 1, "gpu" + std::to_string(place.gpu) + " communication"};
}

RowKey work_row(Place place) {
  if (place.gpu < 0) return {place.node + kFirstNode, kHostOrder, "cpu0"};
  return {place.node + kFirstNode, place.gpu * kPerGpu, "gpu" + std::to_string(place.gpu) + " server"};
}

/// `node3/nic-out` is the row `nic-out` of node 3, `node0 to node1 connection` is `connection to node1` of node 0.
RowKey link_row(const std::string& link) {
  constexpr std::string_view kNode = "node";
  if (!link.starts_with(kNode)) return {kNetworkProcess, kLinkOrder, link};
  int node = 0;
  const auto [rest, error] = std::from_chars(link.data() + kNode.size(), link.data() + link.size(), node);
  if (error != std::errc{}) return {kNetworkProcess, kLinkOrder, link};
  const std::string_view name(rest, static_cast<std::size_t>(link.data() + link.size() - rest));
  if (name.starts_with('/')) return {node + kFirstNode, kLinkOrder, std::string(name.substr(1))};
  const std::size_t to = name.find(kNode);
  const std::size_t end = name.rfind(' ');
  if (to == std::string_view::npos || end == std::string_view::npos || end < to)
    return {kNetworkProcess, kLinkOrder, link};
  return {node + kFirstNode, kLinkOrder + 1, "connection to " + std::string(name.substr(to, end - to))};
}

}  // namespace

std::int64_t nanoseconds(Seconds t) {
  return std::llround(t.value() * 1e9);
}

TimelineRows::TimelineRows(const Plan& plan, const Prediction& prediction)
    : plan_(plan), prediction_(prediction), shown_(shown_iterations(plan, prediction)) {
  add_iterations();
  // What had begun of the next iteration when the last one ended is left out.
  const auto complete = [&](const auto& what) { return static_cast<std::size_t>(what.iteration) < shown_; };
  for (std::size_t id = 0; id < prediction.spans.size(); ++id)
    if (complete(prediction.spans[id])) add_span(static_cast<std::int32_t>(id));
  for (std::size_t id = 0; id < prediction.traffic.flows.size(); ++id)
    if (complete(prediction.traffic.flows[id])) add_flow(static_cast<std::int32_t>(id));
  finish();
}

void TimelineRows::add_iterations() {
  std::int64_t begin = 0;
  for (std::size_t k = 0; k < shown_; ++k) {
    const std::int64_t end = nanoseconds(prediction_.iteration_end[k]);
    rows_[{kJobProcess, 0, "iterations"}].push_back(
        {begin, end, TimelineEvent::Kind::Iteration, static_cast<std::int32_t>(k)});
    begin = end;
  }
}

Place TimelineRows::place_of(const End& end, const Op& op, int cell) const {
  if (end.kind == End::Kind::Fixed) return end.place;
  const Place device = devices_of(op, cell).front();
  return end.kind == End::Kind::Device ? device : Place{device.node, -1};
}

std::vector<Place> TimelineRows::devices_of(const Op& op, int cell) const {
  if (op.scope == Scope::Job) return prediction_.ranks;
  if (op.scope == Scope::Rank) return {prediction_.ranks[static_cast<std::size_t>(cell)]};
  std::vector<Place> out;
  for (const Place& rank : prediction_.ranks)
    if (rank.node == prediction_.nodes[static_cast<std::size_t>(cell)]) out.push_back(rank);
  return out;
}

void TimelineRows::add_span(std::int32_t index) {
  const Span& span = prediction_.spans[static_cast<std::size_t>(index)];
  const Op& op = plan_.ops[static_cast<std::size_t>(span.op)];
  const TimelineEvent event{nanoseconds(span.start), nanoseconds(span.end), TimelineEvent::Kind::Op, index};
  switch (op.kind) {
    case OpKind::Compute:
      if (op.parts.size() > 1) return add_parts(index, compute_row(devices_of(op, span.cell).front()));
      rows_[compute_row(devices_of(op, span.cell).front())].push_back(event);
      return;
    case OpKind::HostWork:
      rows_[work_row(place_of(op.from, op, span.cell))].push_back(event);
      return;
    case OpKind::Transfer: {
      const Place from = place_of(op.from, op, span.cell);
      const Place to = place_of(op.to, op, span.cell);
      rows_[communication_row(from.gpu >= 0 ? from : to)].push_back(event);
      return;
    }
    case OpKind::Collective:
      for (const Place& device : devices_of(op, span.cell)) rows_[communication_row(device)].push_back(event);
      return;
  }
}

void TimelineRows::add_parts(std::int32_t index, const RowKey& row) {
  const Span& span = prediction_.spans[static_cast<std::size_t>(index)];
  const Op& op = plan_.ops[static_cast<std::size_t>(span.op)];
  const double scale = op.duration.value() > 0.0 ? (span.end - span.start).value() / op.duration.value() : 0.0;
  Seconds done;
  for (std::size_t part = 0; part < op.parts.size(); ++part) {
    const Seconds begin = span.start + scale * done;
    done += op.parts[part].duration;
    const Seconds end = part + 1 < op.parts.size() ? span.start + scale * done : span.end;
    rows_[row].push_back(
        {nanoseconds(begin), nanoseconds(end), TimelineEvent::Kind::Part, index, static_cast<std::int32_t>(part)});
  }
}

void TimelineRows::add_flow(std::int32_t index) {
  const FlowSpan& flow = prediction_.traffic.flows[static_cast<std::size_t>(index)];
  const std::int64_t begin = nanoseconds(flow.start);
  const std::int64_t end = nanoseconds(flow.end);
  for (const int link : prediction_.traffic.paths[static_cast<std::size_t>(flow.path)].links) {
    auto& row = rows_[link_row(prediction_.traffic.links[static_cast<std::size_t>(link)].name)];
    // Flows of many workers for one op are one box.
    const auto [last, fresh] = last_flow_.try_emplace({link, flow.op, flow.iteration}, row.size());
    if (!fresh && begin < row[last->second].end) {
      TimelineEvent& event = row[last->second];
      event.end = std::max(event.end, end);
      event.bytes += flow.bytes;
      ++event.count;
      continue;
    }
    last->second = row.size();
    row.push_back({.begin = begin, .end = end, .kind = TimelineEvent::Kind::Flow, .index = index, .bytes = flow.bytes});
  }
}

int TimelineRows::spread(std::vector<TimelineEvent>& events, int first) {
  std::vector<std::int64_t> free_at;  // by thread: end of its latest event
  std::vector<TimelineEvent> out;
  std::size_t crowded = 0;  // in `out`, the latest event of the last thread
  for (TimelineEvent& event : events) {
    std::size_t lane = 0;
    while (lane < free_at.size() && free_at[lane] > event.begin) ++lane;
    if (lane > kMostThreads) {
      TimelineEvent& more = out[crowded];
      more.end = free_at[kMostThreads] = std::max(more.end, event.end);
      more.count = more.kind == TimelineEvent::Kind::More ? more.count + 1 : 2;
      more.kind = TimelineEvent::Kind::More;
      continue;
    }
    if (lane == free_at.size()) free_at.push_back(0);
    free_at[lane] = event.end;
    event.thread = first + static_cast<int>(lane);
    if (lane == kMostThreads) crowded = out.size();
    out.push_back(event);
  }
  events = std::move(out);
  return static_cast<int>(free_at.size());
}

void TimelineRows::finish() {
  for (auto& [key, events] : rows_) {
    std::stable_sort(events.begin(), events.end(),
                     [](const TimelineEvent& a, const TimelineEvent& b) { return a.begin < b.begin; });
    const auto first = static_cast<int>(threads_.size());
    const int lanes = spread(events, first);
    for (int lane = 0; lane < lanes; ++lane)
      threads_.push_back(
          {key.process, first + lane + 1, lane == 0 ? key.name : key.name + " (" + std::to_string(lane + 1) + ")"});
    std::stable_sort(events.begin(), events.end(),
                     [](const TimelineEvent& a, const TimelineEvent& b) { return a.thread < b.thread; });
    events_.insert(events_.end(), events.begin(), events.end());
    events = {};
  }
  rows_.clear();
}

std::vector<int> TimelineRows::processes() const {
  std::vector<int> out;
  for (const Thread& thread : threads_)
    if (out.empty() || out.back() != thread.process) out.push_back(thread.process);
  return out;
}

}  // namespace simsync::detail
