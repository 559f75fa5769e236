#include "tests/support/command_case.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace simsync::test {
namespace {
namespace fs = std::filesystem;

const fs::path kTests = SIMSYNC_TESTS_FOLDER;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// A folder that is gone when the case has ended.
class Scratch {
public:
  explicit Scratch(const fs::path& from) {
    std::string pattern = (fs::temp_directory_path() / "simsync-case-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no scratch folder");
    root_ = pattern;
    fs::copy(from, folder(), fs::copy_options::recursive);
    for (const char* name : {"expected", "exit", "WHY.md", "once"}) fs::remove(folder() / name);  // not the command's business
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  [[nodiscard]] fs::path folder() const { return root_ / "case"; }
  [[nodiscard]] fs::path file(const char* name) const { return root_ / name; }

private:
  fs::path root_;
};

constexpr const char* kPrelude = "simsync() { \"$SIMSYNC\" \"$@\"; }; exec 2>\"$ERR\" >\"$OUT\" </dev/null; ";

[[noreturn]] void become(const Scratch& scratch) {
  for (const int signal : {SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGXFSZ}) std::signal(signal, SIG_DFL);
  setenv("SIMSYNC", SIMSYNC_PROGRAM, 1);
  setenv("SIMSYNC_DATA", kTests.parent_path().c_str(), 1);
  setenv("OUT", scratch.file("out").c_str(), 1);
  setenv("ERR", scratch.file("err").c_str(), 1);
  setenv("LC_ALL", "C", 1);
  setenv("COLUMNS", "80", 1);
  const std::string line = kPrelude + read_text(scratch.folder() / "cmd");
  if (chdir(scratch.folder().c_str()) == 0) execlp("timeout", "timeout", "300", "sh", "-c", line.c_str(), nullptr);
  _exit(127);
}

}  // namespace

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> command_cases(const std::string& kind) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kTests / kind)) {
    if (fs::exists(entry.path() / "cmd")) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string case_folder(const std::string& kind, const std::string& name) {
  return kTests / kind / name;
}

bool is_skipped(const std::string& folder) {
  return fs::exists(fs::path(folder) / "not-as-root") && geteuid() == 0;
}

bool runs_once(const std::string& folder) {
  return fs::exists(fs::path(folder) / "once");
}

CommandResult run_case(const std::string& folder) {
  const Scratch scratch(folder);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot start a process");
  if (child == 0) become(scratch);
  int status = 0;
  waitpid(child, &status, 0);
  const std::string source = kTests.parent_path();
  CommandResult result;
  result.out = replaced(read_text(scratch.file("out")), source, "{source}");
  result.err = replaced(read_text(scratch.file("err")), source, "{source}");
  result.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

int expected_exit(const std::string& folder) {
  const std::string text = read_text(folder + "/exit");
  return text.empty() ? 0 : std::stoi(text);
}

bool approves() {
  const char* wish = std::getenv("SIMSYNC_APPROVE");
  return wish != nullptr && std::string(wish) == "1";
}

void approve(const std::string& folder, const std::string& text, int exit) {
  std::ofstream(folder + "/expected", std::ios::binary) << text;
  if (exit != 0) {
    std::ofstream(folder + "/exit") << exit << '\n';
  } else {
    fs::remove(folder + "/exit");
  }
}

}  // namespace simsync::test
