// Misspelt words of a command line, found before CLI11 complains about what it misses instead.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

namespace simsync {

/// What is wrong with the first unknown subcommand or flag of `argv`, with the closest name, or with a subcommand,
/// value or item of a list that is missing; empty when there is nothing.
std::string unknown_word(CLI::App& app, int argc, const char* const* argv);

/// A check for whole numbers that says what it expects.
CLI::Validator whole_number(long long low, long long high);
/// The same for any number; CLI::Range takes what is not a number.
CLI::Validator number_between(double low, double high);

}  // namespace simsync
