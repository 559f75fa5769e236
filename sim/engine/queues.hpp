// Who waits for the serial resources of a replay, and whom they serve. Private to sim/engine.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "sim/engine/agenda.hpp"
#include "sim/engine/scene.hpp"
#include "sim/plan/service_queue.hpp"

namespace simsync::detail {

/// All references must outlive it.
class Queues {
public:
  /// An instance begins. `cause`: the recorded span that left the resource; -1: it did not wait for one.
  using Begin = std::function<void(const Instance&, std::int32_t cause)>;
  Queues(const Scene& scene, Agenda& agenda, Begin begin);

  /// An instance whose predecessors are complete waits for its resource; without one it begins.
  void add(const Instance& instance);
  /// An instance leaves its resource, if it has one. `cause`: its recorded span.
  void leave(const Instance& instance, std::int32_t cause);
  /// Serves one of the queues that changed at this instant, once all that becomes ready then waits in them: so their
  /// order decides, and not that of the events. False: none is left.
  bool serve_one();
  /// From now on nobody is served.
  void stop() { stopped_ = true; }

  /// A host begins a work that takes `length`, or goes on with it. Every CpuClass::time_slice it may have to make way.
  void work(const Instance& instance, Seconds length);
  /// The thread goes to those that go first; what is left of the work comes next.
  void slice_ended(const Instance& instance);

private:
  using Service = ServiceQueue<Instance>;
  struct State {
    Service service;
    /// Ops of one instance at a time that have one waiting or in service, with the instances behind it.
    std::map<OpId, std::deque<Instance>> behind;
  };
  struct ToServe {
    State* state;
    std::int32_t cause;
  };
  static auto key_of(const Instance& i) { return std::make_tuple(i.op, i.group, i.iteration, i.copy); }
  [[nodiscard]] State& state_of(const Instance& instance);
  [[nodiscard]] State& find_state(const Instance& instance);
  void wait_in(State& state, const Instance& instance);
  /// Goes on with preempted work; false: it is new.
  bool resume(const Instance& instance);

  Scene scene_;
  Agenda& agenda_;
  Begin begin_;
  std::vector<std::vector<State>> states_;  ///< by queue and group
  std::vector<State*> state_of_;            ///< by number of the instance; null until asked for
  std::deque<ToServe> to_serve_;
  std::map<std::tuple<OpId, int, int, int>, Seconds> preempted_;  ///< what is left of works that a thread has begun
  std::int64_t sequence_ = 0;
  bool stopped_ = false;
};

}  // namespace simsync::detail
