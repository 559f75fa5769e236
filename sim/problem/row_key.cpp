#include "sim/problem/row_key.hpp"

namespace simsync {

std::vector<std::string> row_key(const PredictRequest& request, Inputs& inputs) {
  const Model& model = inputs.model(request.model);
  return {model.name(), inputs.cluster(request.cluster).name, request.strategy, std::to_string(request.workers),
          std::to_string(request.batch.value_or(model.default_batch()))};
}

const std::vector<std::string>& key_columns() {
  static const std::vector<std::string> kColumns{"model", "cluster", "strategy", "workers", "batch_per_worker"};
  return kColumns;
}

std::vector<std::string> header_with(const std::vector<std::string>& own) {
  std::vector<std::string> out{"model",     "cluster",          "strategy",          "mode",
                               "workers",   "batch_per_worker", "step_time_s",       "throughput_samples_per_s",
                               "compute_s", "exposed_comm_s",   "scaling_efficiency"};
  out.insert(out.end(), own.begin(), own.end());
  return out;
}

}  // namespace simsync
