// `--export` of predict: what a framework is told to follow the strategy.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "sim/problem/problem.hpp"

namespace simsync {

/// `format` is empty where the flag is not given.
void add_export_flag(CLI::App& command, std::string& format);

/// Prints the settings or the table to standard output, and what the framework does otherwise to standard error.
/// @throws InputError where the framework cannot express the strategy, PlanError where no table can.
void print_export(const std::string& format, const Problem& problem);

}  // namespace simsync
