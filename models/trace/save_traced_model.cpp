#include <fmt/format.h>

#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/yaml_text.hpp"
#include "models/profile_writer.hpp"
#include "models/reader.hpp"
#include "models/trace/layer_names.hpp"
#include "models/trace/traced_model.hpp"

namespace simsync {
namespace {

std::string parameters_of(const TracedLayer& layer) {
  std::vector<std::string> names;
  for (const TracedVariable& variable : layer.variables) names.push_back(variable.name);
  std::vector<std::string> entries;
  for (const TracedVariable& variable : layer.variables)
    entries.push_back(fmt::format("{}: [{}]", yaml_quoted(detail::name_within(variable.name, names)),
                                  fmt::join(variable.shape, ", ")));
  return fmt::format("{}", fmt::join(entries, ", "));
}

std::string layer_line(const TracedLayer& layer) {
  std::string text = fmt::format("  - {{layer: {}, kind: {}", yaml_quoted(layer.name), name_of(layer.kind));
  if (!layer.variables.empty()) text += fmt::format(", parameters: {{{}}}", parameters_of(layer));
  return text + ", forward_flops: 0, output_bytes: 0B}\n";
}

}  // namespace

std::string model_text(const TracedModel& traced, const TraceOrigin& origin) {
  std::string text = fmt::format("# {}\n", origin.source);
  text += "# The work of its layers is not known: their times are in the profile.\n";
  text += fmt::format("schema: simsync/model/v1\nname: {}\nbatch: {}\nsample: sample\n", yaml_quoted(origin.name),
                      origin.batch);
  if (!origin.profile.empty()) text += fmt::format("profile: {}\n", yaml_quoted(origin.profile));
  text += "layers:\n";
  for (const TracedLayer& layer : traced.layers) text += layer_line(layer);
  return text;
}

TracedFiles save_traced_model(const std::string& path, const TracedModel& traced, const TraceOrigin& origin) {
  const std::filesystem::path file(path);
  if (file.extension() != ".yaml")
    throw InputError(fmt::format("a model goes to a file that ends in .yaml, got '{}'", path),
                     "its profile is written beside it, with the extension .profile.csv");
  const std::string profile = std::filesystem::path(file).replace_extension(".profile.csv").string();
  TraceOrigin complete = origin;
  complete.profile = std::filesystem::path(profile).filename().string();
  const std::string text = model_text(traced, complete);
  const Model model = parse_model(text, path);
  write_file(path, text);
  save_profile(profile, model,
               {.device = origin.device,
                .precision = origin.precision,
                .batch = origin.batch,
                .framework = origin.framework,
                .source = origin.source,
                .note = fmt::format("{}", fmt::join(traced.notes, "; ")),
                .update = traced.update,
                .steps = traced.steps});
  return {path, profile};
}

}  // namespace simsync
