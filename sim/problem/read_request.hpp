// What a question names, read, before a strategy is compiled. Private to sim/problem.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "platforms/calibration.hpp"
#include "sim/problem/request_settings.hpp"

namespace simsync::detail {

struct ReadRequest {
  ModelParameters parameters;
  Settings settings;
  Model model;        ///< with its variables scaled, where that is asked
  Cluster described;  ///< as its file and the calibration say
  Cluster cluster;    ///< of this job
  std::optional<Calibration> calibration;
  std::vector<std::string> notes;
};

/// @throws InputError, PlanError as prepare().
ReadRequest read_request(const PredictRequest& request, Inputs& inputs);

/// Samples of a replica in a step. @throws InputError when those of a global batch do not divide among replicas.
std::int64_t batch_for(const ReadRequest& read, const PredictRequest& request);
/// The builder, preset or file with these options. Checks that steps fit model and batch. @throws InputError,
/// PlanError.
Strategy strategy_for(const ReadRequest& read, const PredictRequest& request, std::int64_t batch);
/// Of the device of the first worker, for a micro-step of this strategy.
Profile profile_for(const ReadRequest& read, const PredictRequest& request, const Strategy& strategy,
                    std::int64_t batch, Inputs& inputs);
/// Layer times are those of the first worker; slower and faster devices are related to it.
void relate_devices(ReadRequest& read, const Profile& profile);

}  // namespace simsync::detail
