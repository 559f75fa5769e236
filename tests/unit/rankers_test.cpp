// Kinds of rankers beside the linear one: trees, rankers from files, and how rankers are compared.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/random.hpp"
#include "strategies/search/boosted_ranker.hpp"
#include "strategies/search/learned_ranker.hpp"
#include "strategies/search/rank_study.hpp"
#include "strategies/search/saved_ranker.hpp"
#include "strategies/search/scores.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/known_orders.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

/// Which way the first feature counts depends on the second: no sum of both has this order.
double interaction(const std::vector<double>& x) {
  return std::exp(x[1] < 0.5 ? x[0] : 1.0 - x[0]);
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

/// Mean over seeds.
std::map<std::pair<std::string, int>, double> accuracies(const RankStudy& study, int seeds) {
  std::map<std::pair<std::string, int>, double> out;
  for (const RankResult& result : study.results)
    out[{result.ranker + (result.start.empty() ? "" : " " + result.start), result.train}] += result.accuracy / seeds;
  return out;
}

}  // namespace

#ifdef SIMSYNC_HAS_XGBOOST
TEST_CASE("trees learn an interaction that a linear ranker cannot", "[search]") {
  const auto known = drawn(200, 2, interaction, 1);
  const auto others = drawn(200, 2, interaction, 2);
  const auto trees = detail::boosted_ranker();
  trees->fit(known);
  CHECK(pairwise_accuracy(others, *trees) > 0.9);
  const auto linear = linear_ranker();
  linear->fit(known);
  // Pairs on one side of 0.5 are right as often as those on the other side are wrong.
  CHECK(pairwise_accuracy(others, *linear) < 0.65);
}

TEST_CASE("trees compare within domains, and by shards where steps nearly tie", "[search]") {
  // The second domain is a thousand times as slow, where the first feature says that strategies of the first are fast.
  auto known = drawn(120, 2, sum_of_two, 1);
  for (std::size_t i = 0; i < known.size(); i += 2) {
    known[i].domain = 1;
    known[i].step *= 1000.0;
    known[i].features[0] -= 0.5;
  }
  const auto trees = detail::boosted_ranker();
  trees->fit(known);
  const auto others = drawn(100, 2, sum_of_two, 2);
  CHECK(pairwise_accuracy(others, *trees) > 0.9);
  std::vector<Example> ties;
  for (int i = 0; i < 20; ++i)
    ties.push_back({.features = {static_cast<double>(i)}, .step = 1.0 + 1e-5 * i, .shards = 40.0 - i});
  const auto by_shards = detail::boosted_ranker();
  by_shards->fit(ties);
  CHECK(by_shards->score({19.0}) < by_shards->score({0.0}));
}

TEST_CASE("trees are not restored for another number of features", "[search]") {
  const auto trees = detail::boosted_ranker();
  trees->fit(drawn(20, 3, sum_of_two, 1));
  CHECK(detail::boosted_ranker()->restore(trees->weights(), 3));
  CHECK_FALSE(detail::boosted_ranker()->restore(trees->weights(), 4));
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
      return SavedRanker{.kind = kind,
                         .models = {"m"},
                         .clusters = {"c", "d"},
                         .trials = 60,
                         .learned = source_of(kind, learned_ranker(kind, known), known)};
    };
    const SavedRanker saved = save();
    const std::string text = to_json(saved);
    CHECK(to_json(save()) == text);
    const SavedRanker read = read_ranker(text, "ranker.json");
    CHECK(read.kind == kind);
    CHECK(read.models == saved.models);
    CHECK(read.clusters == saved.clusters);
    CHECK(read.trials == 60);
    CHECK(read.learned.deviation == saved.learned.deviation);
    CHECK(read.learned.simulated_deviation == saved.learned.simulated_deviation);
    for (const Example& example : drawn(50, width, sum_of_two, 4))
      CHECK(read.learned.ranker->score(example.features) == saved.learned.ranker->score(example.features));
    CHECK(to_json(read) == text);
  }
}

TEST_CASE("a saved ranker of another schema is refused", "[search]") {
  const RankerKind kind = RankerKind::AutoSyncLinear;
  const auto known = drawn(20, autosync_schema().names.size(), sum_of_two, 1);
  const SavedRanker saved{.kind = kind, .trials = 20, .learned = source_of(kind, learned_ranker(kind, known), known)};
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
  CHECK(refused("simsync/ranker/v3", "simsync/ranker/v2") ==
        "ranker.json: error: schema 'simsync/ranker/v2': expected 'simsync/ranker/v3'\n  key:  schema\n"
        "  help: learn it anew with this version of simsync");
  CHECK(refused("\"of_features\": [", "\"of_features\": [7,") ==
        "ranker.json: error: these are not the weights of a ranker 'autosync-linear' for its features\n"
        "  key:  weights\n  help: rankers are written by 'simsync search --ranker-out FILE'");
  CHECK(refused("\"autosync-linear\"", "\"autosync-liner\"") ==
        "ranker.json: error: unknown ranker 'autosync-liner': expected linear, autosync-linear, boosted, recurrent\n"
        "  key:  kind\n  help: did you mean 'autosync-linear'?");
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
}

TEST_CASE("a study holds trials out, and counts what it leaves out", "[search]") {
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
  // 2 seeds, each the estimate, the source alone and transferred, and 20 trials from scratch and transferred; there are
  // no 100.
  REQUIRE(study.results.size() == 2 * 5);
  for (const RankResult& result : study.results) CHECK(result.held_out == 12);
  const auto found = accuracies(study, options.seeds);
  CHECK(found.at({"estimate", 0}) == 1.0);
  CHECK(found.at({"autosync-linear scratch", 20}) == 1.0);
  CHECK(found.at({"autosync-linear source", 0}) == 1.0);
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
  const auto found =
      accuracies(study_rankers(table("a", 60, false, 1), table("b", 60, true, 2), options), options.seeds);
  // Not 0 and 1: features beyond what was learned count as its ends, which is no order among them.
  CHECK(found.at({"autosync-linear source", 0}) < 0.01);
  CHECK(found.at({"autosync-linear transfer", 20}) > 0.99);
}

TEST_CASE("each domain is a task of its own, and one without an order is left out", "[search]") {
  auto rows = table("a", 40, false, 1);
  for (TrialRow& row : rows) row.replayed = Seconds{1.0 / row.step->value()};
  for (TrialRow row : table("b", 20, true, 2)) rows.push_back(std::move(row));
  for (int i = 0; i < 20; ++i) {
    rows.push_back(row_of("same", 1.0, {0.1 * i}));
    rows.back().strategy_id = "same" + std::to_string(i);
  }
  std::size_t done = 0;
  RankStudyOptions options{.rankers = {RankerKind::AutoSyncLinear}, .train = {10, 20}, .seeds = 3};
  options.progress = [&](std::size_t now, std::size_t) { done = now; };
  const RankStudy study = study_rankers(rows, {}, options);
  CHECK(study.domains.size() == 3);
  CHECK(study.without_pairs == 3);
  std::map<std::string, int> counts;
  for (const RankResult& result : study.results) {
    ++counts[result.domain.model + " " + result.ranker];
    if (result.ranker == "estimate") CHECK(result.accuracy == 1.0);
    if (result.ranker == "replay") CHECK(result.accuracy == 0.0);
    if (result.ranker == "autosync-linear") CHECK(result.accuracy > 0.98);  // its ends are ties
  }
  // "b" has 14 to learn: no 20 of them.
  const std::map<std::string, int> expected{
      {"a estimate", 3}, {"a replay", 3}, {"a autosync-linear", 6}, {"b estimate", 3}, {"b autosync-linear", 3}};
  CHECK(counts == expected);
  CHECK(done == 3 * 3 * 2);
}
