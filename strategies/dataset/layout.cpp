#include "strategies/dataset/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/yaml.hpp"

namespace simsync {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kStrategies{"strategy", "strategies"};
const std::vector<std::string> kRuntimes{"runtime", "runtimes"};
const std::vector<std::string> kResources{"resource_spec", "resource_specs"};
const std::vector<std::string> kExtensions{"", ".yml", ".yaml", ".json"};

[[noreturn]] void refuse(const fs::path& path, const std::string& message, const std::string& help = {}) {
  throw InputError(Diagnostic{
      .origin = {path.string(), 0, 0}, .message = message, .key = {}, .source_line = {}, .note = {}, .help = help});
}

/// The subfolder of `folder` that has one of the names.
std::optional<fs::path> subfolder(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (fs::is_directory(folder / name)) return folder / name;
  return std::nullopt;
}

std::optional<std::string> file_of(const std::optional<fs::path>& folder, const std::string& id) {
  if (!folder) return std::nullopt;
  for (const std::string& extension : kExtensions)
    if (fs::is_regular_file(*folder / (id + extension))) return (*folder / (id + extension)).string();
  return std::nullopt;
}

/// The only file beside the folders of an experiment, which describes the machines of all its runs.
std::optional<std::string> resource_of_all(const fs::path& folder) {
  std::optional<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const std::string extension = entry.path().extension();
    if (extension != ".yml" && extension != ".yaml") continue;
    if (out) refuse(folder, "several files may be the resource specification of the strategies below");
    out = entry.path().string();
  }
  return out;
}

void add_pairs(const fs::path& folder, std::vector<ArchivedPair>& out) {
  const auto strategies = subfolder(folder, kStrategies);
  if (!strategies) return;
  const auto runtimes = subfolder(folder, kRuntimes);
  const auto resources = subfolder(folder, kResources);
  const auto shared = resources ? std::nullopt : resource_of_all(folder);
  for (const auto& entry : fs::directory_iterator(*strategies)) {
    if (!entry.is_regular_file()) continue;
    const std::string id = entry.path().filename();
    const auto runtime = file_of(runtimes, id);
    if (!runtime) refuse(entry.path(), "this strategy has no runtime beside it", "expected runtime/" + id);
    const auto resource = resources ? file_of(resources, id) : shared;
    if (!resource)
      refuse(entry.path(), "this strategy has no resource specification beside it",
             fmt::format("expected resource_spec/{}, or one YAML file for all strategies of the folder", id));
    out.push_back({id, *resource, *runtime, entry.path().string()});
  }
}

}  // namespace

std::string table_file(const std::string& folder) {
  return (fs::path(folder) / "pairs.csv").string();
}

std::string question_file(const std::string& folder) {
  return (fs::path(folder) / "dataset.yaml").string();
}

std::string combination_folder(const std::string& model, const std::string& cluster, int workers) {
  return (fs::path(model) / fmt::format("{}-{}", cluster, workers)).string();
}

void make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error && !fs::is_directory(path)) refuse(path, "cannot make this folder: " + error.message());
}

void write_pair(const std::string& folder, const PairFiles& pair) {
  const fs::path in = folder;
  for (const auto& [kind, text] :
       {std::pair{kResources.front(), &pair.resource_spec}, std::pair{kRuntimes.front(), &pair.runtime},
        std::pair{kStrategies.front(), &pair.strategy}}) {
    make_folders((in / kind).string());
    write_file((in / kind / pair.id).string(), *text);
  }
}

std::string runtime_text(const std::vector<Seconds>& steps) {
  double sum = 0.0;
  std::vector<std::string> texts;
  for (const Seconds step : steps) {
    texts.push_back(fmt::format("{:.17g}", step.value()));
    sum += step.value();
  }
  return fmt::format("runtime: [{}]\naverage: {:.17g}\n", fmt::join(texts, ", "),
                     sum / static_cast<double>(std::max<std::size_t>(1, steps.size())));
}

Seconds parse_runtime(const std::string& text, const std::string& file) {
  const auto document = yaml::Document::parse(text, file);
  double average = 0.0;
  {
    bool found = false;
    for (const auto& [key, value] : document.root().entries()) {
      if (key != "average") continue;
      average = value.number(yaml::kPositive);
      found = true;
    }
    if (!found) document.root().fail("expected the key 'average'");
  }
  document.finish();
  return Seconds{average};
}

std::vector<ArchivedPair> find_pairs(const std::string& folder) {
  if (!fs::is_directory(folder)) refuse(folder, "expected a folder");
  std::vector<ArchivedPair> out;
  add_pairs(folder, out);
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_directory()) add_pairs(entry.path(), out);
  if (out.empty())
    refuse(folder, "no strategies here or below",
           "expected folders resource_spec, runtime and strategy with a file for each id");
  std::sort(out.begin(), out.end(),
            [](const ArchivedPair& a, const ArchivedPair& b) { return a.strategy < b.strategy; });
  return out;
}

}  // namespace simsync
