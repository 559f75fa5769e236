// Looks for the fastest layout that fits into memory.
//
// Meshes (tensor-parallel ranks, stages) are gone through one after another. On each of them the other dimensions are
// the coordinates of a descent: one at a time takes its best value with the others as they are, until none changes
// (AutoDDL, Chen et al., 2024). It starts from a layout that needs little memory, once with each kind of recomputation,
// then from random ones. Of meshes that come near the best so far, the splits of tied layers are coordinates, too, from
// the best layout of the mesh on.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "strategies/layouts/layout_space.hpp"
#include "strategies/names.hpp"

namespace simsync {

enum class LayoutMethod {
  Coordinate,  ///< descent on every mesh
  Exhaustive,  ///< all layouts
  Anneal,      ///< one chain of single changes over all dimensions, meshes and splits too
  Random,      ///< draws
};
const Words<LayoutMethod>& layout_method_words();

/// What is said of one layout.
struct LayoutCost {
  Seconds step;
  Bytes over{0};  ///< that it needs more than a device has; 0: it fits
  [[nodiscard]] bool fits() const { return over.count == 0; }
};
/// What fits before what does not; then the faster one, or the one that lacks less.
bool is_better(const LayoutCost& a, const LayoutCost& b);

/// Nothing where the layout cannot be: heads that do not divide, too few blocks.
using EvaluateLayout = std::function<std::optional<LayoutCost>(const Layout&)>;

struct LayoutSearchOptions {
  LayoutMethod method = LayoutMethod::Coordinate;
  int restarts = 2;            ///< of a descent, on each mesh
  std::int64_t draws = 2'000;  ///< of Anneal and Random
  std::uint64_t seed = 1;
};

struct EvaluatedLayout {
  Layout layout;
  LayoutCost cost;
};

struct LayoutSearchResult {
  std::vector<EvaluatedLayout> evaluated;  ///< each once, the best first
  std::int64_t impossible = 0;             ///< that could not be
  [[nodiscard]] std::int64_t misfits() const;
};

/// The most layouts that an exhaustive search goes through.
inline constexpr std::int64_t kMostLayouts = 1'000'000;

/// Every layout is evaluated once at most. The same arguments make the same search. `stop` is asked before every
/// evaluation; null: nothing stops it. @throws InputError when no mesh divides workers and samples, and for an
/// exhaustive search of more than kMostLayouts.
LayoutSearchResult search_layouts(const LayoutSpace& space, const LayoutTask& task, const EvaluateLayout& evaluate,
                                  const LayoutSearchOptions& options, const std::function<bool()>& stop = {});

}  // namespace simsync
