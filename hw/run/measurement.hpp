// What a real run showed.
#pragma once
#include <string>
#include <vector>

#include "base/units.hpp"
#include "hw/run/roles.hpp"

namespace simsync {

/// One instance as it really ran; seconds of one clock, `start` of a transfer at its source.
struct MeasuredSpan {
  Instance instance;
  int iteration = 0;
  double start = 0.0;
  double end = 0.0;
};

/// The value below which `share` of `times` lie, interpolated. `times` must not be empty.
Seconds quantile_of(std::vector<Seconds> times, double share);

struct Measurement {
  /// Every measured step, warm-up left out. Of asynchronous ranks: what all together take for as many steps as
  /// there are ranks, one such batch after the other, until the first rank has ended its last step.
  std::vector<Seconds> steps;
  /// The same steps without what passes before anything of them starts: from the first start of an op to the end, where
  /// that start comes after the end of the step before.
  std::vector<Seconds> active;
  std::vector<Seconds> timed;       ///< of the same steps: what the timed ops of the slowest agent took together
  std::vector<MeasuredSpan> spans;  ///< of the last two iterations that are timed, by start
  std::vector<Seconds> rank_steps;  ///< of asynchronous ranks: the mean step of each; else empty
  std::vector<double> staleness;    ///< see WorkerPace; empty where steps do not wait for late ranks
  bool has_backups = false;         ///< steps went on without late ranks (ProgressPolicy::global_step)
  bool vary = false;                ///< ranks drew how long their steps take (Plan::steps_vary)
  std::int64_t checked = 0;         ///< results that were compared with what they should be
  double processors = 0.0;          ///< that all processes together kept busy on average
  double stolen = 0.0;              ///< of processes of this machine: see StolenTime

  /// The value below which `share` of the steps lie, interpolated. `steps` must not be empty.
  [[nodiscard]] Seconds quantile(double share) const { return quantile_of(steps, share); }
  /// The median step, or the mean of those that vary; of asynchronous ranks the time in which each ends one on
  /// average, by their rates together.
  [[nodiscard]] Seconds step() const;
  /// Of the mean of steps that vary, relative: see relative_error. 0: step() is a median.
  [[nodiscard]] double step_error() const;
};

/// What one agent notes while it runs.
struct AgentRecord {
  std::vector<double> iteration_start;   ///< when this agent started its first instance; negative: it starts none
  std::vector<double> iteration_end;     ///< when the last instance that ends at this agent ended
  std::vector<double> step_ends;         ///< when this rank ended its steps, where the plan has a `step_end`
  std::vector<double> global_step_ends;  ///< see ProgressPolicy::global_step, at the agent that ends it
  std::vector<double> timed;             ///< what this agent's timed ops took together, from start to end of each
  std::vector<MeasuredSpan> spans;       ///< start or end is negative when it is not this agent that knows it
  std::int64_t checked = 0;
  double elapsed = 0.0;         ///< s from its first op to its last
  double processor_time = 0.0;  ///< s that this process computed meanwhile, all threads
};

/// Text for the wire and back. @throws std::runtime_error for a text that is none.
std::string to_text(const AgentRecord& record);
AgentRecord agent_record(const std::string& text);
std::string to_text(const Measurement& measurement);
Measurement measurement(const std::string& text);

/// `vary` as in Measurement. An iteration ends when it has ended everywhere; the first `warm_up` steps are left out,
/// and the last one, in which everything is compared. Of asynchronous ranks the first fifth of all steps is left
/// out, whatever `warm_up` is, and what comes after the first rank has ended its last step.
Measurement merge(const std::vector<AgentRecord>& records, int warm_up, bool vary);

}  // namespace simsync
