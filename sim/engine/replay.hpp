// One replay: which instance waits for what, when steps end, and who takes care of what has begun. Private to
// sim/engine.
#pragma once
#include <deque>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/engine/agenda.hpp"
#include "sim/engine/backup_workers.hpp"
#include "sim/engine/collective_runs.hpp"
#include "sim/engine/devices.hpp"
#include "sim/engine/engine.hpp"
#include "sim/engine/enough_steps.hpp"
#include "sim/engine/flow_network.hpp"
#include "sim/engine/folding.hpp"
#include "sim/engine/groups.hpp"
#include "sim/engine/queues.hpp"
#include "sim/engine/recorder.hpp"
#include "sim/engine/routes.hpp"
#include "sim/engine/transport.hpp"
#include "sim/plan/countdown.hpp"
#include "sim/timeline/worker_pace.hpp"

namespace simsync::detail {

class Replay {
public:
  Replay(const Plan& plan, const Cluster& cluster, const ReplayOptions& options);
  Prediction run();

private:
  struct Iteration {
    std::int64_t left = 0;                                   ///< instances not complete
    Seconds begun{std::numeric_limits<double>::infinity()};  ///< start of its first op
  };

  [[nodiscard]] const Op& op_of(const Instance& i) const { return plan_.ops[static_cast<std::size_t>(i.op)]; }
  [[nodiscard]] std::size_t number(const Instance& i) const { return groups_.number(i.op, i.group); }
  Iteration& iteration(int k);

  // The life of an instance.
  void release_roots();
  void release(const Instance& instance, std::int32_t cause);
  void tell(const Instance& waiting, std::int32_t cause);
  void drain();
  void begin(const Instance& instance, std::int32_t cause);
  void complete(const Instance& instance);
  void find_released(const Instance& ended, int iteration);
  [[nodiscard]] bool is_late(const Instance& instance);

  // What happens.
  void handle(FlowNetwork::Token token);
  void dispatch(const Pending& event);
  void instant_over();
  void report();

  // Steps.
  void count_off(int k, std::int64_t instances);
  void finish_iteration(int k);
  void end_step();
  void note_pace(const Instance& ended);
  int catch_up(const Instance& ended);
  void stop();
  void stop_when_enough();
  [[nodiscard]] double step_error() const;
  [[nodiscard]] bool is_steady(int k) const;
  [[nodiscard]] bool repeats(int k) const;
  [[nodiscard]] int expected_iterations() const;

  [[nodiscard]] Prediction result();
  void find_step(Prediction& out) const;
  void find_mean(Prediction& out) const;
  void record_into(Prediction& out);

  const Plan& plan_;
  ReplayOptions options_;
  Folding folding_;
  Groups groups_;
  Topology topology_;
  BorrowedNetwork borrowed_;
  FlowNetwork& network_;
  Routes routes_;
  Recorder recorder_;
  Scene scene_;
  Agenda agenda_;
  Transport transport_;
  Devices devices_;
  std::shared_ptr<PipelineFills> fills_;
  std::shared_ptr<CollectiveAlone> alone_;
  CollectiveRuns collectives_;
  Queues queues_;

  Countdown countdown_;
  std::vector<std::unique_ptr<Iteration>> iterations_;
  std::vector<Seconds> iteration_end_;
  std::deque<std::pair<Instance, std::int32_t>> ready_;  ///< with the span that released it
  std::vector<Instance> released_;                       ///< that wait for what has just ended
  bool draining_ = false;
  bool stopped_ = false;
  bool steady_ = false;
  bool given_up_ = false;  ///< more work than ReplayOptions::most_work
  WorkerPace pace_;
  EnoughSteps enough_;
  BackupWorkers backup_workers_;
  std::int64_t events_ = 0;
  std::int64_t completed_ = 0;  ///< instances of ops
};

}  // namespace simsync::detail
