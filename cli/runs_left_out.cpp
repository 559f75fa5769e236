// `measure` and `probe` of a build without Gloo or gRPC.
#include "base/error.hpp"
#include "cli/commands.hpp"

namespace simsync {
namespace {

void leave_out(CLI::App& app, const char* name, const char* about) {
  auto* command = app.add_subcommand(name, about);
  command->allow_extras();
  command->callback([] {
    throw CapabilityError("this program was built without Gloo and gRPC, which real runs need (cmake/packages.txt)");
  });
}

}  // namespace

void setup_measure(CLI::App& app, Outcome&) {
  leave_out(app, kMeasure, kAboutMeasure);
}

void setup_probe(CLI::App& app, Outcome&) {
  leave_out(app, kProbe, kAboutProbe);
}

}  // namespace simsync
