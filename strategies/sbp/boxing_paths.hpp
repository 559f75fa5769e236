// Boxing on a mesh of several axes: the cheapest sequence of collectives from one tuple to another.
#pragma once
#include <memory>
#include <vector>

#include "strategies/sbp/boxing.hpp"
#include "strategies/sbp/layout.hpp"

namespace simsync {

/// One collective, in every group of ranks along some mesh axes at once.
struct BoxingStep {
  int first_axis = 0;  ///< of the mesh
  int last_axis = 0;   ///< the same, but where neighboring axes with equal entries take part together
  Sbp from;            ///< entry of these axes before
  Sbp to;              ///< and after
  BoxingOp op = BoxingOp::None;
  double bytes_per_rank = 0.0;  ///< that each rank sends
  double oneflow_bytes = 0.0;   ///< over all ranks, as OneFlow counts them; no start-up
  Seconds time;                 ///< on rings
};
/// Steps in their order, none of them BoxingOp::None; empty when the tuples mean the same.
struct BoxingPath {
  std::vector<BoxingStep> steps;
  double bytes_per_rank = 0.0;
  double oneflow_bytes = 0.0;
  Seconds time;
};

/// What the cheapest path is cheapest in.
enum class BoxingMeasure : std::uint8_t {
  Time,          ///< seconds
  BytesPerRank,  ///< bytes that a rank sends
  OneFlow,       ///< bytes over all ranks, as OneFlow counts them, and `oneflow_startup` for each step
};

/// AUTO_PARALLEL_TRANSFER_COST: what each transfer costs in OneFlow beside its bytes, in bytes. Versions differ: 1.65e4
/// in some, 1.65e8 in others (oneflow/core/framework/sbp_infer_util.cpp, GetTransferCost).
inline constexpr double kOneFlowStartup = 1.65e4;

struct BoxingOptions {
  BoxingRules rules;
  BoxingMeasure measure = BoxingMeasure::Time;
  /// Tuples that differ along one mesh axis are reached in one step where there is such a step, as in OneFlow. Else a
  /// detour is taken where it is cheaper: (S(0),B) -> (B,B) with a slow first axis is faster over (S(0),S(1)).
  bool direct = true;
  double oneflow_startup = kOneFlowStartup;
};

/// A tensor to be boxed.
struct BoxingTensor {
  TensorShape shape;
  double element_bytes = 4.0;
};

/// Tuples of a tensor beyond which a search is refused.
inline constexpr std::size_t kMostBoxingTuples = 1 << 14;

/// All ways between the tuples of one tensor on one mesh.
///
/// A step changes one mesh axis, or several neighboring ones with equal entries at once, as one axis of their product.
/// Its groups have T over the sizes of the other axes that split the tensor. Two things restrict it, both after
/// OneFlow: no later mesh axis may split a tensor axis that the step gathers or splits, since its pieces would not be
/// contiguous; and axes take part together in a split only where cutting at once and cutting one after another give the
/// same pieces (remainder 0, 1 or p-1). Mesh axes of one rank count as equal. The search is Dijkstra's over all tuples
/// that fit the tensor (`misfit`); of equally cheap paths it takes one of the fewest steps. OneFlow allows for three
/// tuples between. Remainders are left out of costs: pieces count as equal.
class BoxingPaths {
public:
  /// `links`: by mesh axis. Axes that take part together have the slowest of their links.
  /// @throws PlanError for more than kMostBoxingTuples tuples, or another number of links than of mesh axes.
  BoxingPaths(const DeviceMesh& mesh, std::vector<AxisLink> links, BoxingTensor tensor, BoxingOptions options = {});
  ~BoxingPaths();
  BoxingPaths(BoxingPaths&&) noexcept;
  BoxingPaths& operator=(BoxingPaths&&) noexcept;

  /// @throws PlanError when the tensor does not fit a tuple, or nothing leads from one to the other, which happens
  /// under PartialPolicy::Strict only.
  [[nodiscard]] BoxingPath path(const SbpTuple& from, const SbpTuple& to);
  /// Of the path, in units of the measure. Throws as `path` does. The first call for a `from` searches, others look up.
  [[nodiscard]] double cost(const SbpTuple& from, const SbpTuple& to);

private:
  class Search;
  std::unique_ptr<Search> search_;
};

/// Links inside of a node and out of it.
struct NodeLinks {
  int ranks_per_node = 1;
  AxisLink within;   ///< of a rank
  AxisLink between;  ///< of a node: shared by the rings that leave it
};
/// By mesh axis the link of its rings. An axis whose groups each lie in one node has `within`. Of another one, all
/// groups with a rank in a node share that node's link evenly, since each of their rings leaves a node once.
/// @throws PlanError when nodes do not fill up.
std::vector<AxisLink> links_of(const DeviceMesh& mesh, const NodeLinks& nodes);

}  // namespace simsync
