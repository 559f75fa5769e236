// Measured layer profiles: a manifest in YAML that says what was measured, and a table of times beside it.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/profile.hpp"
#include "models/variant.hpp"

namespace simsync::detail {

inline constexpr const char* kProfilesRoom = "models/profiles";
inline constexpr const char* kProfileSchema = "simsync/profile/v1";

/// What a profile file says about itself; format in models/README.md.
struct Manifest {
  std::string path;
  std::string name;  ///< file name without extension
  std::string model;
  std::string device;  ///< `unknown` when the source does not tell
  std::string precision;
  std::int64_t batch = 1;
  std::string framework;
  std::string source;
  std::string table;                        ///< path of the CSV
  std::optional<Seconds> update;            ///< applying the optimizer to all variables on the device
  std::map<std::string, Setting> settings;  ///< the model's parameters in the measurement, where not the zoo's
};

Manifest load_manifest(const std::string& path);

/// The manifest that `profile` means: a name of models/profiles, or a path of either file of a profile.
std::string find_manifest(const std::string& profile);

/// One set of times of `model`'s layers per measured step, or a single one when the table does not tell steps apart;
/// a layer that no row covers has negative times. `estimate` divides the time of a row that covers several layers.
/// @throws InputError for a row that names no layer of the model or has no number.
std::vector<std::vector<LayerTime>> load_times(const Manifest& manifest, const Model& model,
                                               const std::vector<LayerTime>& estimate);

}  // namespace simsync::detail
