// What ports pass beyond their rate after a pause. Private to sim/engine.
#pragma once
#include <map>

#include "sim/engine/flow_network.hpp"
#include "sim/engine/routes.hpp"

namespace simsync::detail {

/// The token buckets of a network's links (PortService::burst). A link that no flow crosses fills its own at its rate;
/// one in use has none to spare. Network and routes must outlive it.
class TokenBuckets {
public:
  TokenBuckets(const FlowNetwork& network, const Routes& routes);

  /// Whether any link has one.
  [[nodiscard]] bool any() const { return any_; }
  /// Of `bytes` that start along a path now, those that take time at the rates of its links: the bucket of every link
  /// passes the others. They are taken from all of them.
  double left_of(int path, double bytes);
  /// A flow along the path has ended.
  void ended(int path);

private:
  struct Bucket {
    double tokens = 0.0;   ///< bytes of PortService::burst
    double at_once = 0.0;  ///< of PortService::burst_at_once
    Seconds since;         ///< it fills from then on
  };
  [[nodiscard]] const Link& link(int number) const { return routes_.links()[static_cast<std::size_t>(number)]; }
  [[nodiscard]] const std::vector<int>& links_of(int path) const {
    return routes_.paths()[static_cast<std::size_t>(path)].links;
  }
  void fill(Bucket& bucket, int number) const;
  [[nodiscard]] double slow_part(const Bucket& bucket, int number, double bytes) const;

  const FlowNetwork& network_;
  const Routes& routes_;
  bool any_;
  std::map<int, Bucket> buckets_;  ///< by link, once a flow has crossed it
};

}  // namespace simsync::detail
