// Ways to replay one plan that have to agree.
#pragma once
#include "sim/engine/engine.hpp"
#include "sim/problem/problem.hpp"
#include "tests/support/catch.hpp"

namespace simsync::test {

/// The step on SimGrid, which the native solver has within a millionth. Checks that.
inline double step_of_both_solvers(Problem problem) {
  const auto step = [&](Solver solver) {
    problem.options.solver = solver;
    return replay(problem.plan, problem.cluster, problem.options).step.value();
  };
  const double simgrid = step(Solver::SimGrid);
  CHECK_THAT(step(Solver::Native), Catch::Matchers::WithinRel(simgrid, 1e-6));
  return simgrid;
}

/// Checks that nodes that stand for others change nothing.
inline void expect_folded_as_fluid(Problem problem) {
  const auto step = [&](Fidelity fidelity) {
    problem.options.fidelity = fidelity;
    return replay(problem.plan, problem.cluster, problem.options).step.value();
  };
  CHECK_THAT(step(Fidelity::Fluid), Catch::Matchers::WithinRel(step(Fidelity::Folded), 1e-9));
}

}  // namespace simsync::test
