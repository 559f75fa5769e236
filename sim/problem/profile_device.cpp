#include "sim/problem/profile_device.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "models/profile_file.hpp"
#include "platforms/reader.hpp"

namespace simsync::detail {

void check_profile_device(const std::string& profile, const Cluster& cluster, std::vector<std::string>& notes) {
  if (profile == "auto" || profile == "roofline") return;
  const Manifest manifest = load_manifest(find_manifest(profile));
  if (manifest.device == "unknown" || cluster.devices.contains(manifest.device)) return;
  const auto catalogue = device_catalogue();
  if (catalogue.contains(manifest.device)) return;
  std::vector<std::string> known;
  for (const auto& [name, device] : catalogue) known.push_back(name);
  for (const auto& [name, device] : cluster.devices) known.push_back(name);
  if (const std::string help = did_you_mean(manifest.device, known); !help.empty())
    throw InputError(fmt::format("profile '{}': unknown device '{}'", manifest.name, manifest.device), help);
  notes.push_back(
      fmt::format("profile '{}' was measured on '{}', which no cluster names: only the proportions of its layer times "
                  "are used",
                  manifest.name, manifest.device));
}

}  // namespace simsync::detail
