// Wrong files and flags as a user would give them: the exact text on stderr, nothing on stdout, the exit code.
#include "tests/support/catch.hpp"
#include "tests/support/command_case.hpp"

using namespace simsync::test;

TEST_CASE("wrong input is told in full", "[error]") {
  const auto names = command_cases("error");
  REQUIRE(names.size() >= 150);
  for (const auto& name : names) {
    DYNAMIC_SECTION(name) {
      const std::string folder = case_folder("error", name);
      if (is_skipped(folder)) {
        WARN("skipped, root reads every file: " << name);
        continue;
      }
      const CommandResult result = run_case(folder);
      CHECK(result.out.empty());
      if (approves()) approve(folder, result.err, result.exit);
      CHECK(result.err == read_text(folder + "/expected"));
      CHECK(result.exit == expected_exit(folder));
      CHECK(result.exit >= 1);
      CHECK(result.exit <= 4);
    }
  }
}
