// From names and numbers, as a user gives them, to a plan on a cluster. Simulator and real runs start from here.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/profile.hpp"
#include "platforms/cluster.hpp"
#include "sim/plan/plan.hpp"
#include "sim/problem/inputs.hpp"
#include "sim/problem/network_basis.hpp"
#include "sim/problem/rank_memory.hpp"
#include "sim/problem/replay_options.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

/// One question, as `simsync predict` takes it.
struct PredictRequest {
  std::string model;     ///< name of the zoo or path
  std::string cluster;   ///< preset name or path
  std::string strategy;  ///< builder, preset or path
  int workers = 1;
  std::optional<std::int64_t> batch;  ///< per worker and step; the model's default when absent
  /// `--set key=value` in the user's order. Keys: `step_time`, `precision`, `profile`, `seed`, `fidelity`,
  /// `iterations`, `placement` (GPUs on each of the cluster's GPU nodes: `2,3,4,4`), `straggler` (one node computes so
  /// many times slower), `variable_scale` (bytes of the variables times that, layer times as they are),
  /// `step_variation` (the coefficient of variation of the compute of workers' steps), `steps_per_worker` (how many are
  /// simulated where they vary), `compute_error` and `network_error` (how far the compute of a step and the time of
  /// communication may be off, as standard deviations of their logarithms), `strategy.<option>`, and every key of
  /// set_parameter
  /// (`link.ethernet.per_flow_cap`, ...).
  std::vector<std::pair<std::string, std::string>> settings;
  /// Path of a calibration that is laid over the cluster before the settings; empty: none.
  std::string calibration;
  /// Samples of all replicas in a step, in place of `batch`: how many a replica takes follows from the strategy.
  std::optional<std::int64_t> global_batch = {};
};

/// What the user says of how far the prediction's inputs may be off: standard deviations of logarithms. Absent: the
/// built-in numbers hold.
struct SaidErrors {
  std::optional<double> compute;
  std::optional<double> network;
};

/// Everything that a request names, read and decided.
struct Problem {
  Model model;
  Cluster cluster;
  Strategy strategy;
  Profile profile;
  Plan plan;
  ReplayOptions options;
  SaidErrors errors;
  NetworkBasis network = NetworkBasis::File;
  OptimizerState optimizer;
  RankMemory memory;
  bool ignore_memory = false;      ///< predict it although it does not fit
  std::vector<std::string> notes;  ///< what was decided otherwise than the request may suggest, for people

  [[nodiscard]] std::int64_t samples() const { return profile.micro_steps * profile.batch; }  ///< of a rank in a step
};

/// `key=value`, split at the first '='; nothing without one or without a key.
std::optional<std::pair<std::string, std::string>> parse_setting(const std::string& text);
/// Settings in one text: `key=value` sorted by key and joined by ';', of a key given twice the last.
std::string settings_text(const std::vector<std::pair<std::string, std::string>>& settings);
/// The inverse; nothing when a part has no '=' or no key. An empty text is no settings.
std::optional<std::vector<std::pair<std::string, std::string>>> parse_settings_text(const std::string& text);

/// Makes the plan anew after a change of the other parts. @throws PlanError.
void compile_again(Problem& problem);
/// The same question for processes that run it: what a thread takes to wake up (`dispatch_latency`) is not in the plan,
/// because theirs does so by itself. @throws PlanError.
Problem for_real_run(Problem problem);

/// Reads the files, builds the strategy and compiles the plan. @throws InputError, PlanError.
Problem prepare(const PredictRequest& request);
/// The same, reading only files that `inputs` does not have yet.
Problem prepare(const PredictRequest& request, Inputs& inputs);

}  // namespace simsync
