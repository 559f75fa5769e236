#include "models/profile_file.hpp"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <sstream>
#include <unordered_map>

#include "base/csv.hpp"
#include "base/error.hpp"
#include "base/file.hpp"

namespace simsync::detail {
namespace {

constexpr double kMicrosecond = 1e-6;
constexpr double kLongestSeconds = 1e6;
constexpr double kMostSteps = 100'000;

std::string optional_text(yaml::Mapping& fields, const std::string& key) {
  const yaml::Node node = fields.optional(key);
  return node ? node.text() : std::string{};
}

Seconds time_of(const CsvTable& table, std::size_t row, const std::string& column) {
  const auto micros = table.number(row, column);
  if (!micros) table.refuse(row, fmt::format("column '{}' is empty", column));
  const double seconds = *micros * kMicrosecond;
  if (seconds < 0.0 || seconds > kLongestSeconds)
    table.refuse(row, fmt::format("column '{}' is out of range: {} us", column, *micros));
  return Seconds{seconds};
}

/// `layer.*.fc` matches `layer.7.fc`; a pattern has one star.
bool matches(const std::string& pattern, const std::string& name) {
  const auto star = pattern.find('*');
  if (star == std::string::npos) return pattern == name;
  const std::string head = pattern.substr(0, star);
  const std::string tail = pattern.substr(star + 1);
  return name.size() >= head.size() + tail.size() && name.starts_with(head) && name.ends_with(tail);
}

void add(LayerTime& sum, Seconds forward, Seconds backward) {
  if (sum.forward.value() < 0.0) sum = {};
  sum.forward += forward;
  sum.backward += backward;
}

/// Names of a model's layers, for rows to find them.
class LayerNames {
public:
  explicit LayerNames(const Model& model) : model_(model) {
    for (LayerId id = 0; id < model.layer_count(); ++id) ids_.emplace(model.layer(id).name, id);
  }
  [[nodiscard]] std::vector<LayerId> find(const CsvTable& table, std::size_t row, const std::string& pattern) const {
    std::vector<LayerId> found;
    if (pattern.find('*') == std::string::npos) {
      if (const auto it = ids_.find(pattern); it != ids_.end()) found.push_back(it->second);
    } else {
      for (LayerId id = 0; id < model_.layer_count(); ++id) {
        if (matches(pattern, model_.layer(id).name)) found.push_back(id);
      }
    }
    if (!found.empty()) return found;
    std::vector<std::string> known;
    for (const auto& [name, id] : ids_) known.push_back(name);
    table.refuse(row, fmt::format("model '{}' has no layer '{}'", model_.name(), pattern),
                 did_you_mean(pattern, known));
  }

private:
  const Model& model_;
  std::unordered_map<std::string, LayerId> ids_;
};

/// Time of one row over the layers it names together, in proportion to their estimates.
void share(std::vector<LayerTime>& times, const std::vector<LayerId>& ids, const std::vector<LayerTime>& estimate,
           const LayerTime& whole) {
  LayerTime sum;
  for (const LayerId id : ids) add(sum, estimate[id].forward, estimate[id].backward);
  const double count = static_cast<double>(ids.size());
  for (const LayerId id : ids) {
    const double forward = sum.forward.value() > 0.0 ? estimate[id].forward / sum.forward : 1.0 / count;
    const double backward = sum.backward.value() > 0.0 ? estimate[id].backward / sum.backward : 1.0 / count;
    add(times[id], forward * whole.forward, backward * whole.backward);
  }
}

std::vector<LayerTime> no_times(const Model& model) {
  return std::vector<LayerTime>(model.layer_count(), LayerTime{Seconds{-1.0}, Seconds{-1.0}});
}

/// Adds what one row says about the layers that it names.
void read_row(std::vector<LayerTime>& times, const CsvTable& table, std::size_t row, const LayerNames& names,
              const std::vector<LayerTime>& estimate) {
  const LayerTime whole{time_of(table, row, "forward_us"), time_of(table, row, "backward_us")};
  std::istringstream cell(table.cell(row, "layer"));
  std::vector<LayerId> together;
  std::string pattern;
  while (cell >> pattern) {
    const auto found = names.find(table, row, pattern);
    if (pattern.find('*') == std::string::npos) {
      together.push_back(found.front());
    } else {
      for (const LayerId id : found) add(times[id], whole.forward, whole.backward);
    }
  }
  if (pattern.empty()) table.refuse(row, "column 'layer' is empty");
  share(times, together, estimate, whole);
}

/// The step that a row belongs to; 1 where the table has no such column.
std::size_t step_of(const CsvTable& table, std::size_t row) {
  if (!table.has("step")) return 1;
  const double step = table.number(row, "step").value_or(0.0);
  if (step < 1.0 || step > kMostSteps || step != std::floor(step))
    table.refuse(row, fmt::format("column 'step': expected a whole number from 1 to {}", kMostSteps));
  return static_cast<std::size_t>(step);
}

}  // namespace

std::string find_manifest(const std::string& profile) {
  const std::filesystem::path path(profile);
  if (path.extension() == ".csv") {
    std::string manifest = std::filesystem::path(path).replace_extension(".yaml").string();
    if (std::filesystem::exists(path) && !std::filesystem::exists(manifest))
      throw InputError(fmt::format("{}: its manifest {} is missing", profile, manifest),
                       "it says which model, device and batch were timed (models/README.md)");
    return manifest;
  }
  return resolve_name(profile, kProfilesRoom, ".yaml", "profile");
}

Manifest load_manifest(const std::string& path) {
  const auto document = yaml::Document::load(path);
  Manifest manifest;
  manifest.path = path;
  manifest.name = std::filesystem::path(path).stem().string();
  {
    auto fields = document.root().mapping();
    (void)fields.require("schema").choice({kProfileSchema});
    manifest.model = fields.require("model").text();
    manifest.device = fields.require("device").text();
    const yaml::Node precision = fields.require("precision");
    const std::vector<std::string> precisions{"fp32", "tf32", "amp", "fp16", "bf16"};
    manifest.precision = precisions[precision.choice(precisions)];
    manifest.batch = fields.require("batch").integer(1, kLargestBatch);
    manifest.framework = fields.require("framework").text();
    manifest.source = fields.require("source").text();
    (void)optional_text(fields, "license");
    (void)optional_text(fields, "note");
    fields.maybe("update", [&](const yaml::Node& n) { manifest.update = n.seconds({0.0, kLongestSeconds}); });
    fields.maybe("set", [&](const yaml::Node& n) { manifest.settings = read_settings(n); });
    const std::string table = optional_text(fields, "table");
    const auto folder = std::filesystem::path(path).parent_path();
    manifest.table = (folder / (table.empty() ? manifest.name + ".csv" : table)).string();
  }
  document.finish();
  return manifest;
}

std::vector<std::vector<LayerTime>> load_times(const Manifest& manifest, const Model& model,
                                               const std::vector<LayerTime>& estimate) {
  const CsvTable table = CsvTable::load(manifest.table);
  const LayerNames names(model);
  std::map<std::size_t, std::vector<LayerTime>> steps;
  for (std::size_t row = 0; row < table.size(); ++row) {
    auto& times = steps.try_emplace(step_of(table, row), no_times(model)).first->second;
    read_row(times, table, row, names, estimate);
  }
  if (steps.empty())
    throw InputError(Diagnostic{.origin = {manifest.table, 1, 1},
                                .message = "the profile has no rows, expected the times of at least one layer",
                                .key = {},
                                .source_line = {},
                                .note = {},
                                .help = {}});
  std::vector<std::vector<LayerTime>> out;
  for (auto& [step, times] : steps) out.push_back(std::move(times));
  return out;
}

}  // namespace simsync::detail
