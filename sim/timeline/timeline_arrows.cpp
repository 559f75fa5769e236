#include "sim/timeline/timeline_arrows.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace simsync::detail {
namespace {

/// The spans on the chain of causes that ends with each iteration, as far as they were recorded.
std::vector<bool> critical_spans(const Prediction& prediction) {
  const auto& spans = prediction.spans;
  std::vector<bool> out(spans.size(), false);
  std::set<int> ended;  // iterations whose last span has been met: spans are in order of completion
  for (std::size_t id = spans.size(); id-- > 0;) {
    if (!ended.insert(spans[id].iteration).second) continue;
    for (auto at = static_cast<std::int32_t>(id); at >= 0 && !out[static_cast<std::size_t>(at)];
         at = spans[static_cast<std::size_t>(at)].cause)
      out[static_cast<std::size_t>(at)] = true;
  }
  return out;
}

bool stands_for_several(const TimelineEvent& box) {
  return box.merged > 1 || box.kind == TimelineEvent::Kind::More;
}

std::optional<TimelineArrow> arrow_to(const TimelineRows& rows, const Prediction& prediction, std::size_t span) {
  const std::int32_t cause = prediction.spans[span].cause;
  if (cause < 0) return std::nullopt;
  const TimelineArrow arrow{.from = rows.box_of_end(static_cast<std::size_t>(cause)),
                            .to = rows.box_of_begin(span),
                            .ended = nanoseconds(prediction.spans[static_cast<std::size_t>(cause)].end),
                            .began = nanoseconds(prediction.spans[span].start)};
  if (arrow.from == kNoBox || arrow.to == kNoBox || arrow.ended > arrow.began) return std::nullopt;
  if (rows.events()[arrow.from].thread == rows.events()[arrow.to].thread) return std::nullopt;
  return arrow;
}

}  // namespace

TimelineArrows arrows_of(const TimelineRows& rows, const Prediction& prediction, std::size_t most) {
  const std::vector<bool> critical = critical_spans(prediction);
  std::vector<std::pair<std::size_t, TimelineArrow>> chosen;  // by the span that it leads to
  std::set<std::pair<std::size_t, std::size_t>> known;        // pairs of boxes, one of which is merged
  TimelineArrows out;
  for (const bool of_path : {true, false}) {
    for (std::size_t span = 0; span < critical.size(); ++span) {
      if (critical[span] != of_path) continue;
      const auto arrow = arrow_to(rows, prediction, span);
      if (!arrow) continue;
      const auto& events = rows.events();
      const bool merged = stands_for_several(events[arrow->from]) || stands_for_several(events[arrow->to]);
      const bool again = merged && !known.insert({arrow->from, arrow->to}).second;
      if (again || chosen.size() == most)
        ++out.left_out;
      else
        chosen.emplace_back(span, *arrow);
    }
  }
  std::sort(chosen.begin(), chosen.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& entry : chosen) out.drawn.push_back(entry.second);
  return out;
}

}  // namespace simsync::detail
