// `measure` of a build without Gloo or gRPC.
#include "base/error.hpp"
#include "cli/commands.hpp"

namespace simsync {

void setup_measure(CLI::App& app, Outcome&) {
  auto* command = app.add_subcommand(kMeasure, kAboutMeasure);
  command->allow_extras();
  command->callback([] {
    throw CapabilityError("this program was built without Gloo and gRPC, which real runs need (cmake/packages.txt)");
  });
}

}  // namespace simsync
