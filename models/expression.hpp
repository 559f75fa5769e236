// Whole-number arithmetic in model files: `4 * $planes`, `($in + 1) / 2`.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace simsync::detail {

/// Value of `$name`, or nullopt when there is none.
using Lookup = std::function<std::optional<std::int64_t>(const std::string& name)>;

struct Evaluated {
  std::int64_t value = 0;
  std::string error;    ///< what is wrong with the text; empty when the value holds
  std::string unknown;  ///< the name that `lookup` did not know, when that is what is wrong
};

/// Evaluates `+ - * /`, parentheses, whole numbers and `$names`. A division must leave no remainder and every
/// intermediate value stay within kMaxElements, so a result is exact or an error.
Evaluated evaluate(const std::string& text, const Lookup& lookup);

}  // namespace simsync::detail
