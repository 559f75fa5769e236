#include "sim/problem/read_request.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "sim/problem/request_cluster.hpp"
#include "strategies/reader.hpp"

namespace simsync::detail {
namespace {

/// Estimated times of an update are those of the optimizer of a default OptimizerState; measured ones stay.
void update_by(const OptimizerState& optimizer, Profile& profile) {
  profile.fp32_gradients = optimizer.fp32_gradients;
  if (profile.source != ProfileSource::Roofline) return;
  constexpr double kWidth = 4.0;  // of a weight; two bytes beside an fp32 copy move as much
  profile.update = optimizer.update_bytes(kWidth) / OptimizerState{}.update_bytes(kWidth) * profile.update;
}

void check_numbers(const PredictRequest& request) {
  constexpr int kMostWorkers = 1'000'000;
  if (request.workers < 1 || request.workers > kMostWorkers)
    throw InputError(fmt::format("--workers {}: expected a number from 1 to {}", request.workers, kMostWorkers));
  for (const auto& [flag, batch] : {std::pair{"--batch", request.batch}, {"--global-batch", request.global_batch}})
    if (batch && (*batch < 1 || *batch > 100'000'000))
      throw InputError(fmt::format("{} {}: expected a number from 1 to 100000000", flag, *batch));
  if (request.batch && request.global_batch)
    throw InputError("--batch and --global-batch say the samples of a step twice: leave out one");
}

Strategy find_strategy_for(const ReadRequest& read, const PredictRequest& request, std::int64_t batch) {
  return find_strategy(request.strategy, {.model = read.model,
                                          .cluster = read.cluster,
                                          .workers = request.workers,
                                          .batch = batch,
                                          .options = read.settings.strategy,
                                          .seed = read.settings.seed});
}

/// What a strategy does with the step of one worker must fit the model and its batch.
void check_step(const Strategy& strategy, const Model& model, std::int64_t batch) {
  if (batch % strategy.graph.micro_steps != 0)
    throw PlanError(fmt::format("a batch of {} per {} does not split into {} micro-steps", batch,
                                strategy.graph.parallel.is_trivial() ? "worker" : "replica of the model",
                                strategy.graph.micro_steps));
  if (strategy.graph.recompute != Recompute::None && blocks_of(model).empty())
    throw PlanError(
        fmt::format("recompute={} drops the activations of blocks, layers whose names agree up to a number "
                    "such as 'layers.0': model '{}' has none",
                    name_of(strategy.graph.recompute), model.name()));
}

/// A request that names device and batch, with what settings and strategy say of the rest.
ProfileRequest completed(ProfileRequest asked, const Settings& settings, const Cluster& cluster,
                         const Strategy& strategy) {
  asked.precision = settings.precision.value_or(cluster.precision);
  asked.micro_steps = strategy.graph.micro_steps;
  asked.recompute = strategy.graph.recompute;
  asked.roofline = roofline_of(cluster.devices.at(asked.device), asked.precision);
  asked.step_time = settings.step_time;
  asked.profile = settings.profile;
  asked.mean = !in_lock_step(strategy);
  return asked;
}

}  // namespace

ReadRequest read_request(const PredictRequest& request, Inputs& inputs) {
  check_numbers(request);
  const ModelParameters parameters = model_parameters(request.settings);
  const Model& named = inputs.model(request.model, parameters);
  Cluster described = inputs.cluster(request.cluster);
  std::optional<Calibration> calibration;
  if (!request.calibration.empty()) {
    calibration = load_calibration(request.calibration);
    apply(described, *calibration);
  }
  Settings settings = read_settings(request, described);
  std::vector<std::string> notes;
  Cluster cluster = cluster_of(request, described, settings, notes);
  Model model = settings.variable_scale ? named.with_scaled_variables(*settings.variable_scale) : named;
  return {.parameters = parameters,
          .settings = std::move(settings),
          .model = std::move(model),
          .described = std::move(described),
          .cluster = std::move(cluster),
          .calibration = std::move(calibration),
          .notes = std::move(notes)};
}

std::int64_t batch_for(const ReadRequest& read, const PredictRequest& request) {
  if (!request.global_batch) return request.batch.value_or(read.model.default_batch());
  // How many ranks share out a replica does not depend on its samples.
  const std::int64_t replicas = find_strategy_for(read, request, 1).graph.batches();
  if (*request.global_batch % replicas != 0)
    throw InputError(
        fmt::format("--global-batch {}: does not divide among {} replicas", *request.global_batch, replicas),
        fmt::format("choose a multiple of {}", replicas));
  return *request.global_batch / replicas;
}

Strategy strategy_for(const ReadRequest& read, const PredictRequest& request, std::int64_t batch) {
  Strategy strategy = find_strategy_for(read, request, batch);
  check_step(strategy, read.model, batch);
  return strategy;
}

Profile profile_for(const ReadRequest& read, const PredictRequest& request, const Strategy& strategy,
                    std::int64_t batch, Inputs& inputs) {
  const Place first = read.cluster.workers(request.workers).front();
  const ProfileRequest asked =
      completed({.device = read.cluster.group_of(first.node).device, .batch = batch / strategy.graph.micro_steps},
                read.settings, read.cluster, strategy);
  Profile profile = inputs.profile(request.model, read.parameters, asked);
  update_by(read.settings.optimizer, profile);
  profile.variation = read.settings.step_variation;
  profile.seed = read.settings.seed;
  return profile;
}

void relate_devices(ReadRequest& read, const Profile& profile) {
  relate_devices(read.cluster, read.model,
                 {.device = profile.device, .precision = profile.precision, .batch = profile.batch});
}

}  // namespace simsync::detail
