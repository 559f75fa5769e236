// Which of many ranges was running at a moment.
#pragma once
#include <unordered_map>
#include <vector>

#include "models/trace/kineto_events.hpp"

namespace simsync::detail {

/// Finds ranges in time that grows with the logarithm of their number and with how deep they are inside one another.
class RangeIndex {
public:
  /// `ranges`, in any order, must outlive the index and stay where they are.
  explicit RangeIndex(const std::vector<KinetoRange>& ranges);
  /// The range of that thread which began last of those that are running at `time`; null when none is.
  [[nodiscard]] const KinetoRange* around(int thread, double time) const;

private:
  struct Entry {
    const KinetoRange* range = nullptr;
    const Entry* outer = nullptr;  ///< the last one before it that had not ended when it began
  };
  std::unordered_map<int, std::vector<Entry>> by_thread_;  ///< by begin
};

}  // namespace simsync::detail
