// One step of a trace as a serial stream of compute with the places where variables enter and gradients leave it.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/trace/traced_model.hpp"

namespace simsync::detail {

/// Compute operations by position: in the order in which they began.
struct StepView {
  /// busy[p]: compute of the operations before position p, where overlapping time counts for the one that began first.
  std::vector<Seconds> busy;
  std::map<std::string, std::size_t> first_use;  ///< position of the first operation that reads a variable
  std::map<std::string, std::size_t> ready;      ///< position after the last operation that a gradient waits for
  std::map<std::string, std::int64_t> received;  ///< bytes by variable: those of its parts together
  std::map<std::string, std::int64_t> sent;
  std::size_t backward = 0;  ///< where the backward pass begins, as far as told or seen from the sends
};

StepView view_of(const TraceStep& step, const TraceHints& hints);

}  // namespace simsync::detail
