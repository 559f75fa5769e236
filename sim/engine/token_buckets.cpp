#include "sim/engine/token_buckets.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace simsync::detail {

TokenBuckets::TokenBuckets(const FlowNetwork& network, const Routes& routes)
    : network_(network),
      routes_(routes),
      any_(std::any_of(routes.links().begin(), routes.links().end(),
                       [](const Link& link) { return link.service.burst.count > 0; })) {}

double TokenBuckets::left_of(int path, double bytes) {
  if (!any_) return bytes;
  std::vector<Bucket*> on_route;
  double left = 0.0;
  for (const int id : links_of(path)) {
    const PortService& service = link(id).service;
    if (service.burst.count == 0) continue;
    const Bucket full{static_cast<double>(service.burst.count), static_cast<double>(service.burst_at_once.count), {}};
    Bucket& bucket = buckets_.try_emplace(id, full).first->second;
    if (network_.flows_across(id) > 0) return bytes;
    fill(bucket, id);
    left = std::max(left, slow_part(bucket, id, bytes));
    on_route.push_back(&bucket);
  }
  if (on_route.empty()) return bytes;
  for (Bucket* bucket : on_route) {
    bucket->tokens = std::max(0.0, bucket->tokens - (bytes - left));
    bucket->at_once = std::max(0.0, bucket->at_once - bytes);
  }
  return left;
}

void TokenBuckets::ended(int path) {
  if (!any_) return;
  for (const int id : links_of(path))
    if (const auto known = buckets_.find(id); known != buckets_.end()) known->second.since = network_.now();
}

void TokenBuckets::fill(Bucket& bucket, int number) const {
  const PortService& service = link(number).service;
  const double room =
      link(number).bandwidth.value() * (network_.now() - std::exchange(bucket.since, network_.now())).value();
  bucket.tokens = std::min(static_cast<double>(service.burst.count), bucket.tokens + room);
  bucket.at_once = std::min(static_cast<double>(service.burst_at_once.count),
                            bucket.at_once + service.burst_speed.value_or(1.0) * room);
}

/// A link passes what it has tokens for at `burst_speed`, after `burst_at_once`.
double TokenBuckets::slow_part(const Bucket& bucket, int number, double bytes) const {
  const double beyond = std::max(0.0, bytes - bucket.tokens);
  const auto& speed = link(number).service.burst_speed;
  return speed ? std::max(beyond, (bytes - bucket.at_once) / *speed) : beyond;
}

}  // namespace simsync::detail
