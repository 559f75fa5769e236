#include <iostream>
#include <memory>

#include "base/file.hpp"
#include "cli/commands.hpp"
#include "cli/import_autosync.hpp"
#include "cli/import_trace.hpp"
#include "cli/outputs.hpp"
#include "cli/settings.hpp"
#include "platforms/reader.hpp"

namespace simsync {
namespace {

struct ImportFlags {
  std::string file;
  std::string device;
  std::string out;
};

/// What the format does not say is assumed; it stands in the file, and is told where nobody sees that file.
void import_autodist(const ImportFlags& flags) {
  const Cluster cluster = import_autodist_resource_spec(flags.file, flags.device);
  if (flags.out.empty()) {
    std::cout << to_yaml(cluster);
    return;
  }
  write_file(flags.out, to_yaml(cluster));
  for (const auto& source : cluster.sources) std::cerr << "note: " << source << '\n';
}

}  // namespace

void setup_import(CLI::App& app, Outcome&) {
  auto* command = app.add_subcommand("import", "Turn a file of another system into one of simsync");
  command->require_subcommand(1);
  auto flags = std::make_shared<ImportFlags>();
  auto* autodist = command->add_subcommand(kAutodistFormat, "AutoDist's resource_spec.yml: a cluster for --cluster");
  autodist->add_option("FILE", flags->file, "The resource specification")->required()->check(file_name());
  autodist
      ->add_option("--device", flags->device,
                   "GPU of its nodes, which the format does not name ('simsync list devices')")
      ->required();
  autodist->add_option("--out", flags->out, "Write the cluster to this file (default: standard output)")
      ->check(output_file("--out"));
  autodist->callback([flags] { import_autodist(*flags); });
  setup_import_autosync(*command);
  setup_import_traces(*command);
}

}  // namespace simsync
