#include "models/profile_writer.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "base/csv.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/yaml_text.hpp"
#include "models/profile_file.hpp"

namespace simsync {
namespace {

std::string microseconds(Seconds time) {
  return fmt::format("{:.3f}", 1e6 * time.value());
}

std::string manifest_text(const Model& model, const MeasuredProfile& profile) {
  std::string text =
      fmt::format("schema: {}\nmodel: {}\ndevice: {}\nprecision: {}\nbatch: {}\n", detail::kProfileSchema,
                  yaml_quoted(model.name()), yaml_quoted(profile.device), profile.precision, profile.batch);
  text += fmt::format("framework: {}\nsource: {}\n", yaml_quoted(profile.framework), yaml_quoted(profile.source));
  if (profile.update) text += fmt::format("update: {}us\n", microseconds(*profile.update));
  if (!profile.note.empty()) text += fmt::format("note: {}\n", yaml_quoted(profile.note));
  return text;
}

std::string table_text(const Model& model, const MeasuredProfile& profile) {
  std::string text = csv_row(profile_header()) + "\n";
  for (std::size_t step = 0; step < profile.steps.size(); ++step) {
    for (LayerId id = 0; id < model.layer_count(); ++id) {
      const LayerTime& time = profile.steps[step].at(id);
      if (time.forward.value() < 0.0) continue;
      text += csv_row(
          {model.layer(id).name, microseconds(time.forward), microseconds(time.backward), std::to_string(step + 1)});
      text += '\n';
    }
  }
  return text;
}

}  // namespace

const std::vector<std::string>& profile_header() {
  static const std::vector<std::string> kHeader{"layer", "forward_us", "backward_us", "step"};
  return kHeader;
}

void save_profile(const std::string& path, const Model& model, const MeasuredProfile& profile) {
  std::filesystem::path file(path);
  if (file.extension() != ".csv")
    throw InputError(fmt::format("a profile goes to a file that ends in .csv, got '{}'", path),
                     "the manifest is written beside it with the extension .yaml");
  write_file(path, table_text(model, profile));
  write_file(file.replace_extension(".yaml").string(), manifest_text(model, profile));
}

}  // namespace simsync
