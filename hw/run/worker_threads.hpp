// Threads that do what would hold up the executor: collectives and the work of servers.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace simsync {

/// Does jobs in the order of arrival, `threads` at a time. The destructor lets the running ones finish.
class WorkerThreads {
public:
  explicit WorkerThreads(int threads);
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;
  void post(std::function<void()> job);

private:
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace simsync
