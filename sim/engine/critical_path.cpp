#include "sim/engine/critical_path.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "sim/engine/span_pieces.hpp"

namespace simsync {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The end of a span that lies on the path, and what let it begin.
struct Stretch {
  double begin = 0.0;
  double ready = kNever;  ///< could have begun, had others not been in its way; kNever: nobody was
  std::int32_t cause = -1;
};

/// From where a span is on the path. A transfer that waited for its turn on a connection had nothing to do with the
/// time before: that belongs to the transfer whose turn it was.
/// Work on a host may have waited for works that took turns with it, and have not ended: it was under way all the time.
Stretch stretch_of(const Plan& plan, const detail::SpanCutter& cutter, const std::vector<Span>& spans,
                   const Span& span) {
  if (const FlowSpan* flow = cutter.waited_in_turn(span))
    return {flow->start.value(), flow->ready.value(), flow->cause};
  const bool released_at_start = span.cause >= 0 && spans[static_cast<std::size_t>(span.cause)].end > span.ready;
  if (plan.ops[static_cast<std::size_t>(span.op)].kind() == OpKind::HostWork && span.start > span.ready &&
      !released_at_start)
    return {span.ready.value(), kNever, span.cause};
  // A device that works off its own queue is not shared with anyone.
  const bool own = plan.ops[static_cast<std::size_t>(span.op)].kind() == OpKind::Compute;
  const bool waited = span.start > span.ready && !own;
  return {span.start.value(), waited ? span.ready.value() : kNever, span.cause};
}

/// Cuts off what lies before `from` and notes what was spent behind others since `ready`.
bool clip(PathPiece& piece, double from, double ready) {
  const double end = (piece.begin + piece.length).value();
  if (end <= from) return false;
  const double begin = std::max(from, piece.begin.value());
  piece.shared *= (end - begin) / piece.length.value();
  piece.begin = Seconds{begin};
  piece.length = Seconds{end - begin};
  piece.shared = std::max(piece.shared, Seconds{std::min(end - begin, end - ready)});
  return true;
}

/// What passes between the end of a span and `until`.
PathPiece message_of(const Plan& plan, const Span& span, double until) {
  PathPiece message;
  message.begin = span.end;
  message.length = Seconds{until} - span.end;
  message.resource = kLatency;
  message.what = "control message of the end of " + title_of(plan, plan.ops[static_cast<std::size_t>(span.op)]);
  return message;
}

/// Index of the span that ended last in an iteration.
std::int32_t last_of(const std::vector<Span>& spans, int iteration) {
  auto at = static_cast<std::int32_t>(spans.size()) - 1;  // spans are in order of completion
  while (at >= 0 && spans[static_cast<std::size_t>(at)].iteration != iteration) --at;
  SIMSYNC_ASSERT(at >= 0);
  return at;
}

}  // namespace

std::vector<std::vector<PathPiece>> pieces_of(const Plan& plan, const Cluster& cluster, const Prediction& prediction,
                                              const std::vector<std::size_t>& spans) {
  detail::SpanCutter cutter(plan, cluster, prediction);
  std::vector<std::vector<PathPiece>> out;
  for (const std::size_t span : spans) out.push_back(cutter.pieces(prediction.spans.at(span)));
  return out;
}

std::vector<PathPiece> critical_path(const Plan& plan, const Cluster& cluster, const Prediction& prediction,
                                     int iteration) {
  const auto& spans = prediction.spans;
  if (iteration < 0) iteration = static_cast<int>(prediction.iteration_end.size()) - 1;
  const double from =
      iteration > 0 ? prediction.iteration_end.at(static_cast<std::size_t>(iteration) - 1).value() : 0.0;
  detail::SpanCutter cutter(plan, cluster, prediction);
  std::vector<PathPiece> path;
  double ready = kNever;  // since when what follows on the path could have begun
  for (auto at = last_of(spans, iteration); at >= 0;) {
    const Span& span = spans[static_cast<std::size_t>(at)];
    const Stretch stretch = stretch_of(plan, cutter, spans, span);
    auto pieces = cutter.pieces(span);
    for (auto piece = pieces.rbegin(); piece != pieces.rend() && piece->begin.value() >= stretch.begin; ++piece)
      if (clip(*piece, from, ready)) path.push_back(std::move(*piece));
    if (stretch.begin <= from) break;
    ready = stretch.ready == kNever ? kNever : std::min(ready, stretch.ready);
    at = stretch.cause;
    if (at < 0) break;
    // Between two hosts the control message of the end takes its time.
    PathPiece message = message_of(plan, spans[static_cast<std::size_t>(at)], stretch.begin);
    if (message.length > Seconds{0.0} && clip(message, from, kNever)) path.push_back(std::move(message));
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace simsync
