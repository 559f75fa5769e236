#include "cli/measure_probes.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstring>

#include "base/error.hpp"
#include "base/file.hpp"
#include "cli/child_process.hpp"
#include "cli/commands.hpp"
#include "cli/failure.hpp"
#include "cli/forward.hpp"
#include "platforms/reader.hpp"
#include "validate/calibrate/readers.hpp"

namespace simsync {
namespace {

void expect_success(const std::string& program, int status) {
  if (WIFSIGNALED(status))
    throw RunError(
        fmt::format("{} was ended by signal {} ({})", program, WTERMSIG(status), strsignal(WTERMSIG(status))));
  const int code = WEXITSTATUS(status);
  if (code == kCannotStart) throw CapabilityError(fmt::format("calibrate --measure needs {}", program));
  if (code != 0) throw WorkerError({"error: nothing was calibrated, because the measurement failed", ExitCode{code}});
}

}  // namespace

MeasuredProbes measure_probes(const TestbedFlags& flags, const std::string& keep) {
  const SharedFile probes("probes.csv");
  const SharedFile described("cluster.yaml");
  const std::string rows = keep.empty() ? probes.path() : keep;
  const std::string cluster = described.path();
  const std::string program = hardware_program();
  std::vector<std::string> command{program, kProbe, "--csv", rows, "--cluster-out", cluster};
  for (auto& argument : arguments_of(flags)) command.push_back(std::move(argument));
  expect_success(program, run_child(command));
  const std::string name = keep.empty() ? "measured" : keep;
  return {load_cluster(cluster), read_table(CsvTable::parse(read_output(rows), name), {})};
}

}  // namespace simsync
