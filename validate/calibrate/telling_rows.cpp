#include "validate/calibrate/telling_rows.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace simsync::detail {

std::string telling_rows(std::string_view key) {
  using Entry = std::pair<std::string_view, std::string_view>;  // end of the key, rows
  static constexpr std::array<Entry, 15> kRows{{
      {"collective.launch", "short collectives with another number of ranks"},
      {".per_step_intra", "short collectives with another number of ranks on one node"},
      {".per_step_inter", "short collectives over another number of nodes"},
      {".payload_rate", "long collectives with another number of ranks"},
      {".interference", "overlaps beside longer all-reduces"},
      {".efficiency", "longer messages or collectives on its links"},
      {".per_flow_cap", "long messages, one at a time and several"},
      {".dispatch_latency", "pushes of one short tensor, and messages between nodes"},
      {".latency", "short messages, one at a time"},
      {".half_size", "many short messages at a time (count 32)"},
      {".per_tensor", "pushes and pulls of many short tensors (count 64)"},
      {".sum_rate", "pushes of one long tensor by one worker"},
      {".threads", "pushes of many short tensors (count 64) by several workers"},
      {".queueing_delay", "reads beside several workers that push"},
      {".passing_delay", "reads beside one worker that pushes"},
  }};
  const auto* const found = std::ranges::find_if(kRows, [&](const Entry& entry) { return key.ends_with(entry.first); });
  return std::string(found == kRows.end() ? "other sizes, rank counts or tensor counts" : found->second);
}

}  // namespace simsync::detail
