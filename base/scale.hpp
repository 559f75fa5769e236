// Text of a setting to a number and back, whatever its unit.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace simsync {

enum class Dimension { Number, Time, Rate, Size };

/// How a fitted parameter is written and on which axis it is searched.
struct Scale {
  Dimension dimension = Dimension::Number;
  bool logarithmic = false;  ///< equal steps are equal factors; only when both bounds are positive

  /// The point at `share` (0 to 1) of the way from `low` to `high`.
  [[nodiscard]] double at(double share, double low, double high) const;
  /// The inverse of `at`, limited to 0 to 1.
  [[nodiscard]] double share_of(double value, double low, double high) const;
  /// The text that set_parameter reads as `value`, to nine digits.
  [[nodiscard]] std::string text(double value) const;
  /// The same with as many digits as it takes to read back the same number.
  [[nodiscard]] std::string exact_text(double value) const;
  friend bool operator==(const Scale&, const Scale&) = default;
};

/// A value with the dimension that its unit says: `8Gbps`, `20us`, `64KiB` or a bare number.
struct ScaledValue {
  Dimension dimension = Dimension::Number;
  double value = 0.0;
};
std::optional<ScaledValue> parse_scaled(std::string_view text);

}  // namespace simsync
