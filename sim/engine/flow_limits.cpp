#include "sim/engine/flow_limits.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "base/error.hpp"

namespace simsync::detail {
namespace {

template <class Owned>
auto owner(const Owned& owned) {
  return std::make_tuple(owned.iteration, owned.op, owned.group);
}

}  // namespace

std::string role_of(const std::string& link) {
  if (link.ends_with(kConnection)) return kConnection;
  const std::size_t slash = link.rfind('/');
  return slash == std::string::npos ? link : link.substr(slash + 1);
}

FlowLimits::FlowLimits(const Prediction& prediction)
    : traffic_(prediction.traffic),
      by_link_(traffic_.links.size()),
      by_path_(traffic_.paths.size()),
      by_owner_(traffic_.flows.size()) {
  for (std::size_t id = 0; id < traffic_.flows.size(); ++id) {
    by_path_[static_cast<std::size_t>(traffic_.flows[id].path)].push_back(static_cast<std::int32_t>(id));
    for (const int link : route_of(traffic_.flows[id]).links)
      by_link_[static_cast<std::size_t>(link)].push_back(static_cast<std::int32_t>(id));
  }
  std::iota(by_owner_.begin(), by_owner_.end(), 0);
  std::stable_sort(by_owner_.begin(), by_owner_.end(), [&](std::int32_t a, std::int32_t b) {
    return owner(traffic_.flows[static_cast<std::size_t>(a)]) < owner(traffic_.flows[static_cast<std::size_t>(b)]);
  });
}

PassedBytes::PassedBytes(const std::vector<FlowSpan>& flows, const std::vector<std::int32_t>& which) {
  std::vector<std::pair<double, double>> changes;  // time and change of the rate
  for (const std::int32_t id : which) {
    const FlowSpan& flow = flows[static_cast<std::size_t>(id)];
    const double length = (flow.end - flow.start).value();
    if (length <= 0.0) continue;
    changes.emplace_back(flow.start.value(), flow.bytes / length);
    changes.emplace_back(flow.end.value(), -flow.bytes / length);
  }
  std::sort(changes.begin(), changes.end());
  double rate = 0.0;
  double passed = 0.0;
  for (const auto& [time, change] : changes) {
    if (!at_.empty()) passed += rate * (time - at_.back());
    rate += change;
    at_.push_back(time);
    bytes_.push_back(passed);
  }
}

double PassedBytes::until(double time) const {
  const auto next = static_cast<std::size_t>(std::upper_bound(at_.begin(), at_.end(), time) - at_.begin());
  if (next == 0) return 0.0;
  if (next == at_.size()) return bytes_.back();
  const double share = (time - at_[next - 1]) / (at_[next] - at_[next - 1]);
  return bytes_[next - 1] + share * (bytes_[next] - bytes_[next - 1]);
}

double PassedBytes::between(double begin, double end) const {
  if (at_.empty()) return 0.0;
  constexpr double kRounding = 1e-12;
  const double bytes = until(end) - until(begin);
  return bytes > kRounding * bytes_.back() ? bytes : 0.0;
}

double FlowLimits::bytes_between(int link, double begin, double end) const {
  const auto known = over_link_.find(link);
  if (known != over_link_.end()) return known->second.between(begin, end);
  const PassedBytes passed(traffic_.flows, by_link_[static_cast<std::size_t>(link)]);
  return over_link_.emplace(link, passed).first->second.between(begin, end);
}

double FlowLimits::bytes_of_path(int path, double begin, double end) const {
  const auto known = over_path_.find(path);
  if (known != over_path_.end()) return known->second.between(begin, end);
  const PassedBytes passed(traffic_.flows, by_path_[static_cast<std::size_t>(path)]);
  return over_path_.emplace(path, passed).first->second.between(begin, end);
}

FlowLimit FlowLimits::limit_of(const FlowSpan& flow) const {
  const double begin = flow.start.value();
  const double end = flow.end.value();
  const FlowPath& route = route_of(flow);
  SIMSYNC_ASSERT(!route.links.empty());
  const auto rate = [&](int link) { return traffic_.links[static_cast<std::size_t>(link)].bandwidth.value(); };
  int busiest = route.links.front();
  int narrowest = route.links.front();
  double most = 0.0;                    // bytes over rate: seconds of work for that link
  constexpr double kMore = 1.0 + 1e-9;  // of equally busy ones the first
  for (const int link : route.links) {
    if (rate(link) < rate(narrowest)) narrowest = link;
    const double work = bytes_between(link, begin, end) / rate(link);
    if (work <= most * kMore) continue;
    most = work;
    busiest = link;
  }
  const double cap = route.cap.value();
  const bool capped = std::isfinite(cap) && bytes_of_path(flow.path, begin, end) / cap > most * kMore;
  const std::string& where = traffic_.links[static_cast<std::size_t>(capped ? narrowest : busiest)].name;
  const std::string role = role_of(where);
  const Seconds shared{std::max(0.0, end - begin - flow.bytes / std::min(cap, rate(narrowest)))};
  return {(capped || role == kConnection ? "stream cap on " : "link ") + role, where, shared};
}

std::vector<const FlowSpan*> FlowLimits::flows_of(const Span& span) const {
  const auto key = owner(span);
  const auto first =
      std::lower_bound(by_owner_.begin(), by_owner_.end(), key, [&](std::int32_t id, const auto& wanted) {
        return owner(traffic_.flows[static_cast<std::size_t>(id)]) < wanted;
      });
  std::vector<const FlowSpan*> out;
  for (auto at = first; at != by_owner_.end() && owner(traffic_.flows[static_cast<std::size_t>(*at)]) == key; ++at)
    out.push_back(&traffic_.flows[static_cast<std::size_t>(*at)]);
  return out;
}

}  // namespace simsync::detail
