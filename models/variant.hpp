// A model file with some of its parameters set otherwise: what `extends` and measured profiles build on.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/yaml.hpp"
#include "models/model.hpp"

namespace simsync::detail {

/// A value for a parameter of a model file and the place that asks for it, if that is in a file.
struct Setting {
  std::int64_t value = 0;
  yaml::Node at;
};

/// What a file that extends another one replaces; an unset member keeps what the base says.
struct Overrides {
  std::optional<std::string> name;
  std::optional<std::int64_t> batch;
  std::map<std::string, Setting> settings;
  /// The files that the settings stand in; findings about them are thrown from there.
  std::vector<const yaml::Document*> asked_by;
};

/// @throws InputError for a bad file or a setting that the model has no parameter for.
Model load_variant(const std::string& path, const Overrides& overrides);
/// Reads a mapping from parameter names to whole numbers.
std::map<std::string, Setting> read_settings(const yaml::Node& node);
/// The description in `document`; `@throws InputError`.
Model read_model(const yaml::Document& document, const Overrides& overrides);

inline constexpr const char* kZooRoom = "models/zoo";
inline constexpr std::int64_t kLargestBatch = 1'000'000'000;

}  // namespace simsync::detail
