// A case as a command that repeats it.
#pragma once
#include <string>
#include <vector>

#include "sim/problem/problem.hpp"

namespace simsync {

/// What follows `simsync predict`: every flag and setting of the question, in their order. Files are named as in the
/// request, so the command works in the current folder.
std::vector<std::string> predict_arguments(const PredictRequest& request);

/// `simsync predict ...`, quoted for sh.
std::string command_of(const PredictRequest& request);

}  // namespace simsync
