// Kinds of rankers beside the linear one: trees, rankers from files, transfer, and how rankers are compared.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/random.hpp"
#include "strategies/search/boosted_ranker.hpp"
#include "strategies/search/mixture.hpp"
#include "strategies/search/rank_study.hpp"
#include "strategies/search/saved_ranker.hpp"
#include "strategies/search/scores.hpp"
#include "strategies/search/transfer.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

/// A step of each list of features, in seconds.
using Truth = double (*)(const std::vector<double>&);

double sum_of_two(const std::vector<double>& x) {
  return std::exp(2.0 * x[0] - 1.0 * x[1]);
}
double opposite(const std::vector<double>& x) {
  return 1.0 / sum_of_two(x);
}
/// Which way the first feature counts depends on the second: no sum of both has this order.
double interaction(const std::vector<double>& x) {
  return std::exp(x[1] < 0.5 ? x[0] : 1.0 - x[0]);
}

/// As many features as `kind` expects; the truth sees the first ones.
std::vector<Example> drawn(std::size_t count, std::size_t width, Truth truth, std::uint64_t seed) {
  Random random(seed);
  std::vector<Example> out;
  for (std::size_t i = 0; i < count; ++i) {
    Example example;
    for (std::size_t k = 0; k < width; ++k) example.features.push_back(random.unit());
    example.step = truth(example.features);
    out.push_back(std::move(example));
  }
  return out;
}

/// Kinds that this build has.
std::vector<RankerKind> kinds() {
  std::vector<RankerKind> out{RankerKind::Linear, RankerKind::AutoSyncLinear, RankerKind::Recurrent};
#ifdef SIMSYNC_HAS_XGBOOST
  out.push_back(RankerKind::Boosted);
#endif
  return out;
}

TrialRow row_of(const std::string& model, double step, std::vector<double> autosync) {
  TrialRow out;
  out.model = model;
  out.cluster = "lab";
  out.evaluator = "replay";
  out.step = Seconds{step};
  out.estimated = Seconds{step};
  out.autosync = std::move(autosync);
  out.autosync.resize(autosync_schema().names.size());
  out.features.resize(strategy_schema().names.size());
  out.segments.resize(segment_schema().names.size());
  return out;
}

/// The step is e^(2 x), or its inverse, of AutoSync's first feature.
std::vector<TrialRow> table(const std::string& model, int count, bool inverse, std::uint64_t seed) {
  Random random(seed);
  std::vector<TrialRow> out;
  for (int i = 0; i < count; ++i) {
    const double x = random.unit();
    out.push_back(row_of(model, std::exp(inverse ? -2.0 * x : 2.0 * x), {x}));
    out.back().strategy_id = model + std::to_string(i);
  }
  return out;
}

std::map<std::pair<std::string, int>, double> accuracies(const RankStudy& study) {
  std::map<std::pair<std::string, int>, double> out;
  for (const RankResult& result : study.results)
    out[{result.ranker + (result.start.empty() ? "" : " " + result.start), result.train}] = result.accuracy;
  return out;
}

}  // namespace

#ifdef SIMSYNC_HAS_XGBOOST
/// One more feature, which says nothing: what the simulator would say, so that trees rank alone.
std::vector<Example> with_silent_simulator(std::vector<Example> examples) {
  for (Example& example : examples) example.features.push_back(0.0);
  return examples;
}

TEST_CASE("trees learn an interaction that a linear ranker cannot", "[search]") {
  const auto known = with_silent_simulator(drawn(200, 2, interaction, 1));
  const auto others = with_silent_simulator(drawn(200, 2, interaction, 2));
  const auto trees = detail::boosted_ranker(2);
  trees->fit(known);
  CHECK(pairwise_accuracy(others, *trees) > 0.9);
  const auto linear = linear_ranker();
  linear->fit(known);
  // Pairs on one side of 0.5 are right as often as those on the other side are wrong.
  CHECK(pairwise_accuracy(others, *linear) < 0.65);
}

TEST_CASE("trees compare within domains, and by shards where steps nearly tie", "[search]") {
  // The second domain is a thousand times as slow where the first feature says fast.
  auto known = drawn(60, 2, sum_of_two, 1);
  for (std::size_t i = 0; i < known.size(); i += 2) {
    known[i].domain = 1;
    known[i].step *= 1000.0;
    known[i].features[0] -= 5.0;
  }
  known = with_silent_simulator(std::move(known));
  const auto trees = detail::boosted_ranker(2);
  trees->fit(known);
  const auto others = with_silent_simulator(drawn(100, 2, sum_of_two, 2));
  CHECK(pairwise_accuracy(others, *trees) > 0.9);
  std::vector<Example> ties;
  for (int i = 0; i < 20; ++i)
    ties.push_back({.features = {static_cast<double>(i)}, .step = 1.0 + 1e-5 * i, .shards = 40.0 - i});
  const auto by_shards = detail::boosted_ranker(1);
  by_shards->fit(with_silent_simulator(ties));
  CHECK(by_shards->score({19.0, 0.0}) < by_shards->score({0.0, 0.0}));
}

TEST_CASE("trees are not restored for features without a simulated step", "[search]") {
  const auto trees = detail::boosted_ranker(2);
  trees->fit(drawn(20, 3, sum_of_two, 1));
  CHECK(detail::boosted_ranker(2)->restore(trees->weights(), 3));
  CHECK_FALSE(detail::boosted_ranker(3)->restore(trees->weights(), 3));
}

TEST_CASE("trees count beside the simulator by how many trials they have seen", "[search]") {
  // The simulator has half of the truth: what hangs on the first feature.
  const auto simulated = [](std::vector<Example> of) {
    for (Example& example : of) example.features[2] = 2.0 * example.features[0];
    return of;
  };
  const auto others = simulated(drawn(200, 3, sum_of_two, 1));
  const auto accuracy = [&](std::size_t trials) {
    const auto ranker = detail::boosted_ranker(2);
    ranker->fit(simulated(drawn(trials, 3, sum_of_two, 2)));
    return pairwise_accuracy(others, *ranker);
  };
  std::vector<double> alone;
  for (const Example& example : others) alone.push_back(example.features[2]);
  CHECK_THAT(accuracy(2), WithinAbs(pairwise_accuracy(others, alone), 0.03));
  CHECK(accuracy(150) > 0.9);
  // 40 examples: trees and simulator count alike, each in deviations of its scores.
  const auto forty = simulated(drawn(40, 3, sum_of_two, 2));
  const auto ranker = detail::boosted_ranker(2);
  ranker->fit(forty);
  alone.clear();
  for (const Example& example : forty) alone.push_back(example.features[2]);
  const auto factor = ranker->weights().at("of_simulator").get<double>();
  CHECK_THAT(factor * detail::deviation_within_domains(forty, alone), WithinRel(0.5, 1e-12));
}
#else
TEST_CASE("a build without XGBoost says so as soon as trees are asked for", "[search]") {
  CHECK_THROWS_AS(make_ranker(RankerKind::Boosted), CapabilityError);
  CHECK_THROWS_WITH(make_ranker(RankerKind::Boosted), ContainsSubstring("libxgboost-dev"));
}
#endif

TEST_CASE("a saved ranker scores as the one that was saved, and is the same bytes twice", "[search]") {
  for (const RankerKind kind : kinds()) {
    CAPTURE(name_of(kind));
    const std::size_t width = ranker_schema(kind).names.size();
    const auto known = drawn(60, width, sum_of_two, 3);
    const auto save = [&] {
      return SavedRanker{
          .kind = kind, .models = {"m"}, .clusters = {"c", "d"}, .trials = 60, .ranker = learned_ranker(kind, known)};
    };
    const SavedRanker saved = save();
    const std::string text = to_json(saved);
    CHECK(to_json(save()) == text);
    const SavedRanker read = read_ranker(text, "ranker.json");
    CHECK(read.kind == kind);
    CHECK(read.models == saved.models);
    CHECK(read.clusters == saved.clusters);
    CHECK(read.trials == 60);
    for (const Example& example : drawn(50, width, sum_of_two, 4))
      CHECK(read.ranker->score(example.features) == saved.ranker->score(example.features));
    CHECK(to_json(read) == text);
  }
}

TEST_CASE("a saved ranker of another schema is refused", "[search]") {
  const RankerKind kind = RankerKind::AutoSyncLinear;
  const SavedRanker saved{.kind = kind,
                          .trials = 2,
                          .ranker = learned_ranker(kind, drawn(20, autosync_schema().names.size(), sum_of_two, 1))};
  const std::string text = to_json(saved);
  const auto refused = [&](const std::string& from, const std::string& to) -> std::string {
    std::string broken = text;
    broken.replace(broken.find(from), from.size(), to);
    try {
      (void)read_ranker(broken, "ranker.json");
    } catch (const InputError& e) {
      return e.what();
    }
    return "taken";
  };
  CHECK(refused("autosync/v1", "autosync/v0") ==
        "ranker.json: error: a ranker on features of the schema 'autosync/v0': expected 'autosync/v1' for "
        "'autosync-linear'\n  key:  features.schema\n  help: learn it anew with this version of simsync");
  CHECK(refused("\"server_overhead_sum\"", "\"server_overheads\"") ==
        "ranker.json: error: feature 'server_overheads': expected 'server_overhead_sum', as in 'autosync/v1'\n"
        "  key:  features.names[3]\n  help: learn it anew with this version of simsync");
  CHECK(refused("simsync/ranker/v2", "simsync/ranker/v1") ==
        "ranker.json: error: schema 'simsync/ranker/v1': expected 'simsync/ranker/v2'\n  key:  schema\n"
        "  help: learn it anew with this version of simsync");
  CHECK(refused("\"of_features\": [", "\"of_features\": [7,") ==
        "ranker.json: error: these are not the weights of a ranker 'autosync-linear' for its features\n"
        "  key:  weights\n  help: rankers are written by 'simsync search --ranker-out FILE'");
  CHECK(refused("\"autosync-linear\"", "\"autosync-liner\"") ==
        "ranker.json: error: unknown ranker 'autosync-liner': expected linear, autosync-linear, boosted, recurrent\n"
        "  key:  kind\n  help: did you mean 'autosync-linear'?");
}

TEST_CASE("a source that ranks alike helps few trials, and one that misleads counts less with each", "[search]") {
  for (const RankerKind kind : kinds()) {
    if (kind == RankerKind::Recurrent) continue;  // its linear part does the same
    CAPTURE(name_of(kind));
    const std::size_t width = ranker_schema(kind).names.size();
    // The simulator sees the first of the two features that count.
    const auto trials = [&](std::size_t count, Truth truth, std::uint64_t seed) {
      auto out = drawn(count, width, truth, seed);
      if (const auto simulated = simulated_feature(kind))
        for (Example& example : out) example.features[*simulated] = 2.0 * example.features[0];
      return out;
    };
    const auto others = trials(200, sum_of_two, 2);
    const auto few = trials(10, sum_of_two, 3);
    const auto many = trials(100, sum_of_two, 4);
    const auto good = learned_ranker(kind, trials(200, sum_of_two, 1));
    const auto bad = learned_ranker(kind, trials(200, opposite, 1));
    const auto accuracy = [&](const auto& ranker) { return pairwise_accuracy(others, *ranker); };
    CHECK(accuracy(transfer(kind, good, few)) > accuracy(learned_ranker(kind, few)));
    CHECK(accuracy(transfer(kind, good, few)) > 0.85);
    // One trial says nothing of the target: the source as it is, whatever it is worth.
    CHECK(transfer(kind, bad, {}) == bad);
    CHECK(transfer(kind, bad, {few.front()}) == bad);
    CHECK(accuracy(bad) < 0.3);
    CHECK(accuracy(transfer(kind, bad, few)) > accuracy(bad));
    CHECK(accuracy(transfer(kind, bad, many)) > accuracy(learned_ranker(kind, many)) - 0.02);
  }
}

TEST_CASE("what transfer adds is in deviations of scores, and counts by the number of trials", "[search]") {
  const RankerKind kind = RankerKind::Linear;
  const std::size_t width = ranker_schema(kind).names.size();
  auto source = learned_ranker(kind, drawn(50, width, opposite, 1));
  const auto factors = [&](std::size_t trials) {
    const auto known = drawn(trials, width, sum_of_two, 2);
    const nlohmann::json weights = transfer(kind, source, known)->weights();
    std::vector<double> out;
    for (const auto& member : weights.at("members")) {
      const auto ranker = detail::restored_ranker(RankerKind::Linear, member.at("weights"));
      out.push_back(member.at("factor").get<double>() *
                    detail::deviation_within_domains(known, detail::scores_of(known, *ranker)));
    }
    return out;
  };
  const auto close = [](const std::vector<double>& found, const std::vector<double>& expected) {
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK_THAT(found[i], WithinRel(expected[i], 1e-9));
  };
  close(factors(10), {0.5, 0.25, 0.25});
  close(factors(90), {0.9, 0.05, 0.05});
  source = nullptr;
  close(factors(10), {0.5, 0.5});
}

TEST_CASE("a source that ranks nothing counts nothing", "[search]") {
  const RankerKind kind = RankerKind::AutoSyncLinear;
  const std::size_t width = ranker_schema(kind).names.size();
  // What it has learned hangs on a feature that never changes in the target.
  auto elsewhere = drawn(50, width, sum_of_two, 1);
  for (Example& example : elsewhere)
    for (std::size_t k = 2; k < width; ++k) example.features[k] = 1.0;
  auto target = drawn(
      30, width, [](const std::vector<double>& x) { return std::exp(3.0 * x[5]); }, 2);
  for (Example& example : target) example.features[0] = example.features[1] = 0.5;
  const auto ranker = transfer(kind, learned_ranker(kind, elsewhere), target);
  CHECK(ranker->weights().at("members").size() == 1);
  CHECK(pairwise_accuracy(target, *ranker) == pairwise_accuracy(target, *learned_ranker(kind, target)));
}

TEST_CASE("what was transferred twice is saved and read as it was", "[search]") {
  for (const RankerKind kind : kinds()) {
    CAPTURE(name_of(kind));
    const std::size_t width = ranker_schema(kind).names.size();
    const auto once =
        transfer(kind, learned_ranker(kind, drawn(40, width, opposite, 1)), drawn(20, width, sum_of_two, 2));
    const SavedRanker saved{.kind = kind, .trials = 80, .ranker = transfer(kind, once, drawn(20, width, opposite, 3))};
    const std::string text = to_json(saved);
    const SavedRanker read = read_ranker(text, "ranker.json");
    CHECK(to_json(read) == text);
    for (const Example& example : drawn(20, width, sum_of_two, 4))
      CHECK(read.ranker->score(example.features) == saved.ranker->score(example.features));
    // Nothing is nested: the source is replaced by what it was made of.
    for (const auto& member : nlohmann::json::parse(text).at("weights").at("members"))
      CHECK_FALSE(member.at("weights").contains("members"));
    nlohmann::json nested = nlohmann::json::parse(text);
    nlohmann::json& weights = nested["weights"]["members"][0]["weights"];
    weights = nlohmann::json{{"members", {{{"kind", name_of(kind)}, {"factor", 1.0}, {"weights", weights}}}}};
    CHECK_THROWS_AS(read_ranker(nested.dump(), "ranker.json"), InputError);
    nested["weights"]["members"] = nlohmann::json::object();
    CHECK_THROWS_AS(read_ranker(nested.dump(), "ranker.json"), InputError);
    std::string broken = text;
    broken.replace(broken.rfind("\"kind\": \""), 9, "\"kind\": \"x");
    CHECK_THROWS_AS(read_ranker(broken, "ranker.json"), InputError);
  }
}

TEST_CASE("deviations are those within domains", "[search]") {
  std::vector<Example> examples(4);
  examples[2].domain = examples[3].domain = 1;
  CHECK(detail::deviation_within_domains(examples, {1.0, 3.0, 101.0, 103.0}) == 1.0);
  CHECK(detail::deviation_within_domains(examples, {1.0, 1.0, 5.0, 5.0}) == 0.0);
  CHECK(detail::deviation_within_domains({}, {}) == 0.0);
  // Three times 0.1 is not 0.3 to the last digit: what rounding alone makes differ does not differ.
  examples.assign(3, Example{});
  CHECK(detail::deviation_within_domains(examples, {0.1, 0.1, 0.1}) == 0.0);
  CHECK(detail::credibility(0, 10.0) == 0.0);
  CHECK(detail::credibility(10, 10.0) == 0.5);
}

TEST_CASE("a study holds the same trials out for all, and counts what it leaves out", "[search]") {
  auto rows = table("a", 40, false, 1);
  rows.push_back(row_of("a", 1.0, {}));
  rows.back().step.reset();
  rows.push_back(row_of("small", 1.0, {}));
  auto sources = table("b", 40, false, 2);
  sources.push_back(row_of("a", 1.0, {}));
  const RankStudyOptions options{.rankers = {RankerKind::AutoSyncLinear}, .train = {0, 20, 100}, .seeds = 2};
  const RankStudy study = study_rankers(rows, sources, options);
  CHECK(study.trials == 40);
  CHECK(study.without_step == 1);
  CHECK(study.of_small_domains == 1);
  CHECK(study.source == 40);
  CHECK(study.source_at_home == 1);
  // 2 seeds, each the estimate, the source alone, and 20 trials from scratch and transferred; there are no 100.
  REQUIRE(study.results.size() == 2 * 4);
  for (const RankResult& result : study.results) CHECK(result.held_out == 12);
  const auto found = accuracies(study);
  CHECK(found.at({"estimate", 0}) == 1.0);
  CHECK(found.at({"autosync-linear scratch", 20}) == 1.0);
  CHECK(found.at({"autosync-linear transfer", 0}) == 1.0);
}

TEST_CASE("a strategy that ran twice is learned or held out, never both", "[search]") {
  // Guided and random trials of one domain: both have the builders, here all forty strategies. The second runs take
  // three times as long, so that a pair of the pooled rows would be in the order of the runs, not of the strategies.
  auto rows = table("a", 40, false, 1);
  const auto once = rows;
  for (TrialRow row : once) {
    row.step = 3.0 * *row.step;
    rows.push_back(std::move(row));
  }
  const RankStudyOptions options{.rankers = {RankerKind::AutoSyncLinear}, .train = {20}, .seeds = 2};
  const RankStudy study = study_rankers(rows, {}, options);
  CHECK(study.repeated == 40);
  CHECK(study.trials == 40);
  // 12 strategies of 40 are held out, and twice the step of each keeps their order.
  const RankStudy without = study_rankers(once, {}, options);
  REQUIRE(study.results.size() == without.results.size());
  for (std::size_t i = 0; i < study.results.size(); ++i) {
    CHECK(study.results[i].held_out == 12);
    CHECK(study.results[i].accuracy == without.results[i].accuracy);
  }
}

TEST_CASE("a study shows a source that misleads", "[search]") {
  const RankStudyOptions options{.rankers = {RankerKind::AutoSyncLinear}, .train = {0, 20}, .seeds = 1};
  const auto found = accuracies(study_rankers(table("a", 60, false, 1), table("b", 60, true, 2), options));
  CHECK(found.at({"autosync-linear transfer", 0}) == 0.0);
  CHECK(found.at({"autosync-linear transfer", 20}) == 1.0);
}
