#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <iostream>

#include "base/error.hpp"
#include "cli/commands.hpp"

namespace {

int report(const std::string& text, simsync::ExitCode code) {
  std::cerr << text << '\n';
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  using simsync::ExitCode;
  CLI::App app{"simsync: how should this model be synchronized on this cluster, how fast will it run, and why?"};
  app.name("simsync");
  app.set_version_flag("--version", SIMSYNC_VERSION);
  app.require_subcommand(1);
  app.footer("Exit codes: 0 ok, 1 finding, 2 usage, 3 input, 4 missing capability, 70 internal error.");
  simsync::Outcome outcome;
  simsync::setup_predict(app, outcome);
  simsync::setup_sweep(app, outcome);
  simsync::setup_validate(app, outcome);
  simsync::setup_list(app, outcome);
  try {
    app.parse(argc, argv);
    std::cout.flush();
    if (!std::cout) return report("error: cannot write to standard output", ExitCode::Input);
    return static_cast<int>(outcome.code);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    return report(std::string("error: ") + e.what() + "\nRun 'simsync --help' for the commands and their flags.", ExitCode::Usage);
  } catch (const simsync::InputError& e) {
    return report(e.what(), ExitCode::Input);
  } catch (const simsync::PlanError& e) {
    return report(std::string("error: ") + e.what(), ExitCode::Input);
  } catch (const simsync::CapabilityError& e) {
    return report(std::string("error: ") + e.what(), ExitCode::Capability);
  } catch (const std::exception& e) {
    return report(std::string("internal error: ") + e.what(), ExitCode::Internal);
  }
}
