// Probes that a known cluster measures, for tests of fits.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "validate/calibrate/calibrate.hpp"

namespace simsync::test {

inline Probe probe(ProbeKind kind, int ranks, double bytes, int count = 1) {
  return {.kind = kind, .ranks = ranks, .per_node = 0, .bytes = bytes, .count = count, .measured = {}, .where = {}};
}

/// What `truth` would measure, with a fixed error of up to `error` that changes from row to row.
inline std::vector<Probe> measured_on(const Cluster& truth, std::vector<Probe> probes, double error = 0.0) {
  const Cluster grown = grown_for(truth, probes);
  for (std::size_t i = 0; i < probes.size(); ++i) {
    const double sway = error * std::sin(12.9898 * static_cast<double>(i + 1));
    probes[i].measured = std::exp(sway) * predicted_time(probes[i], grown);
    probes[i].where = "row " + std::to_string(i);
  }
  return probes;
}

inline double value_of(const Calibration& calibration, const std::string& key) {
  for (const auto& parameter : calibration.parameters)
    if (parameter.key == key) return parameter.value;
  FAIL("no parameter " + key);
  return 0.0;
}

}  // namespace simsync::test
