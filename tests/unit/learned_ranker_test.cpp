// What a ranker makes of trials beside what was known before: the simulator's order and a source.
#include "strategies/search/learned_ranker.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "strategies/search/mixture.hpp"
#include "strategies/search/saved_ranker.hpp"
#include "strategies/search/scores.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/known_orders.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr std::size_t kOthers = 200;

TransferSource learned(RankerKind kind, const std::vector<Example>& examples,
                       const std::optional<TransferSource>& source = std::nullopt, const PriorWorth& worth = {}) {
  return source_of(kind, learned_ranker(kind, examples, source, worth), examples);
}

std::vector<double> simulated(RankerKind kind, const std::vector<Example>& examples) {
  std::vector<double> out;
  for (const Example& example : examples) out.push_back(example.features[simulated_feature(kind).value()]);
  return out;
}

/// What each member of a mixture weighs, in deviations of its scores over the examples.
std::vector<double> weights_of(RankerKind kind, const Ranker& ranker, const std::vector<Example>& over) {
  std::vector<double> out;
  const nlohmann::json weights = ranker.weights();
  for (const auto& member : weights.at("members")) {
    const auto one = detail::restored_ranker(kind, member.at("weights"));
    out.push_back(member.at("factor").get<double>() *
                  detail::deviation_within_domains(over, detail::scores_of(over, *one)));
  }
  return out;
}

std::vector<double> shares_of(const Ranker& ranker) {
  std::vector<double> out;
  const nlohmann::json weights = ranker.weights();
  for (const auto& member : weights.at("members")) out.push_back(member.at("share").get<double>());
  return out;
}

void check_close(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK_THAT(found[i], WithinRel(expected[i], 1e-9));
}

}  // namespace

TEST_CASE("few trials rank as the simulator does, many better", "[search]") {
  for (const RankerKind kind : kinds()) {
    if (!simulated_feature(kind)) continue;
    CAPTURE(name_of(kind));
    const auto others = trials_of(kind, kOthers, sum_of_two, 1);
    const double alone = pairwise_accuracy(others, simulated(kind, others));
    const auto accuracy = [&](std::size_t trials) {
      return pairwise_accuracy(others, *learned_ranker(kind, trials_of(kind, trials, sum_of_two, 2)));
    };
    CHECK(accuracy(0) == alone);
    CHECK(accuracy(1) == alone);
    for (const std::size_t trials : {2U, 3U, 5U, 10U}) {
      CAPTURE(trials);
      CHECK(accuracy(trials) > alone - 0.03);
    }
    CHECK(accuracy(150) > alone + 0.05);
  }
}

TEST_CASE("examples count by their number, beside the simulator, in deviations of scores", "[search]") {
  const RankerKind kind = RankerKind::Linear;
  for (const std::size_t trials : {10U, 40U, 120U}) {
    CAPTURE(trials);
    const auto known = trials_of(kind, trials, sum_of_two, 2);
    const auto ranker = learned_ranker(kind, known);
    const double share = static_cast<double>(trials) / static_cast<double>(trials + 40);
    check_close(shares_of(*ranker), {share, 1.0 - share});
    check_close(weights_of(kind, *ranker, known), {share, 1.0 - share});
  }
}

TEST_CASE("a source counts as three examples, the simulator as forty", "[search]") {
  const auto shares = [](RankerKind kind, std::size_t trials, const PriorWorth& worth) {
    const TransferSource source = learned(kind, trials_of(kind, 160, opposite, 1));
    const auto known = trials_of(kind, trials, sum_of_two, 2);
    const auto ranker = learned_ranker(kind, known, source, worth);
    return shares_of(*ranker);
  };
  check_close(shares(RankerKind::AutoSyncLinear, 27, {}), {0.9, 0.1});
  // The source has learned from the simulator itself, with 40 of 200.
  check_close(shares(RankerKind::Linear, 50, {.source = 10.0}), {0.5, 0.1 * 0.8, 0.1 * 0.2, 0.4});
  const double all = 157.0 + 3.0 + 40.0;
  // What is less than a hundredth of all is dropped: here a fifth of the source.
  const double kept = all - 3.0 * 0.2;
  check_close(shares(RankerKind::Linear, 157, {}), {157.0 / kept, 3.0 * 0.8 / kept, 40.0 / kept});
}

TEST_CASE("without trials a transfer is a mean of source and simulator, in deviations over the source's trials",
          "[search]") {
  const RankerKind kind = RankerKind::Linear;
  const auto elsewhere = trials_of(kind, 2000, opposite, 1);
  const TransferSource source = learned(kind, elsewhere);
  CHECK_THAT(source.simulated_deviation,
             WithinRel(detail::deviation_within_domains(elsewhere, simulated(kind, elsewhere)), 1e-12));
  const auto ranker = learned_ranker(kind, {}, source, {.source = 10.0});
  // The source is a mixture itself, of 2000 examples with 40 of the simulator; nothing is nested.
  check_close(shares_of(*ranker), {0.2 * 2000.0 / 2040.0, 0.8});
  const auto others = trials_of(kind, 20, sum_of_two, 3);
  for (const Example& example : others) {
    const double first = detail::members_of(kind, source.ranker).front().factor *
                         detail::members_of(kind, source.ranker).front().ranker->score(example.features);
    const double simulated_score = example.features[simulated_feature(kind).value()];
    CHECK_THAT(ranker->score(example.features),
               WithinRel(0.2 * first / source.deviation + 0.8 * simulated_score / source.simulated_deviation, 1e-9));
  }
}

TEST_CASE("a source that ranks alike helps, and one that misleads counts less with each trial", "[search]") {
  for (const RankerKind kind : kinds()) {
    if (kind == RankerKind::Recurrent) continue;  // its linear part does the same
    CAPTURE(name_of(kind));
    const auto others = trials_of(kind, kOthers, sum_of_two, 2);
    const auto few = trials_of(kind, 10, sum_of_two, 3);
    const auto many = trials_of(kind, 400, sum_of_two, 4);
    const TransferSource good = learned(kind, trials_of(kind, 200, sum_of_two, 1));
    const TransferSource bad = learned(kind, trials_of(kind, 200, opposite, 1));
    const auto accuracy = [&](const auto& ranker) { return pairwise_accuracy(others, *ranker); };
    CHECK(accuracy(good.ranker) > 0.85);
    CHECK(accuracy(bad.ranker) < 0.3);
    CHECK(accuracy(learned_ranker(kind, few, good)) > accuracy(learned_ranker(kind, few)));
    CHECK(accuracy(learned_ranker(kind, few, bad)) > accuracy(learned_ranker(kind, {}, bad)));
    const auto loss = [&](const auto& known) {
      return accuracy(learned_ranker(kind, known)) - accuracy(learned_ranker(kind, known, bad));
    };
    CHECK(loss(many) < 0.5 * loss(few));
    // One trial says nothing of the order.
    CHECK(accuracy(learned_ranker(kind, {few.front()}, bad)) == accuracy(learned_ranker(kind, {}, bad)));
    if (simulated_feature(kind)) {
      CHECK(accuracy(learned_ranker(kind, {}, good)) > pairwise_accuracy(others, simulated(kind, others)));
      CHECK(accuracy(learned_ranker(kind, {}, bad)) > 0.5);
    } else {
      CHECK(accuracy(learned_ranker(kind, {}, bad)) == accuracy(bad.ranker));
    }
  }
}

TEST_CASE("what is known before counts as it is told to", "[search]") {
  const RankerKind kind = RankerKind::Linear;
  const auto known = trials_of(kind, 30, sum_of_two, 2);
  const TransferSource source = learned(kind, trials_of(kind, 50, opposite, 1), std::nullopt, {.simulator = 0.0});
  CHECK_FALSE(source.ranker->weights().contains("members"));
  check_close(shares_of(*learned_ranker(kind, known, source, {.simulator = 40.0, .source = 30.0})), {0.3, 0.3, 0.4});
  check_close(shares_of(*learned_ranker(kind, known, source, {.simulator = 0.0, .source = 30.0})), {0.5, 0.5});
}

TEST_CASE("a source that tells nothing apart leaves what is known without it", "[search]") {
  for (const RankerKind kind : {RankerKind::Linear, RankerKind::AutoSyncLinear}) {
    auto same = trials_of(kind, 1, sum_of_two, 1);
    same.push_back(same.front());
    const auto others = trials_of(kind, kOthers, sum_of_two, 2);
    const double accuracy = pairwise_accuracy(others, *learned_ranker(kind, {}, learned(kind, same)));
    CHECK(accuracy == (simulated_feature(kind) ? pairwise_accuracy(others, simulated(kind, others)) : 0.5));
  }
}

TEST_CASE("of source and simulator the one that told the source's trials apart is left", "[search]") {
  const RankerKind kind = RankerKind::Linear;
  const auto others = trials_of(kind, kOthers, sum_of_two, 2);
  TransferSource source = learned(kind, trials_of(kind, 200, sum_of_two, 1), std::nullopt, {.simulator = 0.0});
  const auto accuracy = [&] { return pairwise_accuracy(others, *learned_ranker(kind, {}, source)); };
  const double both = accuracy();
  source.simulated_deviation = 0.0;
  CHECK(accuracy() == pairwise_accuracy(others, *source.ranker));
  CHECK(accuracy() != both);
  source = {.ranker = source.ranker, .deviation = 0.0, .simulated_deviation = 1.0};
  CHECK(accuracy() == pairwise_accuracy(others, simulated(kind, others)));
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
  const auto ranker = learned_ranker(kind, target, learned(kind, elsewhere));
  CHECK(ranker->weights().at("members").size() == 1);
  CHECK(pairwise_accuracy(target, *ranker) == pairwise_accuracy(target, *learned_ranker(kind, target)));
}

TEST_CASE("what counts less than a hundredth is dropped", "[search]") {
  const RankerKind kind = RankerKind::AutoSyncLinear;
  TransferSource source = learned(kind, trials_of(kind, 20, opposite, 1));
  std::size_t most = 0;
  for (std::uint64_t domain = 0; domain < 20; ++domain) {
    source = learned(kind, trials_of(kind, 10, sum_of_two, 2 + domain), source, {.source = 10.0});
    most = std::max(most, detail::members_of(kind, source.ranker).size());
  }
  // Each domain halves what was known: after seven it counts less than 1 in 100.
  CHECK(most == 7);
}

TEST_CASE("what was transferred twice is saved and read as it was", "[search]") {
  for (const RankerKind kind : kinds()) {
    CAPTURE(name_of(kind));
    const TransferSource once =
        learned(kind, trials_of(kind, 20, sum_of_two, 2), learned(kind, trials_of(kind, 40, opposite, 1)));
    const SavedRanker saved{
        .kind = kind, .trials = 80, .learned = learned(kind, trials_of(kind, 20, opposite, 3), once)};
    const std::string text = to_json(saved);
    const SavedRanker read = read_ranker(text, "ranker.json");
    CHECK(to_json(read) == text);
    for (const Example& example : trials_of(kind, 20, sum_of_two, 4))
      CHECK(read.learned.ranker->score(example.features) == saved.learned.ranker->score(example.features));
    // Nothing is nested: a source is replaced by what it was made of.
    for (const auto& member : nlohmann::json::parse(text).at("weights").at("members"))
      CHECK_FALSE(member.at("weights").contains("members"));
  }
}

TEST_CASE("a saved mixture that this program cannot have written is refused", "[search]") {
  const RankerKind kind = RankerKind::Recurrent;
  const SavedRanker saved{.kind = kind, .trials = 20, .learned = learned(kind, trials_of(kind, 20, sum_of_two, 1))};
  const nlohmann::json text = nlohmann::json::parse(to_json(saved));
  REQUIRE_NOTHROW(read_ranker(text.dump(), "r.json"));
  const auto refused = [&](const std::string& error, auto change) {
    nlohmann::json broken = text;
    change(broken, broken["weights"]["members"]);
    CHECK_THROWS_WITH(
        read_ranker(broken.dump(), "r.json"),
        "r.json: error: " + error + "\n  help: rankers are written by 'simsync search --ranker-out FILE'");
  };
  const auto no_weights = [&](auto change) {
    refused("these are not the weights of a ranker 'recurrent' for its features\n  key:  weights",
            [&](auto&, auto& members) { change(members); });
  };
  no_weights([](auto& members) { members = nlohmann::json::object(); });
  no_weights([](auto& members) { members = nlohmann::json::array(); });
  no_weights([](auto& members) { members[1]["kind"] = "xlinear"; });
  // Its weights would do, but a recurrent ranker is no mixture with such a one.
  no_weights([](auto& members) { members[1]["kind"] = "autosync-linear"; });
  no_weights([](auto& members) { members[1]["factor"] = 0.0; });
  no_weights([](auto& members) { members[1]["factor"] = -1.0; });
  no_weights([](auto& members) { members[1]["share"] = -0.5; });
  refused("not a saved ranker: key 'share' not found", [](auto&, auto& members) { members[1].erase("share"); });
  refused("not a saved ranker: key 'of_features' not found", [](auto&, auto& members) {
    members[1]["weights"] = nlohmann::json{{"members", {members[1]}}};
  });
  refused("a deviation of -1: expected a number, 0 or more\n  key:  deviations.scores",
          [](auto& all, auto&) { all["deviations"]["scores"] = -1.0; });
  refused("0 trials: expected a positive number\n  key:  learned_from.trials",
          [](auto& all, auto&) { all["learned_from"]["trials"] = 0; });
}

TEST_CASE("numbers of a saved mixture that no sum can hold do not end a search", "[search]") {
  const RankerKind kind = RankerKind::AutoSyncLinear;
  const auto known = trials_of(kind, 20, sum_of_two, 2);
  const TransferSource source =
      learned(kind, trials_of(kind, 20, sum_of_two, 1), learned(kind, trials_of(kind, 20, opposite, 3)));
  nlohmann::json text = nlohmann::json::parse(to_json({.kind = kind, .trials = 20, .learned = source}));
  for (auto& member : text["weights"]["members"]) member["factor"] = 1e300;
  const auto ranker = learned_ranker(kind, known, read_ranker(text.dump(), "r.json").learned);
  CHECK(pairwise_accuracy(known, *ranker) == pairwise_accuracy(known, *learned_ranker(kind, known)));
}
