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
  if (what == "host CPUs") return "Faster host CPUs";
  if (what.starts_with("bandwidth")) return "More " + what;
  return "Less " + what;
}

std::string help_text(const Explanation& e, const std::vector<WhatIf>& answers) {
  const WhatIf* best = nullptr;
  for (const WhatIf& answer : answers)
    if (answer.step && (best == nullptr || *answer.step < *best->step)) best = &answer;
  constexpr double kWorthwhile = 0.99;
  if (best == nullptr || *best->step > kWorthwhile * e.step) return " Nothing that could cost less would help alone.";
  return fmt::format(" {} would help most: {} at best, {:.2f}x as fast.", remedy(best->what),
                     format_seconds(*best->step), e.step / *best->step);
}

double time_of(const std::vector<StepPart>& parts, const std::string& name) {
  for (const StepPart& part : parts)
    if (part.name == name) return part.time.value();
  return 0.0;
}

/// The part of `slower` that it spends most on beyond what `faster` does; null: there is none.
const StepPart* what_differs(const ComparedSide& slower, const ComparedSide& faster) {
  const StepPart* most = nullptr;
  double difference = 0.0;
  for (const StepPart& part : slower.parts) {
    const double more = part.time.value() - time_of(faster.parts, part.name);
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

std::string reason(const ComparedSide& slower, const ComparedSide& faster) {
  const StepPart* part = what_differs(slower, faster);
  if (part == nullptr) return {};
  const double of_faster = time_of(faster.parts, part->name);
  std::string text = fmt::format("{} spends {} on {}", slower.name, format_seconds(part->time), part->name);
  text += of_faster > 0.0 ? fmt::format(", {} {}", faster.name, format_seconds(Seconds{of_faster}))
                          : fmt::format(", {} nothing", faster.name);
  const auto mine = busiest_nic(slower.problem, slower.explanation);
  const auto other = busiest_nic(faster.problem, faster.explanation);
  constexpr double kMuchMore = 1.1;
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
                    const std::vector<WhatIf>& answers) {
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
  constexpr std::size_t kWidth = 80;
  return wrapped(text, kWidth) + "\n";
}

std::optional<NicLoad> busiest_nic(const Problem& problem, const Explanation& explanation) {
  const LinkLoad* most = nullptr;
  for (const LinkLoad& load : explanation.links)
    if (load.role.starts_with("nic") && (most == nullptr || load.bytes > most->bytes)) most = &load;
  if (most == nullptr) return std::nullopt;
  constexpr double kAlike = 2.0 / 3.0;
  constexpr std::size_t kDigits = 4;  // behind `node`
  const NodeGroup& group = problem.cluster.group_of(std::atoi(most->busiest.c_str() + kDigits));
  const BytesPerSecond nominal = problem.cluster.links.at(group.nic_link).bandwidth;
  return NicLoad{most->busiest.substr(0, most->busiest.find('/')), most->bytes,
                 most->mean_utilization < kAlike * most->utilization, nominal * group.nics / group.nic_slowdown};
}

std::string comparison_verdict(const ComparedSide& a, const ComparedSide& b) {
  // Of different numbers of samples the rate counts.
  const auto rate = [](const ComparedSide& side) {
    const int workers = side.problem.plan.rank_count() - side.problem.plan.backups;
    return static_cast<double>(side.problem.profile.batch) * workers / side.prediction.step.value();
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
    network = "network of the cluster file with rates from --set";
  } else if (!request.calibration.empty()) {
    network += " (the calibration has no rate of the links that this job uses)";
  }
  return layer_times(problem.profile.source) + "; " + network;
}

}  // namespace simsync
