// Commands that succeed and their approved output, byte for byte; twice, since equal inputs give equal bytes. Those that
// take a minute (a file `once` in the folder) run once.
#include "tests/support/catch.hpp"
#include "tests/support/command_case.hpp"

using namespace simsync::test;

TEST_CASE("output is the approved one", "[golden]") {
  const auto names = command_cases("golden");
  REQUIRE(names.size() >= 10);
  for (const auto& name : names) {
    DYNAMIC_SECTION(name) {
      const std::string folder = case_folder("golden", name);
      const CommandResult result = run_case(folder);
      CHECK(result.err.empty());
      if (approves()) approve(folder, result.out, result.exit);
      CHECK(result.out == read_text(folder + "/expected"));
      CHECK(result.exit == expected_exit(folder));
      if (!runs_once(folder)) CHECK(run_case(folder).out == result.out);
    }
  }
}
