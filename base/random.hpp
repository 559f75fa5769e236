// Random draws that are the same on every platform: the standard leaves its distributions open.
#pragma once
#include <cstdint>
#include <initializer_list>
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

/// The seed of a stream of its own, for what `fields` name: a purpose, a rank, an iteration. Any two different lists
/// of one length have streams that are independent of each other for all practical purposes, however near their
/// fields are. Lists under one `seed` have one length.
///
/// Each field in turn is added to the state, which then goes through the output function of SplitMix64 (Steele, Lea
/// and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014). That function is a bijection in which
/// every input bit changes every output bit with a probability of about one half. So lists that differ in one field
/// never meet, and others meet with probability 2^-64.
constexpr std::uint64_t stream_seed(std::uint64_t seed, std::initializer_list<std::uint64_t> fields) {
  constexpr std::uint64_t kGoldenGamma = 0x9e3779b97f4a7c15;
  const auto mixed = [](std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  };
  std::uint64_t state = mixed(seed + kGoldenGamma);
  for (const std::uint64_t field : fields) state = mixed(state + field + kGoldenGamma);
  return state;
}

}  // namespace simsync
