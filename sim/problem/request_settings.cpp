#include "sim/problem/request_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "platforms/reader.hpp"

namespace simsync {

const char* name_of(Fidelity fidelity) {
  switch (fidelity) {
    case Fidelity::Auto:
      return "auto";
    case Fidelity::Steps:
      return "steps";
    case Fidelity::Fluid:
      return "fluid";
    case Fidelity::Folded:
      return "folded";
  }
  return "?";
}

const char* name_of(Solver solver) {
  return solver == Solver::Native ? "native" : "simgrid";
}

namespace detail {
namespace {

[[noreturn]] void wrong_value(const std::string& key, const std::string& value, const std::string& expected,
                              const std::string& help = {}) {
  throw InputError(fmt::format("--set {}={}: expected {}", key, value, expected), help);
}

std::int64_t whole_number(const std::string& key, const std::string& value, std::int64_t low, std::int64_t high) {
  const auto parsed = parse_integer(value);
  if (!parsed || *parsed < low || *parsed > high)
    wrong_value(key, value, fmt::format("a whole number from {} to {}", low, high));
  return *parsed;
}

std::vector<int> read_placement(const std::string& value) {
  std::vector<int> gpus;
  std::size_t at = 0;
  while (at <= value.size()) {
    const std::size_t comma = std::min(value.find(',', at), value.size());
    const auto count = parse_integer(value.substr(at, comma - at));
    if (!count || *count < 1 || *count > kMaxGpusPerNode)
      wrong_value("placement", value, "GPUs per node, such as 2,3,4,4");
    gpus.push_back(static_cast<int>(*count));
    at = comma + 1;
  }
  return gpus;
}

/// The choice that is named so.
template <typename Choice>
Choice read_choice(const std::string& key, const std::string& value, std::initializer_list<Choice> choices) {
  std::vector<std::string> names;
  for (const Choice choice : choices) {
    names.emplace_back(name_of(choice));
    if (names.back() == value) return choice;
  }
  wrong_value(key, value, fmt::format("one of {}", fmt::join(names, ", ")), did_you_mean(value, names));
}

/// With fewer, no step would be left after those that count as warm-up.
constexpr std::int64_t kLeastSteps = 5;

constexpr std::string_view kModel = "model.";

/// Reads one setting; false when the key is none of the program's own.
bool read_own(Settings& s, const std::string& key, const std::string& value) {
  if (key.starts_with(kModel)) return true;  // model_parameters() has read it
  constexpr std::string_view kStrategy = "strategy.";
  if (key == "step_time") {
    s.step_time = parse_seconds(value);
    if (!s.step_time || s.step_time->value() < 1e-9 || s.step_time->value() > 1e6)
      wrong_value(key, value, "a time from 1ns to 1000000s with its unit, such as 250ms");
  } else if (key == "precision") {
    const auto& known = known_precisions();
    if (std::find(known.begin(), known.end(), value) == known.end())
      wrong_value(key, value, fmt::format("one of {}", fmt::join(known, ", ")), did_you_mean(value, known));
    s.precision = value;
  } else if (key == "optimizer") {
    s.optimizer.optimizer = read_choice(key, value, {Optimizer::Sgd, Optimizer::Momentum, Optimizer::Adam});
  } else if (key == "master_weights") {
    if (value != "true" && value != "false") wrong_value(key, value, "true or false");
    s.optimizer.master_weights = value == "true";
  } else if (key == "fp32_gradients") {
    if (value != "true" && value != "false") wrong_value(key, value, "true or false");
    s.optimizer.fp32_gradients = value == "true";
  } else if (key == "memory") {
    if (value != "check" && value != "ignore") wrong_value(key, value, "check or ignore");
    s.ignore_memory = value == "ignore";
  } else if (key == "profile") {
    s.profile = value;
  } else if (key == "seed") {
    s.seed = static_cast<std::uint64_t>(whole_number(key, value, 0, std::numeric_limits<std::int64_t>::max()));
  } else if (key == "iterations") {
    s.options.max_iterations = static_cast<int>(whole_number(key, value, 1, 10000));
  } else if (key == "steps_per_worker") {
    s.options.steps_per_worker = static_cast<int>(whole_number(key, value, kLeastSteps, 100000));
  } else if (key == "step_variation") {
    const auto share = parse_number(value);
    if (!share || *share < 0.0 || *share > 0.5) wrong_value(key, value, "a coefficient of variation from 0 to 0.5");
    s.step_variation = *share;
  } else if (key == "compute_error" || key == "network_error") {
    const auto deviation = parse_number(value);
    if (!deviation || *deviation < 0.0 || *deviation > 1.0) wrong_value(key, value, "a standard deviation from 0 to 1");
    (key == "compute_error" ? s.compute_error : s.network_error) = *deviation;
  } else if (key == "fidelity") {
    s.options.fidelity = read_choice(key, value, {Fidelity::Auto, Fidelity::Steps, Fidelity::Fluid, Fidelity::Folded});
  } else if (key == "solver") {
    s.options.solver = read_choice(key, value, {Solver::SimGrid, Solver::Native});
  } else if (key == "placement") {
    s.placement = read_placement(value);
  } else if (key == "straggler") {
    const auto factor = parse_number(value);
    if (!factor || *factor < 1.0 || *factor > 1000.0) wrong_value(key, value, "a slow-down factor from 1 to 1000");
    s.straggler = factor;
  } else if (key == "variable_scale") {
    const auto factor = parse_number(value);
    if (!factor || *factor < 1e-6 || *factor > 1000.0) wrong_value(key, value, "a factor from 0.000001 to 1000");
    s.variable_scale = factor;
  } else if (key.starts_with(kStrategy)) {
    s.strategy[key.substr(kStrategy.size())] = value;
  } else {
    return false;
  }
  return true;
}

const std::vector<std::string>& own_keys() {
  static const std::vector<std::string> kKeys{
      "step_time",     "precision",     "profile",   "seed",           "iterations",       "fidelity",
      "solver",        "placement",     "straggler", "variable_scale", "steps_per_worker", "step_variation",
      "compute_error", "network_error", "optimizer", "master_weights", "fp32_gradients",   "memory"};
  return kKeys;
}

}  // namespace

ModelParameters model_parameters(const std::vector<std::pair<std::string, std::string>>& settings) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  ModelParameters out;
  for (const auto& [key, value] : settings)
    if (key.starts_with(kModel)) out[key.substr(kModel.size())] = whole_number(key, value, 1, kMost);
  return out;
}

Settings read_settings(const PredictRequest& request, const Cluster& cluster) {
  Settings s;
  for (const auto& [key, value] : request.settings) {
    if (read_own(s, key, value)) continue;
    auto known = settable_keys(cluster);
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      known.insert(known.end(), own_keys().begin(), own_keys().end());
      std::string help = did_you_mean(key, known);
      if (help.empty()) help = "'simsync list settings' shows the keys that this command knows";
      throw InputError(fmt::format("--set {}={}: unknown key '{}'", key, value, key), help);
    }
    s.cluster.emplace_back(key, value);
  }
  return s;
}

}  // namespace detail
}  // namespace simsync
