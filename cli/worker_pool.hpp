// Work spread over processes (SimGrid allows one engine per process).
#pragma once
#include <cstddef>
#include <functional>
#include <string>

namespace simsync {

/// Of this machine, at least 1 and at most 256.
int processors();

/// Calls `work(i)` for i = 0 ... count-1 in `jobs` child processes, each of which takes the next i when it has done
/// one, and hands the texts to `done` in the order of i, each as soon as it and all before it are there. With one job
/// everything runs in this process, unless there is a `stop`.
/// With `stop`, which is asked some times a second, even one job runs in a child process, so that a long one need not
/// be waited for: when it says true, the children are ended.
/// @return false when it was stopped before the last one was done.
/// @throws WorkerError for the first i whose `work` throws in a child, CapabilityError when a child ends early.
bool run_in_processes(std::size_t count, int jobs, const std::function<std::string(std::size_t)>& work,
                      const std::function<void(std::size_t, const std::string&)>& done,
                      const std::function<bool()>& stop = {});

}  // namespace simsync
