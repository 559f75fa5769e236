#include "cli/testbed_trials.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/parse_units.hpp"
#include "cli/child_process.hpp"
#include "cli/commands.hpp"
#include "cli/forward.hpp"
#include "hw/testbed/testbed.hpp"
#include "strategies/reader.hpp"

namespace simsync {
namespace {

constexpr int kMostFailures = 3;  ///< in a row

/// Strategies as files that a child process finds.
class StrategyFiles {
public:
  StrategyFiles(const std::vector<Strategy>& strategies, std::size_t first, const Model& model) {
    for (std::size_t i = first; i < strategies.size(); ++i) {
      files_.emplace_back("strategy.yaml");
      write_file(files_.back().path(), to_yaml(strategies[i], model));
    }
  }
  [[nodiscard]] std::vector<std::string> paths() const {
    std::vector<std::string> out;
    for (const SharedFile& file : files_) out.push_back(file.path());
    return out;
  }

private:
  std::deque<SharedFile> files_;  ///< which stay where they are
};

class TestbedRunner {
public:
  TestbedRunner(const TestbedTrials& trials, const Model& model, ProgressBar& progress)
      : trials_(trials), model_(model), progress_(progress) {}

  void run(const std::vector<Strategy>& strategies,
           const std::function<void(std::size_t, std::optional<Seconds>)>& done) {
    std::size_t at = 0;
    int failures = 0;
    while (at < strategies.size()) {
      const std::size_t first = at;
      const SharedFile messages("messages");
      const int status = launch(strategies, first, messages, [&](std::size_t i, Seconds step) {
        for (; at < i; ++at) done(at, std::nullopt);
        done(at++, step);
      });
      const std::string said = read_output(messages.path());
      show_notes(said);
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        for (; at < strategies.size(); ++at) done(at, std::nullopt);
        return;
      }
      failures = at == first ? failures + 1 : 1;
      expect_patience(status, failures, said);
      done(at++, std::nullopt);
    }
  }

private:
  int launch(const std::vector<Strategy>& strategies, std::size_t first, const SharedFile& messages,
             const std::function<void(std::size_t, Seconds)>& done) const {
    const StrategyFiles files(strategies, first, model_);
    const std::vector<std::string> paths = files.paths();
    std::vector<std::string> command{hardware_program(),
                                     kMeasure,
                                     "--csv",
                                     "-",
                                     "--model",
                                     trials_.model,
                                     "--strategy",
                                     fmt::format("{}", fmt::join(paths, ",")),
                                     "--workers",
                                     std::to_string(trials_.workers),
                                     "--batch",
                                     std::to_string(trials_.batch),
                                     "--steps",
                                     std::to_string(trials_.steps),
                                     "--warm-up",
                                     std::to_string(trials_.warm_up),
                                     "--testbed",
                                     std::to_string(trials_.testbed.hosts),
                                     "--rate",
                                     trials_.testbed.rates,
                                     "--server-hosts",
                                     std::to_string(trials_.testbed.server_hosts),
                                     "--queues",
                                     trials_.testbed.queues};
    for (const auto& [key, value] : trials_.settings) {
      command.emplace_back("--set");
      command.push_back(fmt::format("{}={}", key, value));
    }
    std::string header;
    return run_child(command, {.line =
                                   [&](const std::string& line) {
                                     if (header.empty()) {
                                       header = line + '\n';
                                       return;
                                     }
                                     const CsvTable row = CsvTable::parse(header + line + '\n', kMeasure);
                                     const auto found = std::find(paths.begin(), paths.end(), row.cell(0, "strategy"));
                                     SIMSYNC_ASSERT(found != paths.end());
                                     done(first + static_cast<std::size_t>(found - paths.begin()),
                                          Seconds{row.number(0, "step_time_s").value()});
                                   },
                               .messages = &messages});
  }

  /// What is said of this machine, which every launch says again.
  void show_notes(const std::string& said) {
    std::istringstream lines(said);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with("note: ") && shown_.insert(line).second) progress_.message(line);
  }

  static void expect_patience(int status, int failures, const std::string& said) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == kCannotStart)
      throw CapabilityError(fmt::format("search --evaluator measure needs {}", hardware_program()));
    const bool is_finding = WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(ExitCode::Capability);
    if (is_finding || failures >= kMostFailures) {
      const std::size_t error = said.rfind("error: ");
      throw RunError(fmt::format("real runs fail: {}", error == std::string::npos ? said : said.substr(error + 7)));
    }
  }

  TestbedTrials trials_;
  const Model& model_;
  ProgressBar& progress_;
  std::set<std::string> shown_;
};

}  // namespace

Cluster testbed_cluster(const TestbedFlags& flags) {
  return described_testbed({.hosts = flags.hosts,
                            .rates = parse_rates(flags.rates),
                            .server_hosts = flags.server_hosts,
                            .queues = parse_queues(flags.queues)});
}

StrategyRunner run_on_testbed(const TestbedTrials& trials, const Model& model, ProgressBar& progress) {
  auto runner = std::make_shared<TestbedRunner>(trials, model, progress);
  return [runner](const auto& strategies, const auto& done) { runner->run(strategies, done); };
}

}  // namespace simsync
