#include "strategies/search/saved_ranker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "strategies/search/mixture.hpp"

namespace simsync {
namespace {

using Json = nlohmann::json;

constexpr const char* kSchema = "simsync/ranker/v3";
constexpr const char* kAnew = "learn it anew with this version of simsync";
constexpr const char* kHelp = "rankers are written by 'simsync search --ranker-out FILE'";

[[noreturn]] void refuse(const std::string& file, const std::string& message, const std::string& key = {},
                         const std::string& help = kHelp) {
  throw InputError(
      Diagnostic{.origin = {file}, .message = message, .key = key, .source_line = {}, .note = {}, .help = help});
}

RankerKind kind_of(const std::string& word, const std::string& file) {
  if (const auto kind = find_word(ranker_words(), word)) return *kind;
  const auto known = names_in(ranker_words());
  const std::string near = did_you_mean(word, known);
  refuse(file, fmt::format("unknown ranker '{}': expected {}", word, fmt::join(known, ", ")), "kind",
         near.empty() ? kHelp : near);
}

/// Weights belong to features by their position: with other features they would be applied to wrong numbers.
void expect_schema(const Json& features, RankerKind kind, const std::string& file) {
  const FeatureSchema& expected = ranker_schema(kind);
  const auto name = features.at("schema").get<std::string>();
  const auto names = features.at("names").get<std::vector<std::string>>();
  if (name != expected.name)
    refuse(file,
           fmt::format("a ranker on features of the schema '{}': expected '{}' for '{}'", name, expected.name,
                       name_of(kind)),
           "features.schema", kAnew);
  if (names.size() != expected.names.size())
    refuse(file, fmt::format("{} features: expected the {} of '{}'", names.size(), expected.names.size(), name),
           "features.names", kAnew);
  const auto [found, known] = std::mismatch(names.begin(), names.end(), expected.names.begin());
  if (found != names.end())
    refuse(file, fmt::format("feature '{}': expected '{}', as in '{}'", *found, *known, name),
           fmt::format("features.names[{}]", found - names.begin()), kAnew);
}

/// Of what was learned.
double deviation_of(const Json& all, const char* of, const std::string& file) {
  const double out = all.at("deviations").at(of).get<double>();
  if (!(std::isfinite(out) && out >= 0.0))
    refuse(file, fmt::format("a deviation of {}: expected a number, 0 or more", out), fmt::format("deviations.{}", of));
  return out;
}

SavedRanker ranker_of(const Json& all, const std::string& file) {
  const auto schema = all.at("schema").get<std::string>();
  if (schema != kSchema) refuse(file, fmt::format("schema '{}': expected '{}'", schema, kSchema), "schema", kAnew);
  SavedRanker out;
  out.kind = kind_of(all.at("kind").get<std::string>(), file);
  expect_schema(all.at("features"), out.kind, file);
  const Json& from = all.at("learned_from");
  out.models = from.at("models").get<std::set<std::string>>();
  out.clusters = from.at("clusters").get<std::set<std::string>>();
  out.trials = from.at("trials").get<std::int64_t>();
  constexpr std::int64_t kMostTrials = 1'000'000'000'000;
  if (out.trials < 1 || out.trials > kMostTrials)
    refuse(file, fmt::format("{} trials: expected a positive number", out.trials), "learned_from.trials");
  out.learned.ranker = detail::restored_ranker(out.kind, all.at("weights"));
  out.learned.deviation = deviation_of(all, "scores", file);
  out.learned.simulated_deviation = deviation_of(all, "simulated", file);
  if (out.learned.ranker == nullptr)
    refuse(file, fmt::format("these are not the weights of a ranker '{}' for its features", name_of(out.kind)),
           "weights");
  return out;
}

}  // namespace

std::string to_json(const SavedRanker& saved) {
  const FeatureSchema& features = ranker_schema(saved.kind);
  nlohmann::ordered_json out;
  out["schema"] = kSchema;
  out["kind"] = name_of(saved.kind);
  out["learned_from"] = {{"models", saved.models}, {"clusters", saved.clusters}, {"trials", saved.trials}};
  out["features"] = {{"schema", features.name}, {"names", features.names}};
  out["deviations"] = {{"scores", saved.learned.deviation}, {"simulated", saved.learned.simulated_deviation}};
  out["weights"] = saved.learned.ranker->weights();
  return out.dump(1) + "\n";
}

SavedRanker read_ranker(const std::string& text, const std::string& file) {
  try {
    return ranker_of(Json::parse(text), file);
  } catch (const Json::parse_error& e) {
    refuse(file, fmt::format("not a saved ranker: no JSON from byte {} on", e.byte));
  } catch (const Json::exception& e) {
    // `[json.exception.out_of_range.403] key 'x' not found`: what is in brackets is nlohmann's own number.
    const std::string what = e.what();
    refuse(file, "not a saved ranker: " + what.substr(std::min(what.size(), what.find("] ") + 2)));
  }
}

}  // namespace simsync
