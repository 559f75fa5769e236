// `simsync import autosync`: measured pairs of AutoSync's archives.
#pragma once
#include <CLI/CLI.hpp>

namespace simsync {

void setup_import_autosync(CLI::App& import);

}  // namespace simsync
