#include "sim/engine/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/parse_units.hpp"
#include "base/wrap.hpp"

namespace simsync {
namespace {

/// What a reader would do about it.
std::string remedy(const std::string& what) {
  if (what == "compute") return "Faster compute";
  if (what == "host CPUs") return "Faster host CPUs and memory";
  if (what == kFreeConnections) return "A higher rate per connection, or more connections,";
  if (what == kFreeNetwork) return "More bandwidth between nodes and a higher rate per connection";
  if (what.starts_with("bandwidth")) return "More " + what;
  return "Less " + what;
}

/// `1.231 s at best, 2.62x as fast`.
std::string gain_text(const WhatIf& answer, Seconds step) {
  return fmt::format("{} at best, {:.2f}x as fast", format_seconds(*answer.step), step / *answer.step);
}

/// The best answer to a single remedy, and the one to both of the network's together. Where a pair of limits is nearly
/// as narrow as each other, one alone saves nothing.
std::string help_text(const Explanation& e, const std::vector<WhatIf>& answers) {
  const WhatIf* alone = nullptr;
  const WhatIf* together = nullptr;
  for (const WhatIf& answer : answers) {
    if (!answer.step) continue;
    const WhatIf*& best = answer.what == kFreeNetwork ? together : alone;
    if (best == nullptr || *answer.step < *best->step) best = &answer;
  }
  constexpr double kWorthwhile = 0.99;
  const bool alone_helps = alone != nullptr && *alone->step <= kWorthwhile * e.step;
  const Seconds least = alone_helps ? *alone->step : e.step;
  const bool together_helps = together != nullptr && *together->step <= kWorthwhile * least;
  if (!alone_helps && !together_helps) return " Nothing that could cost less would help alone.";
  if (!alone_helps)
    return fmt::format(" {} would help together, neither alone: {}.", remedy(together->what),
                       gain_text(*together, e.step));
  std::string text = fmt::format(" {} would help most{}: {}.", remedy(alone->what),
                                 together_helps ? " as a single change" : "", gain_text(*alone, e.step));
  if (together_helps) text += fmt::format(" {} together: {}.", remedy(together->what), gain_text(*together, e.step));
  return text;
}

/// Time that a step spends on one limit, under whatever names.
struct LimitTime {
  Seconds time;
  const StepPart* longest = nullptr;  ///< null: no time
};

LimitTime time_on(const std::vector<StepPart>& parts, const StepPart& limit) {
  LimitTime out;
  for (const StepPart& part : parts) {
    if (part.kind != limit.kind || part.limit != limit.limit) continue;
    out.time += part.time;
    if (out.longest == nullptr) out.longest = &part;
  }
  return out;
}

/// The part of `slower` on whose limit it spends most beyond what `faster` does; null: there is none.
const StepPart* what_differs(const ComparedSide& slower, const ComparedSide& faster) {
  const StepPart* most = nullptr;
  Seconds difference;
  for (const StepPart& part : slower.parts) {
    const Seconds more = time_on(slower.parts, part).time - time_on(faster.parts, part).time;
    if (more <= difference) continue;
    difference = more;
    most = &part;
  }
  return most;
}

std::string bytes_text(const NicLoad& load) {
  constexpr double kGiga = 1e9;
  constexpr double kBits = 8.0;
  return fmt::format("{} through {} of {:.3g} Gbit/s", format_bytes(load.bytes),
                     load.alone ? "one NIC (" + load.node + ")" : "each NIC", kBits * load.bandwidth.value() / kGiga);
}

/// What the time is spent on: `stream cap on ethernet`, or `ethernet` where parts of several names share it.
std::string name_of(const LimitTime& spent) {
  constexpr double kNearlyAll = 0.9;
  // The same model computes as long on both sides; they differ in how much of it runs while nothing else does.
  if (spent.longest->kind == PartKind::Compute) return spent.longest->name + " on the critical path";
  return spent.longest->time >= kNearlyAll * spent.time ? spent.longest->name : spent.longest->limit;
}

std::string reason(const ComparedSide& slower, const ComparedSide& faster) {
  const StepPart* part = what_differs(slower, faster);
  if (part == nullptr) return {};
  const LimitTime more = time_on(slower.parts, *part);
  const LimitTime less = time_on(faster.parts, *part);
  std::string text =
      fmt::format("{} spends {} on {}, {} ", slower.name, format_seconds(more.time), name_of(more), faster.name);
  text += less.longest == nullptr ? "nothing" : format_seconds(less.time);
  if (less.longest != nullptr && name_of(less) != name_of(more)) text += " on " + name_of(less);
  const auto mine = busiest_nic(slower.problem, slower.explanation);
  const auto other = busiest_nic(faster.problem, faster.explanation);
  constexpr double kMuchMore = 1.1;  // bytes that differ by less do not say why the times do
  if (part->kind != PartKind::Communication || !mine || !other || mine->bytes < kMuchMore * other->bytes) return text;
  return text +
         fmt::format("; in a step {} moves {}, {} {}", slower.name, bytes_text(*mine), faster.name, bytes_text(*other));
}

std::string layer_times(ProfileSource source) {
  switch (source) {
    case ProfileSource::Measured:
      return "measured layer times";
    case ProfileSource::MeasuredScaled:
      return "layer times measured elsewhere and scaled";
    case ProfileSource::Roofline:
      return "estimated layer times";
    case ProfileSource::RooflineScaled:
      return "estimated layer times scaled to a given step";
  }
  return "layer times";
}

}  // namespace

std::string verdict(const Problem& problem, const Explanation& explanation, const std::vector<StepPart>& parts,
                    const std::vector<WhatIf>& answers, std::size_t width) {
  if (parts.empty()) return {};
  const StepPart& most = parts.front();
  std::string text = fmt::format("Limited by {}: {} of the step's {} ({:.0f} %).", most.name, format_seconds(most.time),
                                 format_seconds(explanation.step), 100.0 * (most.time / explanation.step));
  text += help_text(explanation, answers);
  const std::string slow = slow_nodes(problem);
  const auto waits =
      std::find_if(parts.begin(), parts.end(), [](const StepPart& p) { return p.kind == PartKind::Waiting; });
  if (waits != parts.end() && !slow.empty())
    text += fmt::format(" The others wait {} for {}, whose GPUs are slower.", format_seconds(waits->time), slow);
  else if (waits != parts.end())
    text += fmt::format(" Steps vary: ranks wait {} for the slowest of them.", format_seconds(waits->time));
  return wrapped(text, width) + "\n";
}

std::optional<NicLoad> busiest_nic(const Problem& problem, const Explanation& explanation) {
  const LinkLoad* most = nullptr;
  for (const LinkLoad& load : explanation.links)
    if (load.role.starts_with("nic") && (most == nullptr || load.bytes > most->bytes)) most = &load;
  if (most == nullptr) return std::nullopt;
  constexpr double kAlike = 2.0 / 3.0;  // below, the busiest NIC is busier than most: it is told alone, by its node
  constexpr std::size_t kDigits = 4;  // behind `node`
  const NodeGroup& group = problem.cluster.group_of(std::atoi(most->busiest.c_str() + kDigits));
  const BytesPerSecond nominal = problem.cluster.links.at(group.nic_link).bandwidth;
  return NicLoad{most->busiest.substr(0, most->busiest.find('/')), most->bytes,
                 most->mean_utilization < kAlike * most->utilization, nominal * group.nics / group.nic_slowdown};
}

std::string comparison_verdict(const ComparedSide& a, const ComparedSide& b) {
  // Of different numbers of samples the rate counts.
  const auto rate = [](const ComparedSide& side) {
    const int batches = side.problem.strategy.graph.batches() - side.problem.plan.progress.backups;
    return static_cast<double>(side.problem.samples()) * batches / side.prediction.step.value();
  };
  const bool a_faster = rate(a) > rate(b);
  const ComparedSide& faster = a_faster ? a : b;
  const ComparedSide& slower = a_faster ? b : a;
  const double factor = rate(faster) / rate(slower);
  constexpr double kEqual = 1.001;  // to which steps are simulated
  if (factor < kEqual) return fmt::format("{} and {} are equally fast.", a.name, b.name);
  const std::string why = reason(slower, faster);
  return fmt::format("{} is {:.{}f}x as fast{}{}.", faster.name, factor, factor < 10.0 ? 2 : 0, why.empty() ? "" : ": ",
                     why);
}

std::string rests_on(const Problem& problem, const PredictRequest& request) {
  std::string network = "network of the cluster file, not calibrated";
  if (problem.network == NetworkBasis::Calibrated) {
    network = "calibrated network";
  } else if (problem.network == NetworkBasis::Set) {
    network = request.calibration.empty() ? "network of the cluster file" : "calibrated network";
    network += " with rates from --set";
  } else if (!request.calibration.empty()) {
    network += " (the calibration has no rate of the links that this job uses)";
  }
  return layer_times(problem.profile.source) + "; " + network;
}

}  // namespace simsync
