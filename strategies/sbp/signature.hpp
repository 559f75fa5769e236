// How a tensor is laid out over a device mesh: split, broadcast or partial sum along each mesh axis.
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace simsync {

/// What the ranks along one mesh axis hold of a tensor, after OneFlow (Yuan et al., "OneFlow: Redesign the Distributed
/// Deep Learning Framework from Scratch", 2021): pieces that make the tensor when they are put together along a tensor
/// axis, full copies, or addends of the tensor's shape that sum to it.
struct Sbp {
  enum class Kind : std::uint8_t { Split, Broadcast, Partial };
  Kind kind = Kind::Broadcast;
  int axis = 0;  ///< the tensor axis that is split; 0 for the other kinds

  static constexpr Sbp split(int axis) { return {Kind::Split, axis}; }
  static constexpr Sbp broadcast() { return {Kind::Broadcast, 0}; }
  static constexpr Sbp partial() { return {Kind::Partial, 0}; }
  [[nodiscard]] constexpr bool is_split() const { return kind == Kind::Split; }
  [[nodiscard]] constexpr bool is_broadcast() const { return kind == Kind::Broadcast; }
  [[nodiscard]] constexpr bool is_partial() const { return kind == Kind::Partial; }
  [[nodiscard]] constexpr bool splits(int tensor_axis) const { return is_split() && axis == tensor_axis; }
  friend constexpr auto operator<=>(const Sbp&, const Sbp&) = default;
};

/// One entry per mesh axis, in the order of the mesh's axes.
using SbpTuple = std::vector<Sbp>;

/// `S(0)`, `B` or `P`; blanks around it are ignored. @throws InputError for any other text.
Sbp parse_sbp(std::string_view text);
/// `(S(0),B)`; parentheses may be left out of a single entry. @throws InputError for any other text.
SbpTuple parse_sbp_tuple(std::string_view text);

/// As parse_sbp reads it.
std::string text_of(Sbp entry);
/// As parse_sbp_tuple reads it; a single entry without parentheses.
std::string text_of(const SbpTuple& tuple);

}  // namespace simsync
