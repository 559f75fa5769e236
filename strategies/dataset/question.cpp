#include "strategies/dataset/question.hpp"

#include <fmt/format.h>

#include <limits>

#include "base/parse_units.hpp"
#include "base/yaml.hpp"
#include "base/yaml_text.hpp"

namespace simsync {
namespace {

constexpr const char* kSchema = "simsync/dataset/v1";
constexpr int kMost = 1'000'000'000;

std::string list_text(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(yaml_quoted(name));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

std::vector<std::string> texts_of(const yaml::Node& list) {
  std::vector<std::string> out;
  for (const yaml::Node& item : list.items()) out.push_back(item.text());
  return out;
}

int count_of(const yaml::Node& node) {
  return static_cast<int>(node.integer(1, kMost));
}

void read_settings(const yaml::Node& list, DatasetQuestion& into) {
  for (const yaml::Node& item : list.items()) {
    const std::string text = item.text();
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      item.fail(fmt::format("expected key=value, got '{}'", text));
      continue;
    }
    into.settings.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
}

/// A seed may be larger than what YAML's integers hold here.
std::uint64_t read_seed(const yaml::Node& node) {
  if (!node) return 1;
  const std::string text = node.text();
  std::uint64_t out = 0;
  for (const char digit : text) {
    const auto value = static_cast<std::uint64_t>(digit - '0');
    if (digit < '0' || digit > '9' || out > (std::numeric_limits<std::uint64_t>::max() - value) / 10) {
      node.fail(fmt::format("expected a whole number from 0 to 2^64 - 1, got '{}'", text));
      return 1;
    }
    out = 10 * out + value;
  }
  return out;
}

}  // namespace

std::string to_yaml(const DatasetQuestion& question) {
  std::string out =
      fmt::format("schema: {}\nmodels: {}\nclusters: {}\nworkers: [{}]\npairs: {}   # of each combination\nseed: {}\n",
                  kSchema, list_text(question.models), list_text(question.clusters), fmt::join(question.workers, ", "),
                  question.pairs, question.seed);
  if (question.batch) out += fmt::format("batch: {}\n", *question.batch);
  if (!question.calibration.empty()) out += fmt::format("calibration: {}\n", yaml_quoted(question.calibration));
  std::vector<std::string> settings;
  for (const auto& [key, value] : question.settings) settings.push_back(key + "=" + value);
  if (!settings.empty()) out += fmt::format("settings: {}\n", list_text(settings));
  if (question.shards > 1) out += fmt::format("shard: [{}, {}]   # of so many\n", question.shard, question.shards);
  return out;
}

DatasetQuestion parse_question(const std::string& text, const std::string& file) {
  const auto document = yaml::Document::parse(text, file);
  DatasetQuestion out;
  {
    auto top = document.root().mapping();
    (void)top.require("schema").choice({kSchema});
    out.models = texts_of(top.require("models"));
    out.clusters = texts_of(top.require("clusters"));
    for (const yaml::Node& item : top.require("workers").items()) out.workers.push_back(count_of(item));
    out.pairs = count_of(top.require("pairs"));
    out.seed = read_seed(top.require("seed"));
    top.maybe("batch", [&](const yaml::Node& node) { out.batch = node.integer(1, kMost); });
    top.maybe("calibration", [&](const yaml::Node& node) { out.calibration = node.text(); });
    top.maybe("settings", [&](const yaml::Node& node) { read_settings(node, out); });
    top.maybe("shard", [&](const yaml::Node& node) {
      const auto items = node.items();
      if (items.size() != 2) return node.fail("expected two numbers: the how manieth part, and of how many");
      out.shards = count_of(items[1]);
      out.shard = static_cast<int>(items[0].integer(1, out.shards));
    });
  }
  document.finish();
  return out;
}

}  // namespace simsync
