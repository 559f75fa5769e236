// Bounds of what a strategy may ask for, beyond which a number is a slip.
#pragma once

namespace simsync {

/// As many steps as a worker is ever simulated for; each takes memory while workers may differ by it.
inline constexpr int kMostStaleness = 100'000;
inline constexpr int kMostMicroSteps = 100'000;

}  // namespace simsync
