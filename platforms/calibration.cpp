#include "platforms/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.hpp"
#include "platforms/reader.hpp"

namespace simsync {

double CalibratedParameter::moved(double distance) const {
  return scale.logarithmic ? value * std::exp(distance) : value + distance;
}

std::vector<std::pair<std::string, std::string>> Calibration::settings() const {
  auto out = assumed;
  for (const auto& parameter : parameters) out.emplace_back(parameter.key, parameter.scale.exact_text(parameter.value));
  return out;
}

bool Calibration::may_be_for(const std::string& name) const {
  constexpr std::string_view kOfNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  const auto has_name = [&](const std::string& line) {
    for (std::size_t at = line.find_first_of(kOfNames); at < line.size(); at = line.find_first_of(kOfNames, at)) {
      const std::size_t end = std::min(line.find_first_not_of(kOfNames, at), line.size());
      if (line.compare(at, end - at, name) == 0) return true;
      at = end;
    }
    return false;
  };
  return valid_for.empty() || std::any_of(valid_for.begin(), valid_for.end(), has_name);
}

bool operator==(const Calibration& a, const Calibration& b) {
  return a.cluster == b.cluster && a.date == b.date && a.sources == b.sources && a.valid_for == b.valid_for &&
         a.rows == b.rows && a.residuals == b.residuals && a.repeat_pct == b.repeat_pct && a.assumed == b.assumed &&
         a.parameters == b.parameters && a.correlation == b.correlation && a.measured == b.measured;
}

bool is_for(const Calibration& calibration, const Cluster& cluster) {
  return calibration.cluster == cluster.name;
}

void apply_settings(Cluster& cluster, const std::vector<std::pair<std::string, std::string>>& settings) {
  constexpr std::string_view kProtocols = "collective.protocols.";
  Cluster changed = cluster;
  for (const auto& [key, value] : settings) {
    if (!key.starts_with(kProtocols)) continue;
    const std::string rest = key.substr(kProtocols.size());
    changed.collective.protocols.try_emplace(rest.substr(0, rest.rfind('.')));
  }
  set_parameters(changed, settings);
  cluster = std::move(changed);
}

namespace {

/// Whether ratios of other numbers say nothing beside these.
bool changes_collectives(const Calibration& calibration) {
  if (!calibration.measured.empty()) return true;
  const auto settings = calibration.settings();
  return std::any_of(settings.begin(), settings.end(), [](const auto& setting) {
    const std::string& key = setting.first;
    return key.starts_with("link.") || (key.starts_with("collective.") && key != "collective.interference");
  });
}

}  // namespace

void apply(Cluster& cluster, const Calibration& calibration) {
  try {
    apply_settings(cluster, calibration.settings());
    if (changes_collectives(calibration)) cluster.collective.measured = calibration.measured;
  } catch (const InputError& e) {
    Diagnostic finding = e.diagnostics().front();
    finding.message = fmt::format("{}: {}", calibration.file, finding.message);
    if (!is_for(calibration, cluster))
      finding.note = fmt::format("it was fitted for cluster '{}', not for '{}'", calibration.cluster, cluster.name);
    throw InputError(std::move(finding));
  }
}

}  // namespace simsync
