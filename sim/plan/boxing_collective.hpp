// Which collective converts a tensor among ranks that share out layers, experts or tokens. Private to sim/plan.
#pragma once
#include "sim/plan/group_shape.hpp"
#include "strategies/split_layers.hpp"

namespace simsync::detail {

struct BoxingCollective {
  CollectivePrimitive primitive = CollectivePrimitive::AllReduce;
  double bytes = 0.0;  ///< payload, as Collective::bytes says it
};

/// `bytes` are those of the whole tensor; the boxing is one that moves any.
BoxingCollective collective_of(BoxingOp op, double bytes, int ranks);

}  // namespace simsync::detail
