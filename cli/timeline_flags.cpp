#include "cli/timeline_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/parse_units.hpp"
#include "cli/outputs.hpp"
#include "cli/settings.hpp"
#include "sim/timeline/instance_filter.hpp"

namespace simsync {
namespace {

constexpr const char* kAll = "all";

CLI::Validator steps_or_all() {
  const auto check = [](std::string& text) {
    const auto number = parse_integer(text);
    const bool right = text == kAll || (number && *number >= 1 && *number <= 1'000'000);
    return right ? std::string{} : "expected 'all' or a whole number from 1, got '" + text + "'";
  };
  return CLI::Validator(check, "all|N");
}

std::vector<Place> ranks_of(const std::string& text, const Plan& plan) {
  std::vector<Place> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const auto rank = parse_integer(text.substr(at, comma - at));
    if (!rank || *rank < 0 || *rank >= plan.rank_count())
      throw InputError(
          fmt::format("--timeline-ranks {}: expected 'all' or ranks from 0 to {}", text, plan.rank_count() - 1));
    out.push_back(plan.ranks[static_cast<std::size_t>(*rank)]);
    at = comma + 1;
  }
  return out;
}

void check_simulated(const TimelineFlags& flags, const Prediction& prediction, const TimelineOptions& options) {
  if (flags.ranks.empty() || flags.ranks == kAll) return;
  for (const Place& rank : options.ranks)
    if (std::find(prediction.ranks.begin(), prediction.ranks.end(), rank) == prediction.ranks.end())
      throw InputError(fmt::format("--timeline-ranks {}: another rank stands for {}", flags.ranks, name_of(rank)),
                       "--set fidelity=fluid simulates every rank");
}

/// What the flags leave out, as far as the user did not choose it.
std::string choice_text(const TimelineFlags& flags, const Recorded& recorded, const TimelineOptions& options) {
  const std::size_t ranks = recorded.prediction.ranks.size();
  const bool some_ranks = flags.ranks.empty() && !options.ranks.empty() && options.ranks.size() < ranks;
  const std::size_t steps = recorded.prediction.iteration_end.size();
  const bool some_steps = flags.steps.empty() && options.last_steps > 0 && steps > 1;
  if (!some_ranks && !some_steps) return {};
  std::string text = "the timeline shows ";
  if (some_ranks)
    text += fmt::format("{} of {} simulated ranks, one of each kind, and the servers", options.ranks.size(), ranks);
  if (some_steps) text += fmt::format("{}the last of {} steps", some_ranks ? ", in " : "", steps);
  return text + fmt::format("; {}{}{} shows more", some_ranks ? "--timeline-ranks all" : "",
                            some_ranks && some_steps ? " --timeline-steps all" : "",
                            !some_ranks ? "--timeline-steps all" : "");
}

}  // namespace

void add_timeline_flags(CLI::App& command, TimelineFlags& flags) {
  auto* file =
      command.add_option("--timeline", flags.file, "Write what happens when to this file, for ui.perfetto.dev")
          ->check(output_file("--timeline"));
  command
      .add_option("--timeline-ranks", flags.ranks,
                  "Ranks that the timeline shows: 'all', or numbers with commas (default: one of each kind of node)")
      ->needs(file);
  command
      .add_option("--timeline-steps", flags.steps,
                  "How many of the last steps it shows, or 'all' (default: 1; all of asynchronous workers)")
      ->check(steps_or_all())
      ->needs(file);
}

TimelineOptions timeline_options(const TimelineFlags& flags, const Plan& plan, const Cluster& cluster) {
  TimelineOptions out;
  if (flags.ranks.empty())
    out.ranks = representative_ranks(plan, cluster);
  else if (flags.ranks != kAll)
    out.ranks = ranks_of(flags.ranks, plan);
  if (flags.steps.empty())
    out.last_steps = plan.in_lock_step() ? 1 : 0;
  else if (flags.steps != kAll)
    out.last_steps = static_cast<int>(*parse_integer(flags.steps));
  return out;
}

void write_timeline_file(const TimelineFlags& flags, const Recorded& recorded, const TimelineOptions& options) {
  check_simulated(flags, recorded.prediction, options);
  std::vector<std::string> left_out;
  write_file(flags.file, [&](std::ostream& out) { left_out = write_timeline(out, recorded, options); });
  const std::string choice = choice_text(flags, recorded, options);
  if (!choice.empty()) std::cerr << "note: " << choice << '\n';
  for (const auto& text : left_out) std::cerr << "note: the timeline leaves out " << text << '\n';
}

}  // namespace simsync
