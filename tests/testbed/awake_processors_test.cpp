#include "hw/run/awake_processors.hpp"

#include <sys/wait.h>

#include <cerrno>

#include "tests/support/catch.hpp"
#include "tests/support/scratch_file.hpp"

using namespace simsync;

namespace {

bool has_children() {
  int status = 0;
  return !(waitpid(-1, &status, WNOHANG) < 0 && errno == ECHILD);
}

}  // namespace

TEST_CASE("what keeps processors awake ends with its owner") {
  CHECK_FALSE(has_children());
  { const AwakeProcessors awake; }
  CHECK_FALSE(has_children());
}

TEST_CASE("limits of the processors' time are found in a group and in those above") {
  const test::ScratchFolder mounted;
  const auto limited = [&](const char* cgroup) { return processors_limited(cgroup, mounted.path()); };
  mounted.write("cpu.max", "");
  CHECK_FALSE(limited("0::/\n"));
  mounted.write("user/cpu.max", "max 100000\n");
  mounted.write("user/job/cpu.max", "max 100000\n");
  CHECK_FALSE(limited("0::/user/job\n"));
  mounted.write("user/cpu.max", "150000 100000\n");
  CHECK(limited("0::/user/job\n"));
  CHECK_FALSE(limited("0::/other\n"));
  mounted.write("cpu/cpu.cfs_quota_us", "-1\n");
  CHECK_FALSE(limited("9:name=systemd:/\n1:cpu,cpuacct:/docker\n0::/\n"));
  mounted.write("cpu/docker/cpu.cfs_quota_us", "200000\n");
  CHECK(limited("9:name=systemd:/\n1:cpu,cpuacct:/docker\n0::/\n"));
  CHECK_FALSE(limited("3:cpuset:/docker\n0::/\n"));
  CHECK_FALSE(limited(""));
}
