// What `simsync` and `simsync-hw` share: from a command line to an exit code.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "cli/commands.hpp"

namespace simsync {

using SetupCommand = std::function<void(CLI::App& app, Outcome& outcome)>;

/// Parses, runs the command that was named and reports what goes wrong. Messages call the program as the user did.
int run_program(int argc, char** argv, const std::string& about, const std::vector<SetupCommand>& commands);

}  // namespace simsync
