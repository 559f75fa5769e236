#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/parse_units.hpp"
#include "base/progress_bar.hpp"
#include "cli/commands.hpp"
#include "cli/outputs.hpp"
#include "cli/row_file.hpp"
#include "cli/testbed_flags.hpp"
#include "cli/unknown.hpp"
#include "hw/run/on_testbed.hpp"
#include "hw/run/run_probe.hpp"
#include "hw/run/stolen_time.hpp"
#include "platforms/reader.hpp"

namespace simsync {
namespace {

struct ProbeFlags {
  TestbedFlags testbed;
  std::string csv;
  std::string cluster_out;
};

void run_probes(const ProbeFlags& flags) {
  const Testbed testbed({.hosts = flags.testbed.hosts,
                         .rates = parse_rates(flags.testbed.rates),
                         .server_hosts = flags.testbed.server_hosts,
                         .queues = parse_queues(flags.testbed.queues)});
  const Cluster cluster = testbed.cluster();
  const auto runs = choose_probes(cluster, Seconds{flags.testbed.budget_s});
  if (!flags.cluster_out.empty()) write_file(flags.cluster_out, to_yaml(cluster));
  RowFile file(flags.csv, csv_row(probe_header()), false);
  const LaunchOptions options = on_testbed(testbed);
  ProgressBar progress(runs.size());
  progress.message(fmt::format("{} probes of {}, about {:.0f} s to measure", runs.size(), cluster.name,
                               expected_time(runs).value()));
  const AwakeProcessors awake;
  for (const std::string& note : notes_on_timing(awake)) progress.message(note);
  const StolenTime stolen;
  for (const ProbeRun& run : runs) {
    const ProbeTimes times = run_probe(run, cluster, options);
    file.append(csv_row(probe_cells(run.probe, times)));
    progress.message(fmt::format("{}: {} ({} to {})", describe(run.probe), format_seconds(times.median()),
                                 format_seconds(quantile_of(times.each, 0.1)),
                                 format_seconds(quantile_of(times.each, 0.9))));
    progress.advance();
  }
  if (const std::string note = note_of_stolen_time(stolen.share()); !note.empty()) progress.message(note);
}

}  // namespace

void setup_probe(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<ProbeFlags>();
  auto* command = app.add_subcommand(kProbe, kAboutProbe);
  add_testbed_flags(*command, flags->testbed).hosts->required();
  command
      ->add_option("--csv", flags->csv,
                   "Write rows for 'simsync calibrate --from' to this file, or to standard output with '-'")
      ->required()
      ->check(output_file("--csv"));
  command->add_option("--cluster-out", flags->cluster_out, "Write the cluster that was built to this file")
      ->check(output_file("--cluster-out"));
  command->callback([flags] { run_probes(*flags); });
}

}  // namespace simsync
