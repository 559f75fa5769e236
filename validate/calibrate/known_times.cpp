#include "validate/calibrate/known_times.hpp"

#include "validate/calibrate/calibrate.hpp"

namespace simsync::detail {

bool depends(const Probe& probe, const std::string& key) {
  const bool of_server = key.find(".cpu.") != std::string::npos;
  if (probe.kind != ProbeKind::Push && probe.kind != ProbeKind::Pull)
    return !of_server && (probe.kind != ProbeKind::Message || !key.starts_with("collective."));
  if (key.starts_with("collective.")) return false;
  return probe.kind == ProbeKind::Push || !key.ends_with(".cpu.sum_rate");
}

Seconds KnownTimes::of(std::size_t index, const Probe& probe, const Cluster& cluster,
                       const std::vector<std::pair<std::string, std::string>>& settings) {
  std::string name = std::to_string(index);
  for (const auto& [key, value] : settings)
    if (depends(probe, key)) name += ';' + key + '=' + value;
  constexpr std::size_t kMost = 200'000;  // some 80 MB
  if (known_.size() >= kMost) known_.clear();
  const auto [known, fresh] = known_.try_emplace(std::move(name));
  if (fresh) known->second = predicted_time(probe, cluster);
  return known->second;
}

}  // namespace simsync::detail
