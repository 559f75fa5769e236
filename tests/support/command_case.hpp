// Commands as a user types them, with the output that they must give, byte for byte.
//
// A case is a folder with `cmd` (a line for sh, in which `simsync` is the program), whatever input files it needs,
// `expected` and, unless it is 0, `exit`. It runs in a copy of its folder. `{source}` in `expected` stands for the
// source tree. A case with a file `not-as-root` is skipped by name when root runs the tests.
#pragma once
#include <string>
#include <vector>

namespace simsync::test {

struct CommandResult {
  std::string out;
  std::string err;
  int exit = 0;  ///< 128 + n after signal n, as a shell says it
};

/// Names of the folders in `tests/<kind>` that hold a `cmd`, sorted.
std::vector<std::string> command_cases(const std::string& kind);
std::string case_folder(const std::string& kind, const std::string& name);
bool is_skipped(const std::string& folder);
/// Whether the case says by a file `once` that it takes too long to be repeated.
bool runs_once(const std::string& folder);
/// Runs the case in a scratch copy of its folder, with signals at their defaults and at most five minutes of time.
CommandResult run_case(const std::string& folder);
std::string read_text(const std::string& path);
/// The exit code that the case expects.
int expected_exit(const std::string& folder);
/// With SIMSYNC_APPROVE=1 in the environment: makes `text` and `exit` the expected ones. See tests/golden/README.md.
bool approves();
void approve(const std::string& folder, const std::string& text, int exit);

}  // namespace simsync::test
