// Arrows of a timeline: from what ended to what it let begin. Private to sim/timeline.
#pragma once
#include <cstdint>
#include <vector>

#include "sim/timeline/timeline_rows.hpp"

namespace simsync::detail {

/// Between two boxes, as indices into TimelineRows::events.
struct TimelineArrow {
  std::size_t from = 0;
  std::size_t to = 0;
};

/// One for each span whose cause (Span::cause) is drawn on another row, where both are boxes of their own and not
/// merged with others; of more than `most` the first.
std::vector<TimelineArrow> arrows_of(const TimelineRows& rows, const Prediction& prediction, std::size_t most);

}  // namespace simsync::detail
