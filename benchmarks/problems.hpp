// Problems that several benchmarks share. Setup is never timed.
#pragma once
#include <string>

#include "sim/engine/predict.hpp"

namespace simsync::bench {

inline PredictRequest request(const std::string& model, const std::string& cluster, const std::string& strategy,
                              std::int64_t workers, std::vector<std::pair<std::string, std::string>> settings = {}) {
  return {.model = model,
          .cluster = cluster,
          .strategy = strategy,
          .workers = static_cast<int>(workers),
          .batch = {},
          .settings = std::move(settings)};
}

}  // namespace simsync::bench
