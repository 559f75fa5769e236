// Private to this folder: whether an operator's tensors are what it takes.
#pragma once
#include "strategies/sbp/op_signatures.hpp"

namespace simsync {

/// @throws PlanError when the number or the shapes of the tensors are not those of the operator.
void expect_tensors_of(const TensorOpCall& call);

}  // namespace simsync
