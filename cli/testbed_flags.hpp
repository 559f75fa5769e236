// Flags of the commands that probe a testbed.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace simsync {

struct TestbedFlags {
  int hosts = 0;
  int server_hosts = 0;
  std::string rates = "1Gbps";
  std::string queues = "fifo";
  double budget_s = 600.0;  ///< seconds that all probes together may take
};

/// The options that were declared, for further conditions.
struct TestbedOptions {
  CLI::Option* hosts = nullptr;
  std::vector<CLI::Option*> details;  ///< of no meaning without `hosts`
};

/// What to emulate.
TestbedOptions add_testbed_hosts(CLI::App& command, TestbedFlags& flags);
/// The same and the budget of probes.
TestbedOptions add_testbed_flags(CLI::App& command, TestbedFlags& flags);
/// The command line of `simsync-hw probe` that says the same.
std::vector<std::string> arguments_of(const TestbedFlags& flags);

/// What `measure` has in common with them.
CLI::Option* add_queues(CLI::App& command, std::string& queues);

}  // namespace simsync
