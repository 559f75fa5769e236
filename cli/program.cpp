#include "cli/program.hpp"

#include <csignal>
#include <exception>
#include <filesystem>
#include <iostream>

#include "base/error.hpp"
#include "base/file_log.hpp"
#include "base/interrupted.hpp"
#include "cli/failure.hpp"
#include "cli/help.hpp"
#include "cli/interruption.hpp"
#include "cli/unknown.hpp"

namespace simsync {
namespace {

constexpr int kBySignal = 128;  ///< what shells add to the number of a signal

int report(const std::string& text, ExitCode code) {
  std::cerr << text << '\n';
  return static_cast<int>(code);
}

}  // namespace

int run_program(int argc, char** argv, const std::string& about, const std::vector<SetupCommand>& commands) {
  // `simsync list settings | head -1` ends without a word even where a parent ignores the signal.
  std::signal(SIGPIPE, SIG_DFL);
  const Interruption interruption;
  const FileLog log;
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  const std::string see_help = "\nRun '" + name + " --help' for the commands and their flags.";
  CLI::App app{name + ": " + about};
  app.name(name);
  app.formatter(help_formatter());
  app.set_version_flag("--version", SIMSYNC_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 ok, 1 finding, 2 usage, 3 input, 4 missing capability, 70 internal error, "
      "130 interrupted by Ctrl-C, 143 by SIGTERM.");
  Outcome outcome;
  for (const SetupCommand& setup : commands) setup(app, outcome);
  try {
    if (const std::string wrong = unknown_word(app, argc, argv); !wrong.empty())
      return report("error: " + wrong + see_help, ExitCode::Usage);
    app.parse(argc, argv);
    std::cout.flush();
    if (!std::cout) return report("error: cannot write to standard output", ExitCode::Input);
    return static_cast<int>(outcome.code);
  } catch (const Interrupted& e) {
    end_by(e.signal());
    return kBySignal + e.signal();
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    return report(std::string("error: ") + e.what() + see_help, ExitCode::Usage);
  } catch (const std::exception&) {
    const Failure failure = current_failure();
    return report(failure.text, failure.code);
  }
}

}  // namespace simsync
