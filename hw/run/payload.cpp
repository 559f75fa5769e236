#include "hw/run/payload.hpp"

#include <algorithm>
#include <cmath>

namespace simsync {
namespace {

constexpr std::size_t kMostSamples = 16;
constexpr float kRate = 1.0F / 1024.0F;
constexpr float kMomentum = 0.875F;
constexpr float kDecay1 = 0.9F;
constexpr float kDecay2 = 0.999F;
constexpr float kEpsilon = 1e-8F;

float extra_at(std::size_t position, int iteration) {
  constexpr std::size_t kModulus = 61;
  return static_cast<float>((position * 31 + static_cast<std::size_t>(iteration)) % kModulus);
}

}  // namespace

std::size_t floats_of(double bytes) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(bytes / static_cast<double>(sizeof(float)))));
}

std::vector<std::size_t> sample_positions(std::size_t floats) {
  const std::size_t count = std::min(floats, kMostSamples);
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(count == 1 ? 0 : i * (floats - 1) / (count - 1));
  return out;
}

float gradient_at(int rank, std::size_t position, int iteration) {
  return static_cast<float>(rank + 1) + extra_at(position, iteration);
}

float gradient_sum_at(int ranks, std::size_t position, int iteration) {
  const int sum = ranks * (ranks + 1) / 2;
  return static_cast<float>(sum) + static_cast<float>(ranks) * extra_at(position, iteration);
}

float kept_at(std::size_t position) {
  return gradient_at(0, position, 0);
}

GradientValues::GradientValues(int rank, std::size_t floats)
    : rank_(rank), values_(floats, static_cast<float>(rank + 1)), samples_(sample_positions(floats)) {}

void GradientValues::set(int iteration) {
  for (const std::size_t at : samples_) values_[at] = gradient_at(rank_, at, iteration);
}

Parameters::Parameters(Optimizer optimizer, std::size_t floats) : optimizer_(optimizer), values_(floats, 0.0F) {
  if (optimizer != Optimizer::Sgd) first_.resize(floats, 0.0F);
  if (optimizer == Optimizer::Adam) second_.resize(floats, 0.0F);
}

void Parameters::apply(std::span<const float> gradient) {
  ++steps_;
  const std::size_t n = std::min(gradient.size(), values_.size());
  switch (optimizer_) {
    case Optimizer::Sgd:
      for (std::size_t i = 0; i < n; ++i) values_[i] -= kRate * gradient[i];
      return;
    case Optimizer::Momentum:
      for (std::size_t i = 0; i < n; ++i) {
        first_[i] = kMomentum * first_[i] + gradient[i];
        values_[i] -= kRate * first_[i];
      }
      return;
    case Optimizer::Adam: {
      const float correct1 = 1.0F - std::pow(kDecay1, static_cast<float>(steps_));
      const float correct2 = 1.0F - std::pow(kDecay2, static_cast<float>(steps_));
      for (std::size_t i = 0; i < n; ++i) {
        first_[i] = kDecay1 * first_[i] + (1.0F - kDecay1) * gradient[i];
        second_[i] = kDecay2 * second_[i] + (1.0F - kDecay2) * gradient[i] * gradient[i];
        values_[i] -= kRate * (first_[i] / correct1) / (std::sqrt(second_[i] / correct2) + kEpsilon);
      }
      return;
    }
  }
}

}  // namespace simsync
