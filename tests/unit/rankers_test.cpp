// Kinds of rankers beside the linear one: trees, rankers from files, transfer, and how rankers are compared.
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "base/random.hpp"
#include "strategies/search/rank_study.hpp"
#include "strategies/search/saved_ranker.hpp"
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
TEST_CASE("trees learn an interaction that a linear ranker cannot", "[search]") {
  const auto known = drawn(200, 2, interaction, 1);
  const auto others = drawn(200, 2, interaction, 2);
  const auto trees = make_ranker(RankerKind::Boosted);
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
  const auto trees = make_ranker(RankerKind::Boosted);
  trees->fit(known);
  auto others = drawn(100, 2, sum_of_two, 2);
  CHECK(pairwise_accuracy(others, *trees) > 0.9);
  std::vector<Example> ties;
  for (int i = 0; i < 20; ++i)
    ties.push_back({.features = {static_cast<double>(i)}, .step = 1.0 + 1e-5 * i, .shards = 40.0 - i});
  const auto by_shards = make_ranker(RankerKind::Boosted);
  by_shards->fit(ties);
  CHECK(by_shards->score({19.0}) < by_shards->score({0.0}));
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
      SavedRanker out{.kind = kind, .models = {"m"}, .clusters = {"c", "d"}, .trials = 60, .ranker = make_ranker(kind)};
      out.ranker->fit(known);
      return out;
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
  SavedRanker saved{.kind = RankerKind::AutoSyncLinear, .trials = 2, .ranker = make_ranker(RankerKind::AutoSyncLinear)};
  saved.ranker->fit(drawn(20, autosync_schema().names.size(), sum_of_two, 1));
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
  CHECK(refused("simsync/ranker/v1", "simsync/ranker/v2") ==
        "ranker.json: error: schema 'simsync/ranker/v2': expected 'simsync/ranker/v1'\n  key:  schema\n"
        "  help: rankers are written by 'simsync search --ranker-out FILE'");
  CHECK(refused("\"of_features\": [", "\"of_features\": [7,") ==
        "ranker.json: error: these are not the weights of a ranker 'autosync-linear' for its features\n"
        "  key:  weights\n  help: rankers are written by 'simsync search --ranker-out FILE'");
  CHECK(refused("\"autosync-linear\"", "\"autosync-liner\"") ==
        "ranker.json: error: unknown ranker 'autosync-liner': expected linear, autosync-linear, boosted, recurrent\n"
        "  key:  kind\n  help: did you mean 'autosync-linear'?");
}

TEST_CASE("a source that ranks alike is used, one that misleads is left", "[search]") {
  for (const RankerKind kind : kinds()) {
    if (kind == RankerKind::Recurrent) continue;  // its linear part does the same
    CAPTURE(name_of(kind));
    const std::size_t width = ranker_schema(kind).names.size();
    const auto source = [&](Truth truth) {
      auto out = make_ranker(kind);
      out->fit(drawn(200, width, truth, 1));
      return out;
    };
    const auto others = drawn(200, width, sum_of_two, 2);
    const auto few = drawn(10, width, sum_of_two, 3);
    const auto scratch = make_ranker(kind);
    scratch->fit(few);
    const auto good = source(sum_of_two);
    const Transferred helped = transfer(*good, few);
    CHECK(helped.choice != TransferChoice::Scratch);
    CHECK(pairwise_accuracy(others, *helped.ranker) > pairwise_accuracy(others, *scratch));
    CHECK(pairwise_accuracy(others, *helped.ranker) > 0.9);
    // Nothing is known of the target: the source as it is, whatever it is worth.
    CHECK(transfer(*good, {}).choice == TransferChoice::Source);
    CHECK(pairwise_accuracy(others, *transfer(*source(opposite), {}).ranker) < 0.1);
    const auto many = drawn(50, width, sum_of_two, 4);
    const Transferred left = transfer(*source(opposite), many);
    CHECK(left.choice != TransferChoice::Source);
    CHECK(pairwise_accuracy(others, *left.ranker) > 0.8);
  }
}

TEST_CASE("transfer falls back to scratch where a source has nothing to say", "[search]") {
  // The target hangs on a feature that never changed in the source; the source knows one that is noise here.
  const auto target = [](const std::vector<double>& x) { return std::exp(3.0 * x[5]); };
  auto elsewhere = drawn(
      200, 12, [](const std::vector<double>& x) { return std::exp(9.0 * x[0] * x[0]); }, 1);
  for (Example& example : elsewhere) example.features[5] = 1.0;
#ifdef SIMSYNC_HAS_XGBOOST
  const auto source = make_ranker(RankerKind::Boosted);
  source->fit(elsewhere);
  CHECK(transfer(*source, drawn(60, 12, target, 2)).choice == TransferChoice::Scratch);
#endif
  const auto linear = linear_ranker();
  linear->fit(elsewhere);
  CHECK(pairwise_accuracy(drawn(100, 12, target, 3), *transfer(*linear, drawn(60, 12, target, 2)).ranker) > 0.95);
}

TEST_CASE("a tuned linear ranker is its source where the examples say nothing else", "[search]") {
  const auto ranker = linear_ranker({.penalties = {1.0}});
  ranker->fit(drawn(100, 3, sum_of_two, 1));
  const auto others = drawn(50, 3, sum_of_two, 2);
  const auto tuned = ranker->copy();
  // Two equal examples are no pair.
  tuned->tune({others[0], others[0]});
  for (const Example& example : others)
    CHECK_THAT(tuned->score(example.features), WithinRel(ranker->score(example.features), 1e-9));
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
  CHECK(study.results[1].choice == "source");
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
