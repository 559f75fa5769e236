// Physical quantities. One stored unit per dimension; the type says which.
#pragma once
#include <compare>
#include <cstdint>

namespace simsync {

/// A double tagged with its dimension: `Seconds{1.5}` compiles, `Seconds t = 1.5` does not.
template <class Tag>
class Quantity {
public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double v) : v_(v) {}
  [[nodiscard]] constexpr double value() const { return v_; }
  constexpr Quantity& operator+=(Quantity o) {
    v_ += o.v_;
    return *this;
  }
  constexpr Quantity& operator*=(double k) {
    v_ *= k;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity{a.v_ + b.v_}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity{a.v_ - b.v_}; }
  friend constexpr Quantity operator*(double k, Quantity a) { return Quantity{k * a.v_}; }
  friend constexpr Quantity operator*(Quantity a, double k) { return Quantity{k * a.v_}; }
  friend constexpr Quantity operator/(Quantity a, double k) { return Quantity{a.v_ / k}; }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.v_ / b.v_; }
  friend constexpr auto operator<=>(Quantity, Quantity) = default;

private:
  double v_ = 0.0;
};

using Seconds = Quantity<struct SecondsTag>;
using BytesPerSecond = Quantity<struct BytesPerSecondTag>;
using FlopsPerSecond = Quantity<struct FlopsPerSecondTag>;
using Flops = Quantity<struct FlopsTag>;  ///< Floating point operations (a multiply-add is two).

/// Whole bytes: sums over shards must be exact.
struct Bytes {
  std::int64_t count = 0;
  constexpr Bytes& operator+=(Bytes o) {
    count += o.count;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
};

constexpr Seconds operator/(Bytes n, BytesPerSecond rate) {
  return Seconds{static_cast<double>(n.count) / rate.value()};
}
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) {
  return Seconds{work.value() / rate.value()};
}

}  // namespace simsync
