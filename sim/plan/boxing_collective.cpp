#include "sim/plan/boxing_collective.hpp"

#include "base/error.hpp"

namespace simsync::detail {

BoxingCollective collective_of(BoxingOp op, double bytes, int ranks) {
  switch (op) {
    case BoxingOp::AllReduce:
      return {CollectivePrimitive::AllReduce, bytes};
    case BoxingOp::ReduceScatter:
      return {CollectivePrimitive::ReduceScatter, bytes};
    case BoxingOp::AllGather:
      return {CollectivePrimitive::AllGather, bytes / ranks};
    case BoxingOp::AllToAll:
      return {CollectivePrimitive::AllToAll, bytes / ranks};
    case BoxingOp::None:
    case BoxingOp::Slice:
    case BoxingOp::ZeroFill:
      break;  // they send nothing
  }
  assertion_failed("a boxing that sends is a collective", __FILE__, __LINE__);
}

}  // namespace simsync::detail
