// Keeps this machine's processors from falling asleep.
#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace simsync {

/// While it lives, a process on each processor works at the lowest priority of its control group (SCHED_IDLE). A
/// processor that sleeps is late when a timer or a message wakes it: a virtual one was given to another machine
/// meanwhile, and comes back when that one's turn ends. Does nothing where processors_limited(): these processes would
/// use up what others are to have. The calling process must have a single thread.
class AwakeProcessors {
public:
  AwakeProcessors();
  ~AwakeProcessors();
  AwakeProcessors(const AwakeProcessors&) = delete;
  AwakeProcessors& operator=(const AwakeProcessors&) = delete;

  /// The processes; none where a control group or the system does not allow them.
  [[nodiscard]] const std::vector<pid_t>& processes() const { return processes_; }

private:
  std::vector<pid_t> processes_;
};

/// Whether a control group limits the processors' time of a process: `cpu.max` of version 2, `cpu.cfs_quota_us` of
/// version 1, of its group or one above.
/// @param proc_cgroup text of /proc/PID/cgroup
/// @param mounted     where the control groups are
bool processors_limited(const std::string& proc_cgroup, const std::filesystem::path& mounted = "/sys/fs/cgroup");

}  // namespace simsync
