// Whether what is asked fits into the devices.
#pragma once
#include <string>

#include "sim/problem/problem.hpp"

namespace simsync {

/// What does not fit is refused, or, where `--set memory=ignore` asks for it, told on standard error. `who` tells one
/// question from another in these messages; empty: there is one. @throws InputError with what would help.
void check_memory(const Problem& problem, const std::string& who = {});

}  // namespace simsync
