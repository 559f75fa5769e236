// One subcommand per file: an options struct, a setup that declares the flags, a run.
#pragma once
#include <CLI/CLI.hpp>

#include "base/error.hpp"

namespace simsync {

/// What the command that ran has to say to the shell.
struct Outcome {
  ExitCode code = ExitCode::Ok;
};

/// Commands that `simsync` hands to `simsync-hw`.
inline constexpr const char* kMeasure = "measure";
inline constexpr const char* kAboutMeasure = "Run strategies for real on an emulated cluster and time their steps";
inline constexpr const char* kProbe = "probe";
inline constexpr const char* kAboutProbe = "Measure network and servers of an emulated cluster, for calibrate --from";
inline constexpr const char* kProfile = "profile";
inline constexpr const char* kAboutProfile = "Time every layer of a model on a CPU or a GPU of this machine";

void setup_predict(CLI::App& app, Outcome& outcome);
void setup_sweep(CLI::App& app, Outcome& outcome);
void setup_search(CLI::App& app, Outcome& outcome);
void setup_dataset(CLI::App& app, Outcome& outcome);
void setup_rank(CLI::App& app, Outcome& outcome);
void setup_compare(CLI::App& app, Outcome& outcome);
void setup_measure(CLI::App& app, Outcome& outcome);
void setup_probe(CLI::App& app, Outcome& outcome);
void setup_validate(CLI::App& app, Outcome& outcome);
void setup_profile(CLI::App& app, Outcome& outcome);
void setup_calibrate(CLI::App& app, Outcome& outcome);
void setup_import(CLI::App& app, Outcome& outcome);
void setup_list(CLI::App& app, Outcome& outcome);

}  // namespace simsync
