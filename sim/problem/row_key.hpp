// What tells the rows of one table apart, predicted or measured.
#pragma once
#include <string>
#include <vector>

#include "sim/problem/problem.hpp"

namespace simsync {

/// The header of predicted or measured rows: the columns that both begin with, then their own.
std::vector<std::string> header_with(const std::vector<std::string>& own);
/// The columns in which the rows of one table differ.
const std::vector<std::string>& key_columns();
/// What a request's row has in those columns, without running it. @throws InputError for an unknown name.
std::vector<std::string> row_key(const PredictRequest& request, Inputs& inputs);

}  // namespace simsync
