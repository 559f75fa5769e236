#include "sim/problem/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "sim/plan/compile.hpp"
#include "sim/problem/profile_device.hpp"
#include "sim/problem/read_request.hpp"
#include "sim/problem/without_effect.hpp"

namespace simsync {

std::optional<std::pair<std::string, std::string>> parse_setting(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) return std::nullopt;
  return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

std::string settings_text(const std::vector<std::pair<std::string, std::string>>& settings) {
  std::map<std::string, std::string> last;
  for (const auto& [key, value] : settings) last[key] = value;
  std::string out;
  for (const auto& [key, value] : last) out += fmt::format("{}{}={}", out.empty() ? "" : ";", key, value);
  return out;
}

std::optional<std::vector<std::pair<std::string, std::string>>> parse_settings_text(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(';', at), text.size());
    const auto setting = parse_setting(text.substr(at, end - at));
    if (!setting) return std::nullopt;
    out.push_back(*setting);
    at = end + 1;
  }
  return out;
}

void compile_again(Problem& problem) {
  problem.plan = compile(problem.model, problem.profile, problem.cluster, problem.strategy);
}

Problem for_real_run(Problem problem) {
  if (!problem.plan.in_lock_step() && problem.strategy.graph.update_at == UpdateAt::Worker)
    throw PlanError("strategy '" + problem.strategy.name +
                    "' lets workers run ahead, each with an optimizer of its own: real runs need one on the servers");
  for (NodeGroup& group : problem.cluster.groups) group.cpu.dispatch_latency = Seconds{0.0};
  compile_again(problem);
  return problem;
}

namespace {

/// Notes when a calibration says what its rows were of, and the strategy is not among it.
void note_validity(const Calibration& calibration, const std::string& strategy, std::vector<std::string>& notes) {
  if (calibration.may_be_for(strategy)) return;
  const auto& said = calibration.valid_for;
  const std::string more = said.size() > 1 ? fmt::format(", and {} more", said.size() - 1) : "";
  notes.push_back(fmt::format("calibration {} does not name strategy '{}': it was fitted to {}{}", calibration.file,
                              strategy, said.front(), more));
}

}  // namespace

Problem prepare(const PredictRequest& request) {
  Inputs inputs;
  return prepare(request, inputs);
}

Problem prepare(const PredictRequest& request, Inputs& inputs) {
  detail::ReadRequest read = detail::read_request(request, inputs);
  const detail::Settings& settings = read.settings;
  std::vector<std::string>& notes = read.notes;
  const std::int64_t batch = detail::batch_for(read, request);
  Strategy strategy = detail::strategy_for(read, request, batch);
  if (read.calibration) note_validity(*read.calibration, strategy.name, notes);
  Profile profile = detail::profile_for(read, request, strategy, batch, inputs);
  detail::check_profile_device(settings.profile, read.cluster, notes);
  detail::relate_devices(read, profile);
  Plan plan = compile(read.model, profile, read.cluster, strategy);
  notes.insert(notes.end(), plan.notes.begin(), plan.notes.end());
  const NetworkBasis network =
      network_basis(plan, read.described, read.cluster, read.calibration ? &*read.calibration : nullptr);
  RankMemory memory = rank_memory(read.model, read.cluster, strategy, profile, settings.optimizer);
  if (request.global_batch) memory.replicas = strategy.graph.batches();
  detail::note_without_effect(strategy, notes);
  detail::note_without_effect(settings.optimizer, profile, notes);
  detail::note_without_effect(settings.options, plan, notes);
  return {.model = std::move(read.model),
          .cluster = std::move(read.cluster),
          .strategy = std::move(strategy),
          .profile = std::move(profile),
          .plan = std::move(plan),
          .options = settings.options,
          .errors = {.compute = settings.compute_error, .network = settings.network_error},
          .network = network,
          .optimizer = settings.optimizer,
          .memory = std::move(memory),
          .ignore_memory = settings.ignore_memory,
          .notes = std::move(notes)};
}

}  // namespace simsync
