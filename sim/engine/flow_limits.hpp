// Which link, or which cap, held back a recorded flow. Private to sim/engine.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/timeline/prediction.hpp"

namespace simsync::detail {

/// What all streams between two nodes are capped by; its name ends so, and it is its role.
inline constexpr const char* kConnection = "connection";

/// What a link is, whichever node it belongs to: `nic-out` for `node3/nic-out`, `pcie-in` for `node0/gpu2/pcie-in`.
std::string role_of(const std::string& link);

/// What limited a flow and how much of its time was due to others on the same links.
struct FlowLimit {
  std::string resource;  ///< `link nic-in`, or `stream cap on nic-out`, `stream cap on connection`
  std::string where;     ///< the link: `node0/nic-in`
  Seconds shared;        ///< beyond what the flow would have taken alone
};

/// How many bytes of some flows had passed at any time, each flow at an even rate.
class PassedBytes {
public:
  PassedBytes(const std::vector<FlowSpan>& flows, const std::vector<std::int32_t>& which);
  /// Cost: O(log flows).
  [[nodiscard]] double between(double begin, double end) const;

private:
  [[nodiscard]] double until(double time) const;
  std::vector<double> at_;     ///< when a flow began or ended, ascending
  std::vector<double> bytes_;  ///< that had passed then
};

/// Answers questions about the flows of one prediction, which must outlive it.
class FlowLimits {
public:
  explicit FlowLimits(const Prediction& prediction);
  /// The link on its way, or the cap of its way, that had most to do for its rate while the flow ran.
  /// Cost: that of PassedBytes::between, after O(n log n) once for the n flows of each link.
  [[nodiscard]] FlowLimit limit_of(const FlowSpan& flow) const;
  /// Bytes that crossed a link in [begin, end]; a flow that reaches beyond counts by its share of the time.
  [[nodiscard]] double bytes_between(int link, double begin, double end) const;
  /// Flows of one instance of an op, in order of their start.
  [[nodiscard]] std::vector<const FlowSpan*> flows_of(const Span& span) const;

private:
  [[nodiscard]] const FlowPath& route_of(const FlowSpan& flow) const {
    return traffic_.paths[static_cast<std::size_t>(flow.path)];
  }
  [[nodiscard]] double bytes_of_path(int path, double begin, double end) const;

  const Traffic& traffic_;
  std::vector<std::vector<std::int32_t>> by_link_;
  std::vector<std::vector<std::int32_t>> by_path_;
  std::vector<std::int32_t> by_owner_;  ///< sorted by iteration, op, group
  // Made when they are first asked for.
  mutable std::map<int, PassedBytes> over_link_;
  mutable std::map<int, PassedBytes> over_path_;
};

}  // namespace simsync::detail
