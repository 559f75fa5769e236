// Values of a model file that may be expressions of its parameters.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "base/yaml.hpp"
#include "models/shape.hpp"

namespace simsync::detail {

using Values = std::map<std::string, std::int64_t>;

/// What `$names` mean at some place of a model file; the block's own parameters hide the model's.
struct Environment {
  const Values* block = nullptr;
  const Values* model = nullptr;
  std::optional<std::int64_t> in;  ///< `$in`: features of the statement's input
};

/// A whole number or an expression. A wrong value is noted and replaced by a harmless one.
std::int64_t evaluate(const yaml::Node& value, const Environment& environment, std::int64_t low, std::int64_t high);
/// A list of 1 to kMaxAxes axes with at most kMaxElements elements.
Shape evaluate_shape(const yaml::Node& value, const Environment& environment);
/// `text` as a name of a layer, block or parameter; notes an error for anything but letters, digits, `_.-`.
std::string checked_name(const yaml::Node& value);

}  // namespace simsync::detail
