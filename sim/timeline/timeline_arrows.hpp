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
  std::int64_t ended = 0;  ///< ns: end of the span that it comes from; inside a merged box not the end of the box
  std::int64_t began = 0;  ///< ns: begin of the span that it leads to
};

struct TimelineArrows {
  std::vector<TimelineArrow> drawn;  ///< in order of the spans that they lead to
  std::size_t left_out = 0;
};

/// One for each span whose cause (Span::cause) is drawn on another row, in a box of its own or in a merged one; between
/// the same two merged boxes only the first. Of more than `most`, those first on the chain of causes that ends with
/// each iteration, its critical path.
TimelineArrows arrows_of(const TimelineRows& rows, const Prediction& prediction, std::size_t most);

}  // namespace simsync::detail
