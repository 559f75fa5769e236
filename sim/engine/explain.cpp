#include "sim/engine/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "sim/engine/flow_limits.hpp"
#include "strategies/names.hpp"

namespace simsync {
namespace {

constexpr std::size_t kOpsShown = 10;
constexpr std::size_t kLinksShown = 8;
constexpr std::size_t kCollectivesShown = 5;

/// Sums pieces by resource, and by op when `by_op`; longest first.
std::vector<PathShare> sum_up(const std::vector<PathPiece>& path, bool by_op) {
  std::map<std::pair<std::string, std::string>, PathShare> sums;
  for (const PathPiece& piece : path) {
    PathShare& share = sums[{piece.resource, by_op ? piece.what : std::string{}}];
    share.time += piece.length;
    share.shared += piece.shared;
  }
  std::vector<PathShare> out;
  for (auto& [key, share] : sums) {
    share.resource = key.first;
    share.what = key.second;
    out.push_back(share);
  }
  std::stable_sort(out.begin(), out.end(), [](const PathShare& a, const PathShare& b) { return a.time > b.time; });
  return out;
}

std::vector<LinkLoad> loads(const Prediction& prediction, double begin, double end) {
  const detail::FlowLimits limits(prediction);
  std::map<std::string, LinkLoad> roles;
  for (std::size_t id = 0; id < prediction.traffic.links.size(); ++id) {
    const Link& link = prediction.traffic.links[id];
    const double bytes = limits.bytes_between(static_cast<int>(id), begin, end);
    if (bytes <= 0.0) continue;
    const double used = bytes / (link.bandwidth.value() * (end - begin));
    LinkLoad& load = roles[detail::role_of(link.name)];
    ++load.count;
    load.mean_utilization += used;
    if (used <= load.utilization) continue;
    load.utilization = used;
    load.bytes = bytes;
    load.busiest = link.name;
  }
  std::vector<LinkLoad> out;
  for (auto& [role, load] : roles) {
    load.role = role;
    load.mean_utilization /= load.count;
    out.push_back(load);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const LinkLoad& a, const LinkLoad& b) { return a.utilization > b.utilization; });
  return out;
}

std::vector<CollectiveShare> collectives_of(const Problem& problem, const Prediction& prediction, int iteration) {
  const auto op_of = [&](std::size_t id) -> const Op& {
    return problem.plan.ops[static_cast<std::size_t>(prediction.spans[id].op)];
  };
  std::vector<std::size_t> spans;
  for (std::size_t id = 0; id < prediction.spans.size(); ++id) {
    const Span& span = prediction.spans[id];
    if (op_of(id).kind() == OpKind::Collective && span.iteration == iteration && span.group == 0) spans.push_back(id);
  }
  const auto pieces = pieces_of(problem.plan, problem.cluster, prediction, spans);
  std::vector<CollectiveShare> out;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Span& span = prediction.spans[spans[i]];
    const Op& op = op_of(spans[i]);
    CollectiveShare share{.what = title_of(problem.plan, op),
                          .algorithm = name_of(op.collective().algorithm),
                          .bytes = op.bytes(),
                          .time = span.end - span.start,
                          .limit = {},
                          .limit_time = {}};
    const auto parts = sum_up(pieces[i], false);
    if (!parts.empty()) {
      share.limit = parts.front().resource;
      share.limit_time = parts.front().time;
    }
    out.push_back(std::move(share));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const CollectiveShare& a, const CollectiveShare& b) { return a.time > b.time; });
  return out;
}

std::string percent(double part, double whole) {
  return fmt::format("{:.1f} %", whole > 0.0 ? 100.0 * part / whole : 0.0);
}

void print_share(std::string& out, const PathShare& share, Seconds step) {
  const bool says_it =
      share.what.empty() || share.resource.starts_with("compute ");  // `backward fc6: compute backward`
  const std::string name = share.what.empty() ? share.resource
                           : says_it          ? share.what
                                              : share.what + ": " + share.resource;
  out +=
      fmt::format("  {:<64} {:>10} {:>8}", name, format_seconds(share.time), percent(share.time.value(), step.value()));
  if (share.shared.value() > 0.005 * step.value())
    out += fmt::format("   {} of it shared with others", format_seconds(share.shared));
  out += "\n";
}

void print_path(std::string& out, const Explanation& e) {
  const char* which = e.vary      ? " (steps vary; this one is nearest to their mean)"
                      : !e.steady ? " (not steady: iterations still differ)"
                                  : "";
  out += fmt::format("Critical path of iteration {}, {}{}:\n", number_of_iteration(e.iteration), format_seconds(e.step),
                     which);
  for (const PathShare& share : e.resources) print_share(out, share, e.step);
  out += "Longest pieces of it:\n";
  for (std::size_t i = 0; i < std::min(kOpsShown, e.ops.size()); ++i) print_share(out, e.ops[i], e.step);
  if (e.ops.size() <= kOpsShown) return;
  PathShare rest{.resource = fmt::format("{} more", e.ops.size() - kOpsShown), .what = {}, .time = {}, .shared = {}};
  for (std::size_t i = kOpsShown; i < e.ops.size(); ++i) rest.time += e.ops[i].time;
  print_share(out, rest, e.step);
}

void print_links(std::string& out, const Explanation& e) {
  if (e.links.empty()) return;
  out += "Busiest links in the step:\n";
  for (std::size_t i = 0; i < std::min(kLinksShown, e.links.size()); ++i) {
    const LinkLoad& load = e.links[i];
    out += fmt::format("  {:<36} {:>12} {:>8} busy", load.busiest, format_bytes(load.bytes),
                       percent(load.utilization, 1.0));
    if (load.count > 1)
      out +=
          fmt::format("   ({} links '{}', {} on average)", load.count, load.role, percent(load.mean_utilization, 1.0));
    out += "\n";
  }
}

void print_collectives(std::string& out, const Explanation& e) {
  if (e.collectives.empty()) return;
  out += fmt::format("Collectives of the step: {}, the longest:\n", e.collectives.size());
  for (std::size_t i = 0; i < std::min(kCollectivesShown, e.collectives.size()); ++i) {
    const CollectiveShare& share = e.collectives[i];
    out += fmt::format("  {:<36} {:>12} {:>10} by {}, {} of it {}\n", share.what, format_bytes(share.bytes),
                       format_seconds(share.time), share.algorithm,
                       percent(share.limit_time.value(), share.time.value()), share.limit);
  }
}

/// Among those that count.
int nearest_to_mean(const Prediction& recorded) {
  const auto nearest =
      std::min_element(recorded.steps.begin() + recorded.warm_up, recorded.steps.end(), [&](Seconds a, Seconds b) {
        return std::abs((a - recorded.step).value()) < std::abs((b - recorded.step).value());
      });
  return static_cast<int>(nearest - recorded.steps.begin());
}

}  // namespace

int typical_iteration(const Plan& plan, const Prediction& recorded) {
  return plan.steps_vary() ? nearest_to_mean(recorded) : static_cast<int>(recorded.iteration_end.size()) - 1;
}

Explanation explain(const Problem& problem, const Prediction& recorded) {
  SIMSYNC_ASSERT(!recorded.spans.empty() && !recorded.iteration_end.empty());
  Explanation out;
  out.vary = problem.plan.steps_vary();
  out.iteration = typical_iteration(problem.plan, recorded);
  const double end = recorded.iteration_end[static_cast<std::size_t>(out.iteration)].value();
  const double begin =
      out.iteration > 0 ? recorded.iteration_end[static_cast<std::size_t>(out.iteration) - 1].value() : 0.0;
  out.step = Seconds{end - begin};
  out.steady = recorded.steady;
  out.path = critical_path(problem.plan, problem.cluster, recorded, out.iteration);
  out.resources = sum_up(out.path, false);
  out.ops = sum_up(out.path, true);
  out.links = loads(recorded, begin, end);
  out.collectives = collectives_of(problem, recorded, out.iteration);
  return out;
}

std::string to_text(const Explanation& explanation) {
  std::string out;
  print_path(out, explanation);
  print_links(out, explanation);
  print_collectives(out, explanation);
  return out;
}

std::string to_text(const WhatIf& answer, Seconds predicted) {
  if (!answer.step)
    return fmt::format("  {:<36} {:>12}   not simulated: far more work than the prediction\n", answer.what, "?");
  // A list of ready ops can take longer with faster machines (Graham's anomalies); rounding is none of them.
  const double saved = (predicted - *answer.step).value();
  const bool longer = saved < -1e-9 * predicted.value();
  return fmt::format("  {:<36} {:>12}   {} {}\n", answer.what, format_seconds(*answer.step),
                     percent(std::abs(saved), predicted.value()),
                     longer ? "more (queues serve in another order)" : "less");
}

}  // namespace simsync
