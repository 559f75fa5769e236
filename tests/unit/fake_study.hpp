// A study whose parameters are known: its table, its text and what predicts its steps.
#pragma once
#include <string>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "tests/unit/validate_support.hpp"
#include "validate/predictor.hpp"

namespace simsync::test {

/// step_time + bytes / rate + operations * launch: two parameters that can be told apart by two models.
class FakePredictor : public Predictor {
public:
  Seconds step_time(const PredictRequest& request) override {
    ++calls;
    const double rate = parse_bandwidth(setting(request, "link.ethernet.per_flow_cap", "1GB/s"))->value();
    const double launch = parse_seconds(setting(request, "collective.launch", "0s"))->value();
    const double compute = parse_seconds(setting(request, "step_time", "0s"))->value();
    if (request.strategy == "impossible") throw PlanError("no such wire");
    if (request.workers == 1) return Seconds{compute};
    const bool small = request.model == "small";
    const double volume = 2.0 * (request.workers - 1) / request.workers * (small ? 1e8 : 1e9);
    return Seconds{compute + volume / rate + (small ? 100.0 : 200.0) * launch};
  }
  static std::string setting(const PredictRequest& request, const std::string& key, std::string value) {
    for (const auto& [name, text] : request.settings) {
      if (name == key) value = text;
    }
    return value;
  }
  int calls = 0;
};

// Made with rate 2 GB/s and launch 1 ms: step = compute + 2(n-1)/n bytes / 2e9 + operations * 1e-3.
//   big   n=2: 1.0 + 0.5  + 0.2 = 1.7     n=4: 1.0 + 0.75  + 0.2 = 1.95   n=8: 1.0 + 0.875  + 0.2 = 2.075
//   small n=2: 0.1 + 0.05 + 0.1 = 0.25    n=4: 0.1 + 0.075 + 0.1 = 0.275  n=8: 0.1 + 0.0875 + 0.1 = 0.2875
inline constexpr const char* kTable =
    "id,model,gpus,seconds\n"
    "b1,big,1,1.0\nb2,big,2,1.7\nb4,big,4,1.95\nb8,big,8,2.075\n"
    "s1,small,1,0.1\ns2,small,2,0.25\ns4,small,4,0.275\ns8,small,8,0.2875\n";

inline const std::string kHead =
    "schema: simsync/study/v1\n"
    "name: fake\n"
    "reference: table.csv\n"
    "case:\n"
    "  model: {column: model}\n"
    "  cluster: two-nodes\n"
    "  strategy: ddp\n"
    "  workers: {column: gpus}\n"
    "  batch: 8\n"
    "measured: {column: seconds, unit: s}\n"
    "tolerance: {mape_pct: 1, pairwise_accuracy: 1}\n";

/// Both parameters, fitted to the rows whose `id` follows.
inline const std::string kFitBoth =
    "calibrate:\n"
    "  step_time: {where: {gpus: 1}, key: [model]}\n"
    "  fit:\n"
    "    - parameters:\n"
    "        - {key: link.ethernet.per_flow_cap, low: 100MB/s, high: 50GB/s}\n"
    "        - {key: collective.launch, low: 0s, high: 10ms}\n"
    "      rows: {where: {id: ";

inline const std::string kCalibrate = kFitBoth + "[b4, s4]}}\n";

}  // namespace simsync::test
