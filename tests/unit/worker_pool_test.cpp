// Processes that share work, and what happens when one of them dies.
#include "cli/worker_pool.hpp"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "base/error.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

TEST_CASE("answers come in order, whoever gives them first", "[cli]") {
  std::vector<std::string> answers;
  const auto work = [](std::size_t i) {
    if (i == 0) ::usleep(50'000);
    return std::to_string(i);
  };
  run_in_processes(5, 2, work, [&](std::size_t, const std::string& text) { answers.push_back(text); });
  CHECK(answers == std::vector<std::string>{"0", "1", "2", "3", "4"});
}

TEST_CASE("a worker process that is killed ends the work at once", "[cli]") {
  // The other process would be busy with the rest for 20 s.
  const auto work = [](std::size_t i) {
    if (i == 1) ::kill(::getpid(), SIGKILL);
    if (i > 1) ::sleep(10);
    return std::string{};
  };
  std::size_t done = 0;
  CHECK_THROWS_WITH(run_in_processes(4, 2, work, [&](std::size_t, const std::string&) { ++done; }),
                    "a worker process was ended by signal 9 (Killed); if it was for lack of memory, fewer --jobs need "
                    "less");
  CHECK(done <= 1);
}

TEST_CASE("worker processes do not hear what interrupts their parent", "[cli]") {
  const auto work = [](std::size_t) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::kill(::getpid(), signal);
    return std::string{"alive"};
  };
  std::vector<std::string> answers;
  run_in_processes(2, 2, work, [&](std::size_t, const std::string& text) { answers.push_back(text); });
  CHECK(answers == std::vector<std::string>{"alive", "alive"});
}

TEST_CASE("work that is stopped ends while a process is busy, and what was done stays", "[cli]") {
  // One process: the second answer would take 60 s.
  const auto work = [](std::size_t i) {
    if (i > 0) ::sleep(60);
    return std::to_string(i);
  };
  std::vector<std::string> answers;
  const auto begin = std::chrono::steady_clock::now();
  const bool all = run_in_processes(
      3, 1, work, [&](std::size_t, const std::string& text) { answers.push_back(text); },
      [&] { return !answers.empty(); });
  CHECK(!all);
  CHECK(answers == std::vector<std::string>{"0"});
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
  CHECK(run_in_processes(
      2, 1, [](std::size_t) { return std::string{}; }, [](std::size_t, const std::string&) {}, [] { return false; }));
}
