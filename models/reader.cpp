#include "models/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/file.hpp"
#include "models/expand.hpp"
#include "models/variant.hpp"

namespace simsync {
namespace detail {
namespace {

constexpr const char* kSchema = "simsync/model/v1";
constexpr std::size_t kDeepestExtends = 8;

/// The part of a model file before its layers.
struct Header {
  std::string name;
  std::int64_t batch = 1;
  std::string sample;
  std::string profile;
  Values values;
};

std::string read_text(const yaml::Node& node) {
  constexpr std::size_t kLongest = 500;
  std::string text = node.text();
  if (text.size() > kLongest) node.fail(fmt::format("is longer than {} characters", kLongest));
  return text;
}

/// Path of the profile that the file names, which is relative to the file; empty when it names none.
std::string read_profile(yaml::Mapping& fields, const yaml::Document& document) {
  std::string path;
  fields.maybe("profile", [&](const yaml::Node& node) {
    const std::filesystem::path given(read_text(node));
    if (given.empty()) return;  // already noted
    if (given.extension() != ".csv" && given.extension() != ".yaml")
      node.fail("expected a file that ends in .csv or .yaml", {}, "a profile's table, or the manifest beside it");
    path = (std::filesystem::path(document.file()).parent_path() / given).lexically_normal().string();
  });
  return path;
}

/// The model's own values, with those of `overrides` in their place.
Values read_parameters(const yaml::Node& node, const Overrides& overrides) {
  Values values;
  std::vector<std::string> known;
  for (const auto& [name, setting] : read_settings(node)) {
    values[name] = setting.value;
    known.push_back(name);
  }
  for (const auto& [name, setting] : overrides.settings) {
    if (values.contains(name)) {
      values[name] = setting.value;
      continue;
    }
    const std::string all = known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", "));
    if (!setting.at)
      throw InputError(fmt::format("the model has no parameter '{}' (its parameters: {})", name, all),
                       did_you_mean(name, known));
    setting.at.fail(fmt::format("the model has no parameter '{}'", name), did_you_mean(name, known),
                    fmt::format("its parameters: {}", all));
  }
  for (const auto* document : overrides.asked_by) document->finish();
  return values;
}

Header read_header(yaml::Mapping& fields, const yaml::Document& document, const Overrides& overrides) {
  Header header;
  header.name = checked_name(fields.require("name"));
  if (overrides.name) header.name = *overrides.name;
  fields.maybe("source", [](const yaml::Node& n) { (void)read_text(n); });
  header.batch = fields.require("batch").integer(1, kLargestBatch);
  if (overrides.batch) header.batch = *overrides.batch;
  header.sample = read_text(fields.require("sample"));
  header.profile = read_profile(fields, document);
  header.values = read_parameters(fields.optional("parameters"), overrides);
  return header;
}

/// The tensors that the layers start from: `input: [3, 224, 224]` or `inputs: {tokens: [128], dense: [13]}`.
/// A model given in numbers needs none.
Scope read_inputs(yaml::Mapping& fields, const Values& values, Builder& builder) {
  const Environment environment{nullptr, &values, std::nullopt};
  Scope scope;
  scope.model_values = &values;
  scope.input = Tensor{{1}, {}, true};
  const yaml::Node single = fields.optional("input");
  const yaml::Node several = fields.optional("inputs");
  if (single && several) several.fail("a model has either 'input' or 'inputs'");
  if (single) scope.input.shape = evaluate_shape(single, environment);
  if (!several) return scope;
  const auto entries = several.entries();
  if (several.is_mapping() && entries.empty()) several.fail("expected at least one input");
  for (const auto& [name, shape] : entries) {
    builder.count(shape);
    const Tensor tensor{evaluate_shape(shape, environment), {}, true};
    builder.define(shape, name, tensor);
    if (name == entries.front().first) scope.input = tensor;
  }
  return scope;
}

void refuse_unused(const std::map<std::string, Block>& blocks) {
  for (const auto& [name, block] : blocks) {
    if (!block.used) block.node.fail(fmt::format("no layer uses block '{}'", name));
  }
}

Model build(const yaml::Node& root, const yaml::Document& document, const Overrides& overrides) {
  std::optional<yaml::Mapping> fields(root.mapping());
  (void)fields->require("schema").choice({kSchema});
  const Header header = read_header(*fields, document, overrides);
  std::map<std::string, Block> blocks;
  fields->maybe("blocks", [&](const yaml::Node& n) { blocks = read_blocks(n); });
  const yaml::Node layers = fields->require("layers");
  const auto statements = layers.items();
  if (layers.is_sequence() && statements.empty()) layers.fail("expected at least one layer");
  Model model(header.name, header.batch, header.sample);
  model.set_profile(header.profile);
  Builder builder(std::move(model), document);
  const Scope scope = read_inputs(*fields, header.values, builder);
  fields.reset();
  builder.check();
  (void)Expander(builder, blocks).run(statements, scope);
  refuse_unused(blocks);
  if (builder.layer_count() == 0) layers.fail("the model expands to no layer at all");
  return builder.finish();
}

/// `extends: resnet50` or a path relative to the extending file.
std::string base_path(const yaml::Node& node, const yaml::Document& document) {
  const std::string text = node.text();
  document.finish();
  try {
    std::string path = resolve_name(text, kZooRoom, ".yaml", "model");
    const std::filesystem::path given(path);
    if (given.is_absolute()) return path;
    return (std::filesystem::path(document.file()).parent_path() / given).lexically_normal().string();
  } catch (const InputError& e) {
    node.fail(e.diagnostics().front().message, e.diagnostics().front().help);
    document.finish();
    throw;
  }
}

Model extend(const yaml::Node& root, const yaml::Document& document, const Overrides& overrides) {
  Overrides merged = overrides;
  yaml::Node base;
  std::string profile;
  {
    auto fields = root.mapping();
    (void)fields.require("schema").choice({kSchema});
    const std::string name = checked_name(fields.require("name"));
    if (!merged.name) merged.name = name;
    base = fields.require("extends");
    fields.maybe("source", [](const yaml::Node& n) { (void)read_text(n); });
    profile = read_profile(fields, document);
    const yaml::Node batch = fields.optional("batch");
    if (batch && !merged.batch) merged.batch = batch.integer(1, kLargestBatch);
    // Settings given from further outside win, so an existing entry stays.
    fields.maybe("set", [&](const yaml::Node& n) {
      for (auto& [key, setting] : read_settings(n)) merged.settings.emplace(key, setting);
    });
  }
  merged.asked_by.push_back(&document);
  if (merged.asked_by.size() > kDeepestExtends)
    base.fail(fmt::format("more than {} files extend one another; a file must not extend itself", kDeepestExtends));
  Model model = load_variant(base_path(base, document), merged);
  if (!profile.empty()) model.set_profile(profile);
  return model;
}

}  // namespace

std::map<std::string, Setting> read_settings(const yaml::Node& node) {
  std::map<std::string, Setting> settings;
  for (const auto& [name, value] : node.entries()) settings[name] = {value.integer(-kMaxElements, kMaxElements), value};
  return settings;
}

Model read_model(const yaml::Document& document, const Overrides& overrides) {
  const yaml::Node root = document.root();
  const auto entries = root.entries();
  document.finish();
  const bool extends = std::any_of(entries.begin(), entries.end(), [](auto& e) { return e.first == "extends"; });
  return extends ? extend(root, document, overrides) : build(root, document, overrides);
}

Model load_variant(const std::string& path, const Overrides& overrides) {
  return read_model(yaml::Document::load(path), overrides);
}

}  // namespace detail

Model load_model(const std::string& path) {
  return detail::load_variant(path, {});
}

Model parse_model(const std::string& text, const std::string& name) {
  return detail::read_model(yaml::Document::parse(text, name), {});
}

Model find_model(const std::string& name_or_path, const ModelParameters& parameters) {
  detail::Overrides overrides;
  std::vector<std::string> variant;
  for (const auto& [name, value] : parameters) {
    overrides.settings[name] = {.value = value, .at = {}};
    variant.push_back(fmt::format("{}={}", name, value));
  }
  Model model = detail::load_variant(resolve_name(name_or_path, detail::kZooRoom, ".yaml", "model"), overrides);
  model.set_variant(fmt::format("{}", fmt::join(variant, ", ")));
  return model;
}

std::string source_of_model(const std::string& name) {
  const auto document = yaml::Document::load(resolve_name(name, detail::kZooRoom, ".yaml", "model"));
  std::string source;
  for (const auto& [key, value] : document.root().entries())
    if (key == "source") source = value.text();
  document.finish();
  return source;
}

std::vector<std::string> known_models() {
  return list_files(data_folder(detail::kZooRoom), ".yaml");
}

}  // namespace simsync
