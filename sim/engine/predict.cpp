#include "sim/engine/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "models/reader.hpp"
#include "platforms/calibration.hpp"
#include "platforms/reader.hpp"
#include "sim/engine/interval.hpp"
#include "sim/plan/compile.hpp"
#include "strategies/reader.hpp"

namespace simsync {
namespace {

/// `--set` sorted by what it is for.
struct Settings {
  std::optional<Seconds> step_time;
  std::optional<std::string> precision;
  std::string profile = "auto";
  std::uint64_t seed = 1;
  std::vector<int> placement;
  std::optional<double> straggler;
  ReplayOptions options;
  std::map<std::string, std::string> strategy;
  std::vector<std::pair<std::string, std::string>> cluster;
};

const std::vector<std::pair<std::string, Fidelity>>& fidelity_names() {
  static const std::vector<std::pair<std::string, Fidelity>> kNames{
      {"auto", Fidelity::Auto}, {"steps", Fidelity::Steps}, {"fluid", Fidelity::Fluid}, {"folded", Fidelity::Folded}};
  return kNames;
}

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

Fidelity read_fidelity(const std::string& value) {
  std::vector<std::string> names;
  for (const auto& [name, fidelity] : fidelity_names()) {
    if (name == value) return fidelity;
    names.push_back(name);
  }
  wrong_value("fidelity", value, fmt::format("one of {}", fmt::join(names, ", ")), did_you_mean(value, names));
}

/// Reads one setting; false when the key is none of the program's own.
bool read_own(Settings& s, const std::string& key, const std::string& value) {
  constexpr std::string_view kStrategy = "strategy.";
  if (key == "step_time") {
    s.step_time = parse_seconds(value);
    if (!s.step_time || s.step_time->value() <= 0.0)
      wrong_value(key, value, "a time above 0 with its unit, such as 250ms");
  } else if (key == "precision") {
    const auto& known = known_precisions();
    if (std::find(known.begin(), known.end(), value) == known.end())
      wrong_value(key, value, fmt::format("one of {}", fmt::join(known, ", ")), did_you_mean(value, known));
    s.precision = value;
  } else if (key == "profile") {
    s.profile = value;
  } else if (key == "seed") {
    s.seed = static_cast<std::uint64_t>(whole_number(key, value, 0, std::numeric_limits<std::int64_t>::max()));
  } else if (key == "iterations") {
    s.options.max_iterations = static_cast<int>(whole_number(key, value, 1, 10000));
  } else if (key == "fidelity") {
    s.options.fidelity = read_fidelity(value);
  } else if (key == "placement") {
    s.placement = read_placement(value);
  } else if (key == "straggler") {
    const auto factor = parse_number(value);
    if (!factor || *factor < 1.0 || *factor > 1000.0) wrong_value(key, value, "a slow-down factor from 1 to 1000");
    s.straggler = factor;
  } else if (key.starts_with(kStrategy)) {
    s.strategy[key.substr(kStrategy.size())] = value;
  } else {
    return false;
  }
  return true;
}

const std::vector<std::string>& own_keys() {
  static const std::vector<std::string> kKeys{"step_time",  "precision", "profile",   "seed",
                                              "iterations", "fidelity",  "placement", "straggler"};
  return kKeys;
}

Settings read_settings(const PredictRequest& request, const Cluster& cluster) {
  Settings s;
  for (const auto& [key, value] : request.settings) {
    if (read_own(s, key, value)) continue;
    auto known = parameter_keys(cluster);
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

NodeGroup& gpu_group(Cluster& cluster) {
  for (auto group = cluster.groups.rbegin(); group != cluster.groups.rend(); ++group)
    if (group->gpus > 0 && group->count > 0) return *group;
  throw PlanError(fmt::format("cluster '{}' has no GPUs", cluster.name));
}

/// Nodes with the given numbers of GPUs in place of the cluster's own; hosts without GPUs stay.
void place(Cluster& cluster, const std::vector<int>& gpus_per_node) {
  const NodeGroup pattern = gpu_group(cluster);
  std::vector<NodeGroup> groups;
  for (std::size_t i = 0; i < gpus_per_node.size(); ++i) {
    if (gpus_per_node[i] > pattern.gpus)
      throw PlanError(fmt::format("placement asks for {} GPUs on a node, a node of '{}' has {}", gpus_per_node[i],
                                  cluster.name, pattern.gpus));
    if (!groups.empty() && groups.back().gpus == gpus_per_node[i]) {
      ++groups.back().count;
      continue;
    }
    groups.push_back(pattern);
    groups.back().name = fmt::format("{}-{}", pattern.name, groups.size());
    groups.back().count = 1;
    groups.back().gpus = gpus_per_node[i];
  }
  for (const NodeGroup& group : cluster.groups)
    if (group.gpus == 0) groups.push_back(group);
  cluster.groups = std::move(groups);
}

/// The last node that takes part computes `factor` times slower.
void slow_one(Cluster& cluster, int workers, double factor) {
  int before = cluster.workers(workers).back().node;  // nodes of earlier groups are counted off
  auto group = cluster.groups.begin();
  for (; before >= group->count; ++group) before -= group->count;
  NodeGroup straggler = *group;
  straggler.name += "-straggler";
  straggler.count = 1;
  straggler.compute_slowdown *= factor;
  NodeGroup after = *group;
  after.name += "-rest";
  after.count = group->count - before - 1;
  group->count = before;
  auto at = group + 1;
  at = cluster.groups.insert(at, straggler) + 1;
  if (after.count > 0) cluster.groups.insert(at, after);
  std::erase_if(cluster.groups, [](const NodeGroup& one) { return one.count == 0; });
}

Roofline roofline_of(const DeviceClass& device, const std::string& precision) {
  const auto peak = device.peak.find(precision);
  if (peak == device.peak.end()) {
    std::vector<std::string> known;
    for (const auto& [name, rate] : device.peak) known.push_back(name);
    throw InputError(fmt::format("device '{}' has no peak rate for precision '{}'", device.name, precision),
                     fmt::format("it has {}", fmt::join(known, ", ")));
  }
  Roofline out;
  out.peak = peak->second;
  out.memory = device.memory_bandwidth;
  out.launch = device.launch;
  const auto efficiency = device.compute_efficiency.find(precision);
  if (efficiency != device.compute_efficiency.end()) out.compute_efficiency = efficiency->second;
  out.memory_efficiency = device.memory_efficiency;
  out.half_efficiency = device.half_efficiency;
  return out;
}

/// Layer times are those of `first`; nodes with another device compute slower or faster by what its roofline says.
void relate_devices(Cluster& cluster, const std::string& first, const Model& model, const std::string& precision,
                    std::int64_t batch) {
  const auto estimate = [&](const std::string& device) {
    return estimate_profile(model, roofline_of(cluster.devices.at(device), precision), batch).step();
  };
  for (NodeGroup& group : cluster.groups)
    if (group.gpus > 0 && group.device != first) group.compute_slowdown *= estimate(group.device) / estimate(first);
}

Cluster make_cluster(const PredictRequest& request, Cluster cluster, const Settings& settings, int workers) {
  for (const auto& [key, value] : settings.cluster) {
    try {
      set_parameter(cluster, key, value);
    } catch (const InputError& e) {
      Diagnostic finding = e.diagnostics().front();
      finding.message = "--set " + finding.message;
      throw InputError(std::move(finding));
    }
  }
  if (!settings.placement.empty()) {
    place(cluster, settings.placement);
    const int placed = std::accumulate(settings.placement.begin(), settings.placement.end(), 0);
    if (request.workers != placed)
      throw InputError(fmt::format("--set placement={} places {} workers, --workers says {}",
                                   fmt::join(settings.placement, ","), placed, request.workers));
  }
  cluster = grown_to(std::move(cluster), workers);
  if (settings.straggler) slow_one(cluster, workers, *settings.straggler);
  return cluster;
}

}  // namespace

Problem prepare(const PredictRequest& request) {
  constexpr int kMostWorkers = 1'000'000;
  if (request.workers < 1 || request.workers > kMostWorkers)
    throw InputError(fmt::format("--workers {}: expected a number from 1 to {}", request.workers, kMostWorkers));
  if (request.batch && (*request.batch < 1 || *request.batch > 100'000'000))
    throw InputError(fmt::format("--batch {}: expected a number from 1 to 100000000", *request.batch));
  Model model = find_model(request.model);
  Cluster preset = find_cluster(request.cluster);
  if (!request.calibration.empty()) apply(preset, load_calibration(request.calibration));
  const Settings settings = read_settings(request, preset);
  Cluster cluster = make_cluster(request, std::move(preset), settings, request.workers);
  const std::int64_t batch = request.batch.value_or(model.default_batch());
  Strategy strategy = find_strategy(request.strategy, {.model = model,
                                                       .cluster = cluster,
                                                       .workers = request.workers,
                                                       .batch = batch,
                                                       .options = settings.strategy,
                                                       .seed = settings.seed});
  const Place first = cluster.workers(request.workers).front();
  const std::string device = cluster.group_of(first.node).device;
  const std::string precision = settings.precision.value_or(cluster.precision);
  Profile profile = make_profile(model, {.device = device,
                                         .precision = precision,
                                         .batch = batch,
                                         .roofline = roofline_of(cluster.devices.at(device), precision),
                                         .step_time = settings.step_time,
                                         .profile = settings.profile});
  relate_devices(cluster, device, model, precision, batch);
  Plan plan = compile(model, profile, cluster, strategy);
  return {std::move(model),   std::move(cluster), std::move(strategy),
          std::move(profile), std::move(plan),    settings.options};
}

PredictedRow row_of(const PredictRequest& request, const Problem& problem, const Prediction& prediction) {
  PredictedRow row;
  row.model = problem.model.name();
  row.cluster = problem.cluster.name;
  row.strategy = request.strategy;
  row.mode = "sync";
  row.workers = request.workers;
  row.batch = problem.profile.batch;
  row.step_time = prediction.step;
  row.compute = prediction.compute;
  // Both are sums of many terms in different orders: what is below their last digits is nothing.
  const Seconds exposed = prediction.step - prediction.compute;
  row.exposed_comm = exposed > 1e-9 * prediction.step ? exposed : Seconds{0.0};
  row.scaling_efficiency = problem.profile.step() / prediction.step;
  const StepInterval interval = step_interval(request, problem, prediction);
  row.step_low = interval.low;
  row.step_high = interval.high;
  row.fidelity = prediction.fidelity;
  row.profile = name_of(problem.profile.source);
  row.provenance = problem.profile.provenance;
  return row;
}

PredictedRow predict(const PredictRequest& request) {
  const Problem problem = prepare(request);
  return row_of(request, problem, replay(problem.plan, problem.cluster, problem.options));
}

const std::vector<std::string>& row_header() {
  static const std::vector<std::string> kHeader{"model",
                                                "cluster",
                                                "strategy",
                                                "mode",
                                                "workers",
                                                "batch_per_worker",
                                                "step_time_s",
                                                "throughput_samples_per_s",
                                                "compute_s",
                                                "exposed_comm_s",
                                                "scaling_efficiency",
                                                "step_time_low_s",
                                                "step_time_high_s",
                                                "fidelity",
                                                "profile"};
  return kHeader;
}

std::vector<std::string> row_cells(const PredictedRow& row) {
  return {row.model,
          row.cluster,
          row.strategy,
          row.mode,
          std::to_string(row.workers),
          std::to_string(row.batch),
          format_number(row.step_time.value()),
          format_number(row.throughput()),
          format_number(row.compute.value()),
          format_number(row.exposed_comm.value()),
          format_number(row.scaling_efficiency),
          format_number(row.step_low.value()),
          format_number(row.step_high.value()),
          name_of(row.fidelity),
          row.profile};
}

}  // namespace simsync
