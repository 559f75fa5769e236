#include "cli/trial_basis.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>

#include "base/file.hpp"
#include "base/parse_units.hpp"
#include "base/scale.hpp"
#include "base/sha256.hpp"
#include "strategies/builders.hpp"

namespace simsync {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;
using Value = std::optional<std::string>;  ///< of a setting; none: it is not given

const std::string kStrategyPrefix = "strategy.";

/// Settings that leave the prediction as it is but for rounding, or that say which strategy it is of, which features
/// say, too.
bool counts(const std::string& key) {
  static const std::set<std::string> kOfReplay{"solver",     "memory", "compute_error",    "network_error",
                                               "iterations", "seed",   "steps_per_worker", "fidelity"};
  if (key == "strategy.micro_steps" || key == "strategy.recompute") return true;
  return !key.starts_with(kStrategyPrefix) && !kOfReplay.contains(key);
}

Value value_of(const Settings& settings, const std::string& key) {
  Value out;  // of a key given twice the last
  for (const auto& [name, value] : settings)
    if (name == key) out = value;
  return out;
}

/// `0.1s` and `100ms` are.
bool are_equal(const Value& a, const Value& b) {
  if (a == b) return true;
  if (!a || !b) return false;
  const auto left = parse_scaled(*a);
  const auto right = parse_scaled(*b);
  constexpr double kRounding = 1e-12;
  return left && right && left->dimension == right->dimension &&
         std::abs(left->value - right->value) <= kRounding * std::abs(left->value);
}

std::string text_of(const std::string& key, const Value& value) {
  return value ? fmt::format("{}={}", key, *value) : fmt::format("no {}", key);
}

std::string digest_of(const std::string& calibration) {
  return calibration.substr(calibration.rfind(' ') + 1);
}

void add_settings(const CorrectionBasis& basis, const PredictRequest& request, std::vector<std::string>& out) {
  std::vector<Settings> learned;
  std::set<std::string> keys;
  for (const std::string& text : basis.settings) learned.push_back(parse_settings_text(text).value_or(Settings{}));
  for (const Settings& one : learned)
    for (const auto& [key, value] : one) keys.insert(key);
  for (const auto& [key, value] : request.settings) keys.insert(key);
  for (const std::string& key : keys) {
    if (!counts(key)) continue;
    const Value asked = value_of(request.settings, key);
    const bool is_known = std::any_of(learned.begin(), learned.end(),
                                      [&](const Settings& one) { return are_equal(value_of(one, key), asked); });
    if (is_known) continue;
    std::set<std::string> texts;
    for (const Settings& one : learned) texts.insert(text_of(key, value_of(one, key)));
    out.push_back(
        fmt::format("its trials had {}, this prediction has {}", fmt::join(texts, " or "), text_of(key, asked)));
  }
}

void add_calibration(const CorrectionBasis& basis, const PredictRequest& request, std::vector<std::string>& out) {
  const std::string asked = basis_of(request).calibration;
  const bool is_known = std::any_of(basis.calibrations.begin(), basis.calibrations.end(),
                                    [&](const std::string& one) { return digest_of(one) == digest_of(asked); });
  if (is_known) return;
  const auto text = [](const std::string& one) {
    return one.empty() ? std::string("without a calibration") : "with the calibration " + one;
  };
  std::vector<std::string> texts;
  for (const std::string& one : basis.calibrations) texts.push_back(text(one));
  out.push_back(
      fmt::format("its trials were predicted {}, this prediction is {}", fmt::join(texts, " or "), text(asked)));
}

/// What a habit is in this strategy.
std::string habit_of(const GraphStrategy& graph, const std::string& option) {
  const auto truth = [](bool value) { return value ? std::string("true") : std::string("false"); };
  if (option == "shared_process") return truth(graph.shared_process);
  if (option == "parallel_host_ops") return truth(graph.parallel_host_ops);
  if (option == "servers_overlap_in_node") return format_number(graph.servers_overlap.in_node);
  SIMSYNC_ASSERT(option == "servers_overlap_between_nodes");
  return format_number(graph.servers_overlap.between_nodes);
}

bool has_servers(const Strategy& strategy) {
  for (const VariableStrategy& entry : strategy.variables)
    for (const Shard& shard : entry.shards)
      if (std::holds_alternative<PsSynchronizer>(shard.synchronizer)) return true;
  return false;
}

/// Of trials that this program ran: what servers do there and not here. A builder without such an option does it in
/// both.
void add_habits(const PredictRequest& request, const Problem& problem, std::vector<std::string>& out) {
  if (!has_servers(problem.strategy)) return;
  const auto builders = known_builders();
  const bool is_builder = std::find(builders.begin(), builders.end(), request.strategy) != builders.end();
  std::vector<std::string> there;
  std::vector<std::string> here;
  for (const auto& [option, value] : habits_of_runner()) {
    const std::string now = habit_of(problem.strategy.graph, option);
    if (now == value || (is_builder && !has_option(request.strategy, option))) continue;
    there.push_back(fmt::format("{}={}", option, value));
    here.push_back(fmt::format("{}={}", option, now));
  }
  if (!here.empty())
    out.push_back(
        fmt::format("its trials ran with {}; this strategy has {}", fmt::join(there, ", "), fmt::join(here, ", ")));
}

template <class Number>
void add_number(const std::set<Number>& learned, Number asked, const std::string& what, std::vector<std::string>& out) {
  if (learned.empty() || learned.contains(asked)) return;
  out.push_back(fmt::format("its trials had {} {}, this prediction has {}", fmt::join(learned, ", "), what, asked));
}

}  // namespace

const std::map<std::string, std::string>& habits_of_runner() {
  static const std::map<std::string, std::string> kHabits{{"shared_process", "false"},
                                                          {"parallel_host_ops", "false"},
                                                          {"servers_overlap_in_node", "1"},
                                                          {"servers_overlap_between_nodes", "1"}};
  return kHabits;
}

TrialBasis basis_of(const PredictRequest& request, const std::string& runner) {
  constexpr std::size_t kDigits = 12;
  TrialBasis out{.settings = settings_text(request.settings), .calibration = {}, .runner = runner};
  if (!request.calibration.empty())
    out.calibration = fmt::format("{} {}", std::filesystem::path(request.calibration).filename().string(),
                                  sha256(read_file(request.calibration)).substr(0, kDigits));
  return out;
}

PredictRequest as_learned(const SavedCorrection& correction, PredictRequest request, Inputs& inputs) {
  const bool is_own = correction.basis && correction.basis->runners == std::set<std::string>{kOwnRunner};
  if (!is_own || !correction.clusters.contains(inputs.cluster(request.cluster).name)) return request;
  const auto add = [&](const std::string& key, const std::string& value) {
    if (!value_of(request.settings, key)) request.settings.emplace_back(key, value);
  };
  for (const auto& [option, value] : habits_of_runner())
    if (has_option(request.strategy, option)) add(kStrategyPrefix + option, value);
  add(kIdleHosts.first, kIdleHosts.second);
  return request;
}

std::vector<std::string> differences(const SavedCorrection& correction, const PredictRequest& request,
                                     const Problem& problem) {
  std::vector<std::string> out;
  if (!correction.clusters.contains(problem.cluster.name))
    out.push_back(fmt::format("learned on cluster '{}', used for '{}'", fmt::join(correction.clusters, ", "),
                              problem.cluster.name));
  if (!correction.models.contains(problem.model.name()))
    out.push_back(fmt::format("learned from runs of {}; for other models it may do more harm than good",
                              fmt::join(correction.models, ", ")));
  add_number(correction.workers, request.workers, "workers", out);
  if (correction.models.contains(problem.model.name()))
    add_number(correction.batches, problem.samples(), "samples per worker", out);
  if (!correction.basis) {
    out.emplace_back(
        "it does not say which settings and calibration its trials had: it was learned from a table of an "
        "older version");
    return out;
  }
  add_settings(*correction.basis, request, out);
  add_calibration(*correction.basis, request, out);
  if (correction.basis->runners == std::set<std::string>{kOwnRunner}) add_habits(request, problem, out);
  return out;
}

}  // namespace simsync
