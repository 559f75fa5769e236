#include "sim/engine/recorder.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace simsync::detail {

Recorder::Recorder(const ReplayOptions& options, const Plan& plan, const SimulatedRanks& simulated,
                   const std::vector<FlowPath>& paths)
    : plan_(plan),
      paths_(paths),
      filter_(plan, simulated, options.recorded_ranks),
      on_(options.record),
      steps_(options.recorded_steps),
      most_(options.most_recorded) {
  if (options.record && options.record_rates) rates_.emplace(options.recorded_steps, filter_);
}

void Recorder::forget_all() {
  on_ = false;
  noted_.clear();
  spans_ = {};
  flows_ = {};
}

void Recorder::step_ends(Seconds now) {
  if (on_ && rates_) rates_->step_ends(now);
  if (!on_ || steps_ <= 0) return;
  step_ends_.push_back(now);
  if (step_ends_.size() <= static_cast<std::size_t>(steps_)) return;
  // A step begins with messages that are on their way: what sent them is part of its story.
  constexpr double kUnderWay = 0.1;
  const double begin = step_ends_[step_ends_.size() - 1 - static_cast<std::size_t>(steps_)].value();
  const double horizon = begin - kUnderWay * (now.value() - begin);
  const auto old_span = [&](const Span& span) { return span.end.value() < horizon; };
  const auto old_flow = [&](const FlowSpan& flow) { return flow.end > flow.start && flow.end.value() < horizon; };
  const auto span = std::find_if_not(spans_.begin(), spans_.end(), old_span);  // in order of their ends
  first_span_ += static_cast<std::int32_t>(span - spans_.begin());
  spans_.erase(spans_.begin(), span);
  const auto flow = std::find_if_not(flows_.begin(), flows_.end(), old_flow);
  first_flow_ += static_cast<std::int32_t>(flow - flows_.begin());
  flows_.erase(flows_.begin(), flow);
}

std::vector<Span> Recorder::take_spans() {
  for (Span& span : spans_) span.cause = renumbered(span.cause);
  return std::move(spans_);
}

std::vector<FlowSpan> Recorder::take_flows() {
  for (FlowSpan& flow : flows_) flow.cause = renumbered(flow.cause);
  return std::move(flows_);
}

void Recorder::ready(const Instance& instance, std::int32_t cause, Seconds now) {
  if (on_ && keeps(instance)) noted_[key(instance)] = {now, Seconds{}, cause};
}

void Recorder::start(const Instance& instance, std::int32_t cause, Seconds now) {
  if (!on_ || !keeps(instance)) return;
  Noted& noted = noted_[key(instance)];
  noted.start = now;
  if (noted.start > noted.ready && cause >= 0) noted.cause = cause;  // it waited for a resource last
}

std::int32_t Recorder::end(const Instance& instance, Seconds now) {
  if (!on_ || !keeps(instance)) return -1;
  if (most_ > 0 && static_cast<std::int64_t>(spans_.size() + flows_.size()) >= most_) {
    forget_all();
    return -1;
  }
  const auto found = noted_.find(key(instance));
  SIMSYNC_ASSERT(found != noted_.end());
  const Noted& noted = found->second;
  spans_.push_back({instance.op, instance.group, instance.iteration, noted.ready, noted.start, now, noted.cause});
  noted_.erase(found);
  return last_span();
}

std::int32_t Recorder::flow(const FlowSpan& flow, Seconds now) {
  if (!on_) return -1;
  if (!keeps({flow.op, flow.group, flow.iteration}))
    return rates_ ? begin_counting({.start = now, .bytes = flow.bytes, .path = flow.path}) : -1;
  flows_.push_back(flow);
  flows_.back().start = now;
  return first_flow_ + static_cast<std::int32_t>(flows_.size()) - 1;
}

std::int32_t Recorder::begin_counting(const Counted& flow) {
  if (free_counted_.empty()) {
    free_counted_.push_back(static_cast<std::int32_t>(counted_.size()));
    counted_.emplace_back();
  }
  const std::int32_t slot = free_counted_.back();
  free_counted_.pop_back();
  counted_[static_cast<std::size_t>(slot)] = flow;
  return -2 - slot;
}

void Recorder::count(const Counted& flow, Seconds now) {
  if (rates_) rates_->add(paths_[static_cast<std::size_t>(flow.path)].links, flow.bytes, flow.start, now);
}

void Recorder::flow_ends(std::int32_t flow, Seconds now) {
  if (!on_ || flow == -1) return;
  if (flow < -1) {
    const std::int32_t slot = -2 - flow;
    count(counted_[static_cast<std::size_t>(slot)], now);
    free_counted_.push_back(slot);
    return;
  }
  if (flow < first_flow_) return;
  FlowSpan& span = flows_[static_cast<std::size_t>(flow - first_flow_)];
  span.end = now;
  count({.start = span.start, .bytes = span.bytes, .path = span.path}, now);
}

std::vector<LinkRate> Recorder::rates(const std::vector<Link>& links) const {
  return rates_ ? rates_->take(links) : std::vector<LinkRate>{};
}

std::vector<LinkUse> link_use(const Traffic& traffic, Seconds elapsed) {
  std::vector<double> bytes(traffic.links.size(), 0.0);
  for (const FlowSpan& flow : traffic.flows)
    for (const int link : traffic.paths[static_cast<std::size_t>(flow.path)].links)
      bytes[static_cast<std::size_t>(link)] += flow.bytes;
  const double seconds = std::max(elapsed.value(), 1e-12);
  std::vector<LinkUse> out;
  for (std::size_t id = 0; id < bytes.size(); ++id) {
    const Link& link = traffic.links[id];
    if (bytes[id] > 0.0) out.push_back({link.name, bytes[id], bytes[id] / link.bandwidth.value() / seconds});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const LinkUse& a, const LinkUse& b) { return a.utilization > b.utilization; });
  return out;
}

}  // namespace simsync::detail
