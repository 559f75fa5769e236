// Names of the variables of a Kineto trace, which has none.
#pragma once
#include <string>
#include <vector>

#include "models/trace/kineto_events.hpp"
#include "models/trace/range_index.hpp"
#include "models/trace/traced_model.hpp"

namespace simsync::detail {

/// A gradient: the operator that accumulates it, and the forward operator that read its variable.
struct KinetoGradient {
  std::size_t op = 0;
  std::size_t forward = 0;
  std::string variable;
};

/// Names the gradients' variables by the module that reads them (`Conv2d_0/weight`), or by the forward operator,
/// counted in the order of the forward pass (`conv2d.0/weight`); `modules` are the calls of modules. Adds to `hints`
/// what they are.
void name_variables(std::vector<KinetoGradient>& gradients, const std::vector<KinetoOp>& ops, const RangeIndex& modules,
                    TraceHints& hints);

}  // namespace simsync::detail
