#include "sim/problem/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "platforms/calibration.hpp"
#include "sim/plan/compile.hpp"
#include "sim/problem/profile_device.hpp"
#include "sim/problem/request_cluster.hpp"
#include "sim/problem/request_settings.hpp"
#include "strategies/reader.hpp"

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

/// Estimated times of an update are those of the optimizer of a default OptimizerState.
void update_by(const OptimizerState& optimizer, Profile& profile, std::vector<std::string>& notes) {
  if (optimizer == OptimizerState{}) return;
  if (profile.source != ProfileSource::Roofline) {
    notes.emplace_back("optimizer and master_weights count for memory only: the time of the update is measured");
    return;
  }
  constexpr double kWidth = 4.0;  // of a weight; two bytes beside an fp32 copy move as much
  profile.update = optimizer.update_bytes(kWidth) / OptimizerState{}.update_bytes(kWidth) * profile.update;
}

void check_numbers(const PredictRequest& request) {
  constexpr int kMostWorkers = 1'000'000;
  if (request.workers < 1 || request.workers > kMostWorkers)
    throw InputError(fmt::format("--workers {}: expected a number from 1 to {}", request.workers, kMostWorkers));
  if (request.batch && (*request.batch < 1 || *request.batch > 100'000'000))
    throw InputError(fmt::format("--batch {}: expected a number from 1 to 100000000", *request.batch));
}

/// What a strategy does with the step of one worker must fit the model and its batch.
void check_step(const Strategy& strategy, const Model& model, std::int64_t batch) {
  if (batch % strategy.graph.micro_steps != 0)
    throw PlanError(
        fmt::format("a batch of {} per worker does not split into {} micro-steps", batch, strategy.graph.micro_steps));
  if (strategy.graph.recompute != Recompute::None && blocks_of(model).empty())
    throw PlanError(
        fmt::format("recompute={} drops the activations of blocks, layers whose names agree up to a number "
                    "such as 'layers.0': model '{}' has none",
                    name_of(strategy.graph.recompute), model.name()));
}

/// A request that names device and batch, with what settings and strategy say of the rest.
ProfileRequest completed(ProfileRequest asked, const detail::Settings& settings, const Cluster& cluster,
                         const Strategy& strategy) {
  asked.precision = settings.precision.value_or(cluster.precision);
  asked.micro_steps = strategy.graph.micro_steps;
  asked.recompute = strategy.graph.recompute;
  asked.roofline = detail::roofline_of(cluster.devices.at(asked.device), asked.precision);
  asked.step_time = settings.step_time;
  asked.profile = settings.profile;
  asked.mean = !in_lock_step(strategy);
  return asked;
}

/// Notes settings that change nothing of this plan.
void note_without_effect(const ReplayOptions& options, const Plan& plan, std::vector<std::string>& notes) {
  if (options.steps_per_worker > 0 && !plan.steps_vary())
    notes.emplace_back("steps_per_worker has no effect: workers are in lock step and nothing of their steps varies");
  if (options.max_iterations != ReplayOptions{}.max_iterations && plan.steps_vary())
    notes.emplace_back("iterations has no effect: steps vary, and steps_per_worker says how many are simulated");
}

}  // namespace

Problem prepare(const PredictRequest& request) {
  Inputs inputs;
  return prepare(request, inputs);
}

Problem prepare(const PredictRequest& request, Inputs& inputs) {
  check_numbers(request);
  const ModelParameters parameters = detail::model_parameters(request.settings);
  const Model& named = inputs.model(request.model, parameters);
  Cluster described = inputs.cluster(request.cluster);
  std::vector<std::string> notes;
  std::optional<Calibration> calibration;
  if (!request.calibration.empty()) {
    calibration = load_calibration(request.calibration);
    apply(described, *calibration);
  }
  const detail::Settings settings = detail::read_settings(request, described);
  const Model model = settings.variable_scale ? named.with_scaled_variables(*settings.variable_scale) : named;
  Cluster cluster = detail::cluster_of(request, described, settings, notes);
  const std::int64_t batch = request.batch.value_or(model.default_batch());
  Strategy strategy = find_strategy(request.strategy, {.model = model,
                                                       .cluster = cluster,
                                                       .workers = request.workers,
                                                       .batch = batch,
                                                       .options = settings.strategy,
                                                       .seed = settings.seed});
  check_step(strategy, model, batch);
  if (calibration) note_validity(*calibration, strategy.name, notes);
  const Place first = cluster.workers(request.workers).front();
  const ProfileRequest asked =
      completed({.device = cluster.group_of(first.node).device, .batch = batch / strategy.graph.micro_steps}, settings,
                cluster, strategy);
  Profile profile = inputs.profile(request.model, parameters, asked);
  update_by(settings.optimizer, profile, notes);
  profile.variation = settings.step_variation;
  profile.seed = settings.seed;
  detail::check_profile_device(settings.profile, cluster, notes);
  detail::relate_devices(cluster, model,
                         {.device = asked.device, .precision = asked.precision, .batch = profile.batch});
  Plan plan = compile(model, profile, cluster, strategy);
  notes.insert(notes.end(), plan.notes.begin(), plan.notes.end());
  const NetworkBasis network = network_basis(plan, described, cluster, calibration ? &*calibration : nullptr);
  RankMemory memory = rank_memory(model, cluster, strategy, profile, settings.optimizer);
  note_without_effect(settings.options, plan, notes);
  return {.model = model,
          .cluster = std::move(cluster),
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
