#include "sim/engine/flow_limits.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace simsync::detail {
namespace {

template <class Owned>
auto owner(const Owned& owned) {
  return std::make_tuple(owned.iteration, owned.op, owned.cell);
}

}  // namespace

std::string role_of(const std::string& link) {
  if (link.ends_with("connection")) return "connection";
  const std::size_t slash = link.rfind('/');
  return slash == std::string::npos ? link : link.substr(slash + 1);
}

FlowLimits::FlowLimits(const Prediction& prediction) : traffic_(prediction.traffic), by_link_(traffic_.links.size()), by_owner_(traffic_.flows.size()) {
  for (std::size_t id = 0; id < traffic_.flows.size(); ++id)
    for (const int link : traffic_.paths[static_cast<std::size_t>(traffic_.flows[id].path)])
      by_link_[static_cast<std::size_t>(link)].push_back(static_cast<std::int32_t>(id));
  std::iota(by_owner_.begin(), by_owner_.end(), 0);
  std::stable_sort(by_owner_.begin(), by_owner_.end(), [&](std::int32_t a, std::int32_t b) {
    return owner(traffic_.flows[static_cast<std::size_t>(a)]) < owner(traffic_.flows[static_cast<std::size_t>(b)]);
  });
}

double FlowLimits::bytes_between(int link, double begin, double end) const {
  double bytes = 0.0;
  for (const std::int32_t id : by_link_[static_cast<std::size_t>(link)]) {
    const FlowSpan& flow = traffic_.flows[static_cast<std::size_t>(id)];
    const double overlap = std::min(end, flow.end.value()) - std::max(begin, flow.start.value());
    if (overlap > 0.0) bytes += flow.bytes * overlap / (flow.end - flow.start).value();
  }
  return bytes;
}

FlowLimit FlowLimits::limit_of(const FlowSpan& flow) const {
  constexpr double kAtCap = 0.99;
  const double seconds = (flow.end - flow.start).value();
  double alone = std::isfinite(flow.cap.value()) ? flow.bytes / flow.cap.value() : 0.0;
  int busiest = -1;
  double most = -1.0;
  int narrowest = -1;
  for (const int link : traffic_.paths[static_cast<std::size_t>(flow.path)]) {
    const double rate = traffic_.links[static_cast<std::size_t>(link)].bandwidth.value();
    alone = std::max(alone, flow.bytes / rate);
    if (narrowest < 0 || rate < traffic_.links[static_cast<std::size_t>(narrowest)].bandwidth.value()) narrowest = link;
    const double load = seconds > 0.0 ? bytes_between(link, flow.start.value(), flow.end.value()) / (rate * seconds) : 0.0;
    if (load <= most) continue;
    most = load;
    busiest = link;
  }
  const bool capped = std::isfinite(flow.cap.value()) && flow.bytes >= kAtCap * flow.cap.value() * seconds;
  const std::string& where = traffic_.links[static_cast<std::size_t>(capped ? narrowest : busiest)].name;
  const Seconds shared{std::max(0.0, seconds - alone)};
  // One cap may be that of several streams together (CollectiveCosts::channels).
  return {(capped ? "stream cap on " : "link ") + role_of(where), where, shared};
}

std::vector<const FlowSpan*> FlowLimits::flows_of(const Span& span) const {
  const auto key = owner(span);
  const auto first = std::lower_bound(by_owner_.begin(), by_owner_.end(), key, [&](std::int32_t id, const auto& wanted) {
    return owner(traffic_.flows[static_cast<std::size_t>(id)]) < wanted;
  });
  std::vector<const FlowSpan*> out;
  for (auto at = first; at != by_owner_.end() && owner(traffic_.flows[static_cast<std::size_t>(*at)]) == key; ++at)
    out.push_back(&traffic_.flows[static_cast<std::size_t>(*at)]);
  return out;
}

}  // namespace simsync::detail
