#include "base/divisors.hpp"

#include <algorithm>
#include <cmath>

namespace simsync {

std::int64_t smallest_divisor(std::int64_t length) {
  if (length < 2) return 1;
  for (std::int64_t d = 2; d <= length / d; ++d) {
    if (length % d == 0) return d;
  }
  return length;
}

std::int64_t smallest_non_divisor(std::int64_t length) {
  if (length < 2) return 1;
  for (std::int64_t d = 2; d < length; ++d) {
    if (length % d != 0) return d;
  }
  return length;
}

namespace {

bool is_prime(std::int64_t length) {
  return length > 1 && smallest_divisor(length) == length;
}

bool cut_alike(std::int64_t a, std::int64_t b) {
  if (is_prime(a) || is_prime(b)) return is_prime(a) && is_prime(b);
  return smallest_divisor(a) == smallest_divisor(b) && smallest_non_divisor(a) == smallest_non_divisor(b);
}

}  // namespace

std::int64_t closest_length_cut_like(std::int64_t length, double wanted) {
  if (length < 2) return std::max<std::int64_t>(1, std::llround(wanted));
  auto up = static_cast<std::int64_t>(std::ceil(std::max(wanted, 1.0)));
  std::int64_t down = up - 1;
  while (!cut_alike(up, length)) ++up;
  while (down >= 1 && !cut_alike(down, length)) --down;
  return down >= 1 && wanted - static_cast<double>(down) < static_cast<double>(up) - wanted ? down : up;
}

}  // namespace simsync
