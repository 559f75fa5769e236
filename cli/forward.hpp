// Commands of `simsync` that another program carries out. Real runs need gRPC, Gloo and oneDNN, whose loading alone
// would take longer than most predictions.
#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "cli/commands.hpp"

namespace simsync {

/// Declare a command of simsync-hw, for the list of commands and for misspelt ones.
void announce_measure(CLI::App& app, Outcome& outcome);
void announce_profile(CLI::App& app, Outcome& outcome);
void announce_probe(CLI::App& app, Outcome& outcome);

/// Whether the command line begins with such a command.
bool is_forwarded(int argc, const char* const* argv);
/// Path of simsync-hw, which lies in the folder of this program.
std::string hardware_program();
/// Becomes simsync-hw with the same command line. Returns an exit code only when it
/// cannot, after saying so.
int forward(char** argv);

}  // namespace simsync
