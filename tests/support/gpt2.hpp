// A model that hybrid plans are tested with.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "sim/problem/problem.hpp"

namespace simsync::test {

/// GPT-2 with attention in one kernel: 12 blocks, 768 wide, 1024 tokens.
inline Problem gpt2(int workers, const std::vector<std::pair<std::string, std::string>>& settings,
                    const std::string& strategy = "ddp") {
  PredictRequest request{.model = "gpt2", .cluster = "dgx-a100", .strategy = strategy, .workers = workers};
  request.batch = 4;
  request.settings = {{"model.fused", "1"}, {"memory", "ignore"}};
  request.settings.insert(request.settings.end(), settings.begin(), settings.end());
  return prepare(request);
}

}  // namespace simsync::test
