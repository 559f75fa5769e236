// `simsync import trace`, `tf-timeline` and `kineto`.
#pragma once
#include <CLI/CLI.hpp>

namespace simsync {

/// Adds the subcommands of `import` that read traces of one worker.
void setup_import_traces(CLI::App& import);

}  // namespace simsync
