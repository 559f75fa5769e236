// The collectives of a replay that are under way, in whichever fidelity was chosen. Private to sim/engine.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "sim/engine/devices.hpp"
#include "sim/engine/recorder.hpp"
#include "sim/engine/routes.hpp"
#include "sim/engine/transport.hpp"
#include "sim/plan/collective_alone.hpp"
#include "sim/plan/routed_collective.hpp"

namespace simsync::detail {

/// All references must outlive it.
class CollectiveRuns {
public:
  struct Parts {
    Scene scene;
    const Folding& folding;
    Routes& routes;
    Agenda& agenda;
    Transport& transport;
    Devices& devices;
    Recorder& recorder;
    PipelineFills& fills;
    CollectiveAlone* alone = nullptr;  ///< knows their times, if hops are not simulated (Folding::collectives_alone)
  };
  using Done = std::function<void(const Instance&)>;

  /// `done` is called when a collective has ended.
  CollectiveRuns(const Parts& parts, Done done) : parts_(parts), done_(std::move(done)) {}

  void start(const Instance& instance);
  void setup_ended(int run);
  void start_hop(int run, int hop);
  void message_sent(int run, int hop);
  void message_arrived(int run, int hop);
  void ended_alone(const Instance& instance);
  /// Collectives whose hops were not simulated.
  [[nodiscard]] std::int64_t timed_alone() const { return timed_alone_; }

private:
  struct Run {
    Instance instance;
    const RoutedSchedule* schedule = nullptr;
    double payload = 0.0;
    double ratio = 1.0;              ///< Collective::ratio
    int left = 0;                    ///< hops not ended
    std::vector<std::int32_t> sent;  ///< messages by hop (steps), or started (fluid)
    std::vector<std::int32_t> arrived;
    std::vector<Seconds> start_up;      ///< by hop (fluid)
    std::vector<std::int32_t> blocked;  ///< stages left before a hop may start
    std::vector<char> busy;
  };

  [[nodiscard]] Run& at(int run) { return *runs_[static_cast<std::size_t>(run)]; }
  [[nodiscard]] bool by_message() const { return parts_.folding.fidelity == Fidelity::Steps; }
  /// `simulated`: the number of the group among those that are simulated.
  const RoutedSchedule& schedule_for(const Op& op, int simulated);
  void start_alone(const Instance& instance);
  void start_later(int run, int hop);
  void try_message(int run, int hop);
  void hop_ended(int run, int hop);
  void close(int run);
  void occupy_devices(const Instance& instance, int change);
  std::int32_t note_hop(int run, int hop, int rounds);

  Parts parts_;
  Done done_;
  std::map<ScheduleKey, std::unique_ptr<RoutedSchedule>> schedules_;
  std::int64_t timed_alone_ = 0;
  std::vector<std::unique_ptr<Run>> runs_;
  std::vector<int> free_;
};

}  // namespace simsync::detail
