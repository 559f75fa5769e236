// Runs one agent's part of a Plan: counts what tasks wait for, serves queues, starts what is free to start.
#pragma once
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <vector>

#include "base/error.hpp"
#include "hw/run/buffers.hpp"
#include "hw/run/inbox.hpp"
#include "hw/run/links.hpp"
#include "hw/run/measurement.hpp"
#include "hw/run/rank_device.hpp"
#include "hw/run/worker_threads.hpp"
#include "sim/plan/countdown.hpp"
#include "sim/plan/service_queue.hpp"

namespace simsync {

struct ExecutorOptions {
  AgentId self = 0;
  int iterations = 13;
  int recorded = 3;         ///< the last so many iterations, op by op
  double slowdown = 1.0;    ///< of this rank's device: layer times are multiplied by it
  double timeout_s = 30.0;  ///< longest time in which nothing happens
};

/// Without a `device.device` compute is emulated: the device is busy until a deadline, as a GPU leaves its host idle. A
/// device goes from one task to the next without the executor's own delay, because deadlines follow from deadlines.
class Executor {
public:
  Executor(const Roles& roles, const ExecutorOptions& options, Inbox& inbox, Links& links, Buffers& buffers,
           const DeviceOfRank& device);
  /// All iterations. @throws RunError, WrongResult.
  AgentRecord run();

private:
  struct Waiting {
    std::int32_t task;
    int iteration;
    double ready;
  };
  using Service = ServiceQueue<Waiting>;
  struct Iteration {
    std::vector<double> ready;  ///< by task: when the last of what it waits for ended
    std::vector<char> done;     ///< by task
    std::int64_t left = 0;      ///< tasks not started, instances not ended here, transfers not asked for
  };
  struct Timer {
    double at;
    Instance instance;
    int iteration;
    bool operator>(const Timer& other) const { return at > other.at; }
  };

  [[nodiscard]] const Op& op_of(const Instance& i) const { return roles_.op(i); }
  Iteration& iteration(int k);
  void handle(const Event& event);
  /// Tasks here that waited for it.
  void release(const Instance& ended, int iteration, double at);
  void ready(std::int32_t task, int iteration, double at);
  void serve(QueueId queue);
  [[nodiscard]] static Service::Load load_of(const Op& op);
  void leave_queue(const Instance& instance);
  void start(const Instance& instance, int iteration, double at);
  void start_host_work(const Instance& instance, int iteration, double at);
  void start_compute(const Instance& instance, int iteration, double at);
  void start_copy(const Instance& instance, int iteration);
  void start_transfer(const Instance& instance, int iteration);
  void send_bytes(const Instance& instance, int iteration);
  void start_collective(const Instance& instance, int iteration);
  void ended(const Instance& instance, int iteration, double at);
  void count_off(int iteration, std::int64_t parts = 1);
  /// The iteration that this rank has ended: its own, or the newest, where others did not wait for it.
  int catch_up(const Instance& ended, int iteration);
  /// What `rank` does here from its step `from`, which it has ended, to the newest one counts as done.
  void leave_out(int rank, int from, int newest);
  void hear_of_step(const Instance& ended, int iteration);
  void note_start(const Instance& instance, int iteration, double at);
  [[nodiscard]] bool noted(int iteration) const { return iteration + options_.recorded >= options_.iterations; }
  /// The iteration that is not timed and compares everything.
  [[nodiscard]] bool last(int iteration) const { return iteration + 1 == options_.iterations; }
  std::string cause_of(const Event& failure);
  void run_iterations();
  [[nodiscard]] std::string waiting_for() const;
  void work(WorkerThreads& threads, const Instance& instance, int iteration, std::function<void()> job);

  const Roles& roles_;
  ExecutorOptions options_;
  Inbox& inbox_;
  Links& links_;
  Buffers& buffers_;
  CollectiveBackend* collectives_;
  RankDevice* device_;
  Duties duties_;
  std::vector<std::unique_ptr<Iteration>> iterations_;
  std::vector<Service> queues_;
  Countdown countdown_;  ///< by task
  std::int64_t sequence_ = 0;
  double device_free_ = 0.0;  ///< when the device has done what it was given
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  int finished_ = 0;           ///< iterations that have ended here
  int newest_ = -1;            ///< the last ProgressPolicy::global_step that this agent knows of
  std::vector<int> ended_by_;  ///< server: the last iteration that each rank has ended
  AgentRecord record_;
  std::map<std::pair<int, Instance>, double> started_;
  std::map<OpId, std::unique_ptr<WorkerThreads>> concurrent_;  ///< one thread per collective that has no queue
  std::map<QueueId, std::unique_ptr<WorkerThreads>> streams_;  ///< one thread per queue that has collectives
  std::unique_ptr<WorkerThreads> server_;
  std::unique_ptr<WorkerThreads> compute_;  ///< with a device
  std::unique_ptr<WorkerThreads> copies_;   ///< with a device
};

}  // namespace simsync
