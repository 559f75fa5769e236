#include "hw/run/awake_processors.hpp"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/scratch_file.hpp"

using namespace simsync;

TEST_CASE("a process on every processor works when nothing else wants to, as long as its owner lives") {
  std::vector<pid_t> processes;
  {
    const AwakeProcessors awake;
    processes = awake.processes();
    cpu_set_t allowed;
    REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    CHECK((processes.empty() || processes.size() == static_cast<std::size_t>(CPU_COUNT(&allowed))));
    for (const pid_t process : processes) {
      for (int i = 0; i < 2000 && sched_getscheduler(process) != SCHED_IDLE; ++i) usleep(1000);
      CHECK(sched_getscheduler(process) == SCHED_IDLE);
    }
  }
  for (const pid_t process : processes) CHECK(waitpid(process, nullptr, WNOHANG) == -1);
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
  mounted.write("cpu,cpuacct/job/cpu.cfs_quota_us", "50000\n");
  CHECK(limited("1:cpu,cpuacct:/job\n"));
}
