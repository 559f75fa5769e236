#include "sim/timeline/timeline_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/parse_units.hpp"

namespace simsync::detail {
namespace {

// Where rows stand in a process.
constexpr int kPerGpu = 3;
constexpr int kHostOrder = 1000;
constexpr int kLinkOrder = 2000;

RowKey pass_row(Place gpu) {
  return {gpu.node + kFirstNode, gpu.gpu * kPerGpu, "gpu" + std::to_string(gpu.gpu) + " passes"};
}

RowKey compute_row(Place gpu) {
  return {gpu.node + kFirstNode, gpu.gpu * kPerGpu + 1, "gpu" + std::to_string(gpu.gpu) + " compute"};
}

RowKey communication_row(Place place) {
  if (place.gpu < 0) return {place.node + kFirstNode, kHostOrder + 1, "cpu0 communication"};
  return {place.node + kFirstNode, place.gpu * kPerGpu + 2, "gpu" + std::to_string(place.gpu) + " communication"};
}

RowKey work_row(Place place) {
  if (place.gpu < 0) return {place.node + kFirstNode, kHostOrder, "cpu0"};
  return {place.node + kFirstNode, place.gpu * kPerGpu + 1, "gpu" + std::to_string(place.gpu) + " server"};
}

std::size_t boxes_of(const Op& op) {
  const auto* work = std::get_if<Compute>(&op.body);
  return work != nullptr ? std::max<std::size_t>(1, work->parts.size()) : 1;
}

}  // namespace

RowKey row_of_link(const std::string& link) {
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

std::int64_t nanoseconds(Seconds t) {
  return std::llround(t.value() * 1e9);
}

TimelineRows::TimelineRows(const Plan& plan, const Prediction& prediction, const TimelineOptions& options)
    : plan_(plan),
      prediction_(prediction),
      filter_(plan, {prediction.ranks, prediction.groupings}, options.ranks),
      first_id_(prediction.spans.size(), -1),
      last_id_(prediction.spans.size(), -1) {
  choose_iterations(options);
  add_iterations();
  // What had begun of the next iteration when the last one ended is left out.
  for (std::size_t id = 0; id < prediction.spans.size(); ++id) {
    const Span& span = prediction.spans[id];
    if (draws(span.op, span.group, span.iteration)) add_span(static_cast<std::int32_t>(id));
  }
  for (std::size_t id = 0; id < prediction.traffic.flows.size(); ++id) {
    const FlowSpan& flow = prediction.traffic.flows[id];
    if (draws(flow.op, flow.group, flow.iteration)) add_flow(static_cast<std::int32_t>(id));
  }
  thin_out(options.most_boxes);
  finish();
}

bool TimelineRows::draws(OpId op, int group, int iteration) const {
  const auto k = static_cast<std::size_t>(iteration);
  return k >= begin_ && k < end_ && filter_.keeps(plan_.ops[static_cast<std::size_t>(op)], group);
}

/// Links of chosen GPUs and of their nodes, and those that belong to no node.
bool TimelineRows::draws_link(const RowKey& row) const {
  if (filter_.keeps_all() || row.process < kFirstNode) return true;
  const int node = row.process - kFirstNode;
  if (!filter_.keeps_node(node)) return false;
  constexpr std::string_view kGpu = "gpu";
  int gpu = 0;
  const char* end = row.name.data() + row.name.size();
  const bool of_gpu =
      row.name.starts_with(kGpu) && std::from_chars(row.name.data() + kGpu.size(), end, gpu).ec == std::errc{};
  return !of_gpu || filter_.keeps(Place{node, gpu});
}

/// Of steps that vary hundreds are simulated: the first ones, as long as a viewer takes them in.
void TimelineRows::choose_iterations(const TimelineOptions& options) {
  constexpr std::size_t kMost = 60;
  constexpr std::size_t kLeast = 2;
  const std::size_t iterations = prediction_.iteration_end.size();
  end_ = iterations;
  if (options.last_steps > 0) {
    begin_ = iterations - std::min(iterations, static_cast<std::size_t>(options.last_steps));
    return;
  }
  std::size_t boxes = prediction_.traffic.flows.size();
  for (const Span& span : prediction_.spans) boxes += boxes_of(plan_.ops[static_cast<std::size_t>(span.op)]);
  const std::size_t fitting = boxes == 0 ? kMost : std::max(kLeast, options.most_boxes * iterations / boxes);
  end_ = std::min({iterations, kMost, fitting});
  if (end_ < iterations) left_out_.push_back(fmt::format("all but the first {} of {} steps", end_, iterations));
}

void TimelineRows::add_iterations() {
  std::int64_t begin = begin_ > 0 ? nanoseconds(prediction_.iteration_end[begin_ - 1]) : 0;
  for (std::size_t k = begin_; k < end_; ++k) {
    const std::int64_t end = nanoseconds(prediction_.iteration_end[k]);
    rows_[{kJobProcess, 0, "iterations"}].push_back(
        {begin, end, TimelineEvent::Kind::Iteration, static_cast<std::int32_t>(k)});
    begin = end;
  }
}

namespace {

/// Boxes shorter than `length` become one with those that begin within `length` after the first of them.
void merge_short(std::vector<TimelineEvent>& events, std::int64_t length, std::vector<std::int32_t>& merged_into) {
  std::vector<TimelineEvent> out;
  std::size_t open = 0;  // in `out`, the box that takes others in
  bool any = false;
  for (const TimelineEvent& event : events) {
    const bool is_short = event.end - event.begin < length && event.kind != TimelineEvent::Kind::Iteration;
    if (is_short && any && event.begin < out[open].begin + length) {
      TimelineEvent& box = out[open];
      box.end = std::max(box.end, event.end);
      box.merged += event.merged;
      box.bytes += event.bytes;
      if (event.id >= 0) merged_into[static_cast<std::size_t>(event.id)] = box.id;
      continue;
    }
    if (is_short) {
      open = out.size();
      any = true;
    }
    out.push_back(event);
  }
  events = std::move(out);
}

}  // namespace

void TimelineRows::thin_out(std::size_t most_boxes) {
  const auto boxes = [&] {
    std::size_t sum = 0;
    for (const auto& row : rows_) sum += row.second.size();
    return sum;
  };
  const std::size_t before = boxes();
  if (before <= most_boxes) return;
  for (auto& row : rows_)
    std::stable_sort(row.second.begin(), row.second.end(),
                     [](const TimelineEvent& a, const TimelineEvent& b) { return a.begin < b.begin; });
  constexpr std::int64_t kFinest = 100'000;  // of all that is drawn
  const std::int64_t begin = begin_ > 0 ? nanoseconds(prediction_.iteration_end[begin_ - 1]) : 0;
  const std::int64_t whole = nanoseconds(prediction_.iteration_end[end_ - 1]) - begin;
  std::int64_t length = whole / kFinest + 1;
  while (boxes() > most_boxes && length <= 2 * whole) {
    for (auto& row : rows_) merge_short(row.second, length, merged_into_);
    length *= 2;
  }
  const std::int64_t last = length / 2;
  left_out_.push_back(fmt::format("single boxes shorter than {}: neighbors are merged, {} boxes to {}",
                                  format_seconds(Seconds{static_cast<double>(last) * 1e-9}), before, boxes()));
}

Place TimelineRows::place_of(const End& end, const Op& op, int group) const {
  if (end.is_fixed()) return end.place;
  const Place device = devices_of(op, group).front();
  return end.kind == End::Kind::Device ? device : Place{device.node, -1};
}

std::vector<Place> TimelineRows::devices_of(const Op& op, int group) const {
  std::vector<Place> out;
  for (const int rank : prediction_.groupings[static_cast<std::size_t>(op.grouping)].ranks(group))
    out.push_back(prediction_.ranks[static_cast<std::size_t>(rank)]);
  return out;
}

void TimelineRows::add_box(const RowKey& row, TimelineEvent event) {
  event.id = static_cast<std::int32_t>(merged_into_.size());
  merged_into_.push_back(-1);
  const auto span = static_cast<std::size_t>(event.index);
  if (first_id_[span] < 0) first_id_[span] = last_id_[span] = event.id;
  if (event.kind == TimelineEvent::Kind::Part) last_id_[span] = event.id;
  rows_[row].push_back(event);
}

std::size_t TimelineRows::box_of(std::int32_t id) const {
  if (id < 0) return kNoBox;
  auto at = static_cast<std::size_t>(id);
  while (merged_into_[at] >= 0) at = static_cast<std::size_t>(merged_into_[at]);
  return index_of_[at];
}

void TimelineRows::add_span(std::int32_t index) {
  const Span& span = prediction_.spans[static_cast<std::size_t>(index)];
  const Op& op = plan_.ops[static_cast<std::size_t>(span.op)];
  const TimelineEvent event{nanoseconds(span.start), nanoseconds(span.end), TimelineEvent::Kind::Op, index};
  switch (op.kind()) {
    case OpKind::Compute:
      return add_parts(index, devices_of(op, span.group).front());
    case OpKind::HostWork:
      return add_box(work_row(place_of(op.host().at, op, span.group)), event);
    case OpKind::Transfer: {
      const Place from = place_of(op.transfer().from, op, span.group);
      const Place to = place_of(op.transfer().to, op, span.group);
      return add_box(communication_row(from.gpu >= 0 ? from : to), event);
    }
    case OpKind::Collective:
      for (const Place& device : devices_of(op, span.group))
        if (filter_.keeps(device)) add_box(communication_row(device), event);
      return;
  }
}

void TimelineRows::add_parts(std::int32_t index, Place gpu) {
  const Span& span = prediction_.spans[static_cast<std::size_t>(index)];
  const Op& op = plan_.ops[static_cast<std::size_t>(span.op)];
  const Compute& work = op.compute();
  const double scale = work.duration.value() > 0.0 ? (span.end - span.start).value() / work.duration.value() : 0.0;
  Seconds done;
  const auto kind = work.parts.size() > 1 ? TimelineEvent::Kind::Part : TimelineEvent::Kind::Op;
  if (work.parts.empty()) add_box(compute_row(gpu), {nanoseconds(span.start), nanoseconds(span.end), kind, index});
  for (std::size_t part = 0; part < work.parts.size(); ++part) {
    const Seconds begin = span.start + scale * done;
    done += work.parts[part].duration;
    const Seconds end = part + 1 < work.parts.size() ? span.start + scale * done : span.end;
    const TimelineEvent box{nanoseconds(begin), nanoseconds(end), kind, index, static_cast<std::int32_t>(part)};
    add_box(compute_row(gpu), box);
    if (work.parts[part].pass) add_to_pass(gpu, box);
  }
}

void TimelineRows::add_to_pass(Place gpu, const TimelineEvent& part) {
  const auto pass_of = [&](const TimelineEvent& event) {
    const Span& span = prediction_.spans[static_cast<std::size_t>(event.index)];
    const Op& op = plan_.ops[static_cast<std::size_t>(span.op)];
    return std::pair(span.iteration, op.compute().parts[static_cast<std::size_t>(event.part)].pass);
  };
  auto& row = rows_[pass_row(gpu)];
  if (!row.empty() && pass_of(row.back()) == pass_of(part)) {
    row.back().end = part.end;
    return;
  }
  row.push_back(part);
  row.back().kind = TimelineEvent::Kind::Pass;
}

void TimelineRows::add_flow(std::int32_t index) {
  const FlowSpan& flow = prediction_.traffic.flows[static_cast<std::size_t>(index)];
  const std::int64_t begin = nanoseconds(flow.start);
  const std::int64_t end = nanoseconds(flow.end);
  for (const int link : prediction_.traffic.paths[static_cast<std::size_t>(flow.path)].links) {
    const RowKey key = row_of_link(prediction_.traffic.links[static_cast<std::size_t>(link)].name);
    if (!draws_link(key)) continue;
    auto& row = rows_[key];
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
      if (event.id >= 0) merged_into_[static_cast<std::size_t>(event.id)] = more.id;
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
  index_of_.assign(merged_into_.size(), kNoBox);
  for (std::size_t i = 0; i < events_.size(); ++i)
    if (events_[i].id >= 0) index_of_[static_cast<std::size_t>(events_[i].id)] = i;
}

std::vector<int> TimelineRows::processes() const {
  std::vector<int> out;
  for (const Thread& thread : threads_)
    if (out.empty() || out.back() != thread.process) out.push_back(thread.process);
  return out;
}

}  // namespace simsync::detail
