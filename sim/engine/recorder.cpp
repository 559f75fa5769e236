#include "sim/engine/recorder.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace simsync::detail {

void Recorder::ready(const Instance& instance, std::int32_t cause, Seconds now) {
  if (on_) noted_[key(instance)] = {now, Seconds{}, cause};
}

void Recorder::start(const Instance& instance, std::int32_t cause, Seconds now) {
  if (!on_) return;
  Noted& noted = noted_[key(instance)];
  noted.start = now;
  if (noted.start > noted.ready && cause >= 0) noted.cause = cause;  // it waited for a resource last
}

std::int32_t Recorder::end(const Instance& instance, Seconds now) {
  if (!on_) return -1;
  const auto found = noted_.find(key(instance));
  SIMSYNC_ASSERT(found != noted_.end());
  const Noted& noted = found->second;
  spans_.push_back({instance.op, instance.cell, instance.iteration, noted.ready, noted.start, now, noted.cause});
  noted_.erase(found);
  return last_span();
}

std::int32_t Recorder::flow(const FlowSpan& flow, Seconds now) {
  if (!on_) return -1;
  flows_.push_back(flow);
  flows_.back().start = now;
  return static_cast<std::int32_t>(flows_.size()) - 1;
}

void Recorder::flow_ends(std::int32_t flow, Seconds now) {
  if (flow >= 0) flows_[static_cast<std::size_t>(flow)].end = now;
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
