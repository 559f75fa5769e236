#include "sim/timeline/timeline_arrows.hpp"

namespace simsync::detail {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// The first and the last box of each span; a span of a collective has one on every device, and the first counts.
struct Boxes {
  std::vector<std::size_t> first, last;
};

Boxes boxes_of(const TimelineRows& rows, std::size_t spans) {
  Boxes out{std::vector<std::size_t>(spans, kNone), std::vector<std::size_t>(spans, kNone)};
  const auto& events = rows.events();
  for (std::size_t id = 0; id < events.size(); ++id) {
    const TimelineEvent& event = events[id];
    const bool of_span = event.kind == TimelineEvent::Kind::Op || event.kind == TimelineEvent::Kind::Part;
    if (!of_span || event.merged > 1) continue;
    const auto span = static_cast<std::size_t>(event.index);
    if (out.first[span] == kNone ||
        (event.thread == events[out.first[span]].thread && event.begin < events[out.first[span]].begin))
      out.first[span] = id;
    if (out.last[span] == kNone ||
        (event.thread == events[out.last[span]].thread && event.end >= events[out.last[span]].end))
      out.last[span] = id;
  }
  return out;
}

}  // namespace

std::vector<TimelineArrow> arrows_of(const TimelineRows& rows, const Prediction& prediction, std::size_t most) {
  const Boxes boxes = boxes_of(rows, prediction.spans.size());
  const auto& events = rows.events();
  std::vector<TimelineArrow> out;
  for (std::size_t id = 0; id < prediction.spans.size() && out.size() < most; ++id) {
    if (prediction.spans[id].cause < 0) continue;
    const std::size_t from = boxes.last[static_cast<std::size_t>(prediction.spans[id].cause)];
    const std::size_t to = boxes.first[id];
    if (from == kNone || to == kNone || events[from].thread == events[to].thread) continue;
    if (events[from].end <= events[to].begin) out.push_back({from, to});
  }
  return out;
}

}  // namespace simsync::detail
