#include "cli/testbed_flags.hpp"

#include "base/parse_units.hpp"
#include "cli/unknown.hpp"
#include "hw/testbed/testbed.hpp"

namespace simsync {

CLI::Option* add_queues(CLI::App& command, std::string& queues) {
  return command
      .add_option("--queues", queues,
                  "How the testbed's ports serve what waits in them: fifo, in the order of arrival; fair, the other "
                  "hosts in turn")
      ->capture_default_str();
}

TestbedOptions add_testbed_hosts(CLI::App& command, TestbedFlags& flags) {
  TestbedOptions out;
  out.hosts = command
                  .add_option("--testbed", flags.hosts,
                              "Hosts to emulate in network namespaces of this machine, and to run on")
                  ->check(whole_number(2, kMaxTestbedHosts));
  out.details.push_back(
      command
          .add_option("--rate", flags.rates, "Rate of each host's link: one for all, or one per host (1Gbps,500Mbps)")
          ->capture_default_str());
  out.details.push_back(command.add_option("--server-hosts", flags.server_hosts, "Hosts without a device besides them")
                            ->check(whole_number(0, kMaxTestbedHosts)));
  out.details.push_back(add_queues(command, flags.queues));
  return out;
}

TestbedOptions add_testbed_flags(CLI::App& command, TestbedFlags& flags) {
  TestbedOptions out = add_testbed_hosts(command, flags);
  out.details.push_back(
      command.add_option("--budget", flags.budget_s, "Seconds that all probes together may take, by nominal rates")
          ->check(number_between(1.0, 86400.0))
          ->capture_default_str());
  return out;
}

std::vector<std::string> arguments_of(const TestbedFlags& flags) {
  return {"--testbed",      std::to_string(flags.hosts),        "--rate",   flags.rates,
          "--server-hosts", std::to_string(flags.server_hosts), "--queues", flags.queues,
          "--budget",       format_number(flags.budget_s)};
}

}  // namespace simsync
