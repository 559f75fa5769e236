// Random draws that are the same on every platform: the standard leaves its distributions open.
#pragma once
#include <cstdint>
#include <random>

namespace simsync {

/// Deterministic from its seed; std::mt19937_64's sequence is fixed by the standard, the mapping is ours.
class Random {
public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// Uniform in 0 ... n-1, n at least 1. Draws again above the largest multiple of n, so no value is favored.
  std::uint64_t below(std::uint64_t n) {
    const std::uint64_t excess = (UINT64_MAX % n + 1) % n;
    std::uint64_t draw = engine_();
    while (draw > UINT64_MAX - excess) draw = engine_();
    return draw % n;
  }
  /// Uniform in [0, 1) with 53 random bits.
  double unit() {
    constexpr int kDroppedBits = 11;
    return static_cast<double>(engine_() >> kDroppedBits) * 0x1p-53;
  }

private:
  std::mt19937_64 engine_;
};

}  // namespace simsync
