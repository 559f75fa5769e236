#include "validate/calibrate/known_times.hpp"

#include <algorithm>

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
  numbers_.clear();
  for (const auto& [key, value] : settings)
    if (depends(probe, key)) numbers_.append(key).append("=").append(value).append(";");
  if (index >= rows_.size()) rows_.resize(index + 1);
  auto& [latest, oldest] = rows_[index];
  const auto known = std::ranges::find(latest, numbers_, &Known::numbers);
  if (known != latest.end()) return known->time;
  // A fit asks for the point where it stands and, for derivatives, for one or two beside it by parameter.
  constexpr std::size_t kLatest = 64;
  const Seconds time = predicted_time(probe, cluster);
  if (latest.size() < kLatest) {
    latest.push_back({numbers_, time});
  } else {
    latest[oldest] = {numbers_, time};
    oldest = (oldest + 1) % kLatest;
  }
  return time;
}

}  // namespace simsync::detail
