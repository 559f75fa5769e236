// Which link, or which cap, held back a recorded flow. Private to sim/engine.
#pragma once
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

/// Answers questions about the flows of one prediction, which must outlive it.
class FlowLimits {
public:
  explicit FlowLimits(const Prediction& prediction);
  /// The link on its way, or the cap of its way, that had most to do for its rate while the flow ran.
  /// Cost: O(flows on its links).
  [[nodiscard]] FlowLimit limit_of(const FlowSpan& flow) const;
  /// Bytes that crossed a link in [begin, end]; a flow that reaches beyond counts by its share of the time.
  [[nodiscard]] double bytes_between(int link, double begin, double end) const;
  /// Flows of one instance of an op, in order of their start.
  [[nodiscard]] std::vector<const FlowSpan*> flows_of(const Span& span) const;

private:
  [[nodiscard]] const FlowPath& way_of(const FlowSpan& flow) const {
    return traffic_.paths[static_cast<std::size_t>(flow.path)];
  }
  [[nodiscard]] double bytes_of(const std::vector<std::int32_t>& flows, double begin, double end) const;

  const Traffic& traffic_;
  std::vector<std::vector<std::int32_t>> by_link_;
  std::vector<std::vector<std::int32_t>> by_path_;
  std::vector<std::int32_t> by_owner_;  ///< sorted by iteration, op, cell
};

}  // namespace simsync::detail
