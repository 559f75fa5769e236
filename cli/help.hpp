// Help that begins with examples and fits 80 columns.
#pragma once
#include <CLI/CLI.hpp>
#include <memory>

namespace simsync {

/// For the main command; its subcommands inherit it when they are added.
std::shared_ptr<CLI::Formatter> help_formatter();

}  // namespace simsync
