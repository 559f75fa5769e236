#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <iostream>

#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/failure.hpp"
#include "cli/unknown.hpp"

namespace {

constexpr const char* kSeeHelp = "\nRun 'simsync --help' for the commands and their flags.";

int report(const std::string& text, simsync::ExitCode code) {
  std::cerr << text << '\n';
  return static_cast<int>(code);
}

}  // namespace

int main(int argc, char** argv) {
  using simsync::ExitCode;
  // `simsync list settings | head -1` ends without a word even where a parent ignores the signal.
  std::signal(SIGPIPE, SIG_DFL);
  CLI::App app{"simsync: how should this model be synchronized on this cluster, how fast will it run, and why?"};
  app.name("simsync");
  app.set_version_flag("--version", SIMSYNC_VERSION);
  app.require_subcommand(1);
  app.footer("Exit codes: 0 ok, 1 finding, 2 usage, 3 input, 4 missing capability, 70 internal error.");
  simsync::Outcome outcome;
  simsync::setup_predict(app, outcome);
  simsync::setup_sweep(app, outcome);
#ifdef SIMSYNC_HAS_RUN
  simsync::setup_measure(app, outcome);
#endif
  simsync::setup_validate(app, outcome);
  simsync::setup_profile(app, outcome);
  simsync::setup_calibrate(app, outcome);
  simsync::setup_list(app, outcome);
  try {
    if (const std::string wrong = simsync::unknown_word(app, argc, argv); !wrong.empty())
      return report("error: " + wrong + kSeeHelp, ExitCode::Usage);
    app.parse(argc, argv);
    std::cout.flush();
    if (!std::cout) return report("error: cannot write to standard output", ExitCode::Input);
    return static_cast<int>(outcome.code);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    return report(std::string("error: ") + e.what() + kSeeHelp, ExitCode::Usage);
  } catch (const std::exception&) {
    const simsync::Failure failure = simsync::current_failure();
    return report(failure.text, failure.code);
  }
}
