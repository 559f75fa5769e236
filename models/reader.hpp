// Models from files: the zoo and the user's own.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/model.hpp"

namespace simsync {

/// Values for the `parameters` of a model file, such as the length of a sequence.
using ModelParameters = std::map<std::string, std::int64_t>;

/// Reads a model description (format: models/README.md). @throws InputError with every finding.
Model load_model(const std::string& path);
/// Reads a description held in memory; `name` stands for the file in messages. @throws InputError
Model parse_model(const std::string& text, const std::string& name);
/// `name_or_path` as given to --model, with `parameters` in place of the file's. @throws InputError naming the closest
/// known model or parameter.
Model find_model(const std::string& name_or_path, const ModelParameters& parameters = {});
/// What the file of a built-in model says of its source; empty when it says nothing. Builds no layers.
/// @throws InputError when there is no such file, or it is not YAML.
std::string source_of_model(const std::string& name);
/// Names of the built-in zoo, sorted.
std::vector<std::string> known_models();

}  // namespace simsync
