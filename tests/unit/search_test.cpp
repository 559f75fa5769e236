// Searches: what they find, that they repeat, and what they do with what cannot run.
#include "strategies/search/search.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "base/error.hpp"
#include "sim/engine/evaluators.hpp"
#include "sim/plan/step_estimate.hpp"
#include "strategies/builders.hpp"
#include "strategies/search/features.hpp"
#include "strategies/search/shard_curve.hpp"
#include "strategies/search/trial_table.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

/// Estimates, and trials that take as long as these: a search is then right if it finds the smallest estimate.
class Estimates final : public Evaluator {
public:
  Estimates(const LabModel& lab, const Cluster& cluster, int workers)
      : lab_(lab), cluster_(cluster), estimator_(lab.model, lab.profile, cluster, workers) {}
  Evaluation evaluate(const Strategy& strategy) override {
    check(strategy, lab_.model, cluster_);
    return estimator_.estimate(strategy);
  }

private:
  const LabModel& lab_;
  const Cluster& cluster_;
  StepEstimator estimator_;
};

struct Lab {
  LabModel model{{.bytes = 4e8, .forward = 0.1, .backward = 0.2},
                 {.bytes = 4e6, .forward = 0.1, .backward = 0.2},
                 {.bytes = 2e8, .forward = 0.1, .backward = 0.2}};
  Cluster cluster = lab_cluster(3, 1, {.nic_latency = 1e-3});
  StrategySampler sampler;
  Estimates estimates{model, cluster, 3};
  std::vector<int> first_of_batch{};

  explicit Lab(const std::map<std::string, std::string>& given = {})
      : sampler(make_space(given, cluster), {model.model, cluster, 3}) {}

  SearchProblem problem() {
    return {.sampler = sampler,
            .estimates = estimates,
            .builders = {{"ddp", builder("ddp")}, {"ps", builder("ps")}},
            .fits = [](const Strategy&) { return true; },
            .run =
                [this](const std::vector<Candidate>& candidates, int first, int) {
                  first_of_batch.push_back(first);
                  std::vector<std::optional<Seconds>> out;
                  for (const Candidate& candidate : candidates) out.emplace_back(candidate.estimate.step);
                  return out;
                }};
  }
  [[nodiscard]] Strategy builder(const char* name) const {
    return build_strategy(name, {.model = model.model, .cluster = cluster, .workers = 3, .batch = 1, .options = {}});
  }
};

std::vector<std::string> ids_of(const SearchResult& result) {
  std::vector<std::string> out;
  for (const Trial& trial : result.trials) out.push_back(trial.candidate.id);
  return out;
}

const std::map<std::string, std::string> kSmall{{"schedules", "wait-free"},
                                                {"shards", "1"},
                                                {"fusions", "groups"},
                                                {"algorithms", "ring"},
                                                {"local_replication", "false"},
                                                {"synchronizers", "parameter-server,all-reduce"},
                                                {"groups", "3"}};

}  // namespace

TEST_CASE("an exhaustive search finds what no other method beats", "[search]") {
  Lab all(kSmall);
  const SearchResult exhaustive = search(all.problem(), {.method = SearchMethod::Exhaustive, .trials = 1'000'000});
  REQUIRE(exhaustive.best() != nullptr);
  const Seconds best = exhaustive.best()->candidate.estimate.step;
  const auto method =
      GENERATE(SearchMethod::Random, SearchMethod::Mutate, SearchMethod::AutoSync, SearchMethod::Anneal);
  Lab lab(kSmall);
  const SearchResult found =
      search(lab.problem(), {.method = method, .trials = 40, .round = 10, .candidates = 200, .seed = 3});
  CHECK(*found.best()->step >= best);
  // Guided ones find it.
  if (method != SearchMethod::Random) CHECK(*found.best()->step == best);
}

TEST_CASE("a search tries builders first, then no strategy twice, as often as asked", "[search]") {
  const auto method =
      GENERATE(SearchMethod::Random, SearchMethod::Mutate, SearchMethod::AutoSync, SearchMethod::Anneal);
  Lab lab;
  const SearchResult result =
      search(lab.problem(), {.method = method, .trials = 25, .round = 10, .candidates = 100, .seed = 5});
  REQUIRE(result.trials.size() == 2 + 25);
  CHECK(result.trials[0].candidate.origin == "ddp");
  CHECK(result.trials[1].candidate.origin == "ps");
  CHECK(lab.first_of_batch == std::vector<int>{0, 2, 12, 22});
  std::vector<std::string> ids = ids_of(result);
  for (std::size_t i = 0; i < ids.size(); ++i) CHECK(result.trials[i].number == static_cast<int>(i));
  std::sort(ids.begin(), ids.end());
  CHECK(std::adjacent_find(ids.begin(), ids.end()) == ids.end());
  REQUIRE(result.best_builder() != nullptr);
  CHECK(*result.best()->step <= *result.best_builder()->step);
  // Again the same; with another seed not.
  const auto again = [&](std::uint64_t seed) {
    Lab other;
    return ids_of(
        search(other.problem(), {.method = method, .trials = 25, .round = 10, .candidates = 100, .seed = seed}));
  };
  CHECK(again(5) == ids_of(result));
  CHECK(again(6) != ids_of(result));
}

TEST_CASE("a search stays in the space that it is given, wherever builders are", "[search]") {
  // `ps` reads at the start of a step, `ddp` has no servers: both are outside.
  Lab lab({{"schedules", "wait-free"}, {"synchronizers", "parameter-server"}, {"servers", "1"}});
  const auto method =
      GENERATE(SearchMethod::Random, SearchMethod::Mutate, SearchMethod::AutoSync, SearchMethod::Anneal);
  const SearchResult result = search(
      lab.problem(), {.method = method, .trials = 30, .round = 10, .candidates = 100, .diversity = 0.0, .seed = 5});
  REQUIRE(result.trials.size() == 2 + 30);
  for (std::size_t i = 2; i < result.trials.size(); ++i) {
    const Strategy& strategy = result.trials[i].candidate.strategy;
    CAPTURE(i, result.trials[i].candidate.origin);
    REQUIRE(schedule_of(strategy) == Schedule::WaitFree);
    std::set<Place> servers;
    for (const VariableStrategy& entry : strategy.variables)
      for (const Shard& shard : entry.shards) servers.insert(std::get<PsSynchronizer>(shard.synchronizer).server);
    REQUIRE(servers.size() == 1);
  }
  REQUIRE(result.best() != nullptr);
  CHECK(result.best()->round > 0);
}

TEST_CASE("a space is restricted by values that it lacks, not by those that it has as well", "[search]") {
  const Cluster cluster = lab_cluster(3, 1);
  const auto restricts = [&](const std::string& dimension, const std::string& values) {
    return make_space({{dimension, values}}, cluster).is_restricted;
  };
  CHECK_FALSE(make_space({}, cluster).is_restricted);
  CHECK_FALSE(restricts("servers", "0"));
  CHECK(restricts("servers", "3"));
  CHECK_FALSE(restricts("shards", "1000"));
  CHECK(restricts("shards", "1"));
  CHECK(restricts("schedules", "wait-free"));
  CHECK(restricts("any_axis", "false"));
  CHECK_FALSE(restricts("credits", "0B,1B,4MB,16MB,64MB,256MB"));
  // One value of several, in whatever dimension.
  for (const OptionInfo& dimension : space_dimensions()) {
    const std::string values = dimension.fallback;
    CAPTURE(dimension.name);
    if (const std::size_t comma = values.find(','); comma != std::string::npos)
      CHECK(restricts(dimension.name, values.substr(0, comma)));
  }
}

TEST_CASE("what does not fit into memory is not tried, what cannot run counts as tried", "[search]") {
  Lab lab;
  SearchProblem problem = lab.problem();
  problem.fits = [](const Strategy& strategy) { return schedule_of(strategy) != Schedule::Priority; };
  const RunTrials run = problem.run;
  problem.run = [&](const std::vector<Candidate>& candidates, int first, int round) {
    auto out = run(candidates, first, round);
    for (std::size_t i = 0; i < out.size(); ++i)
      if (schedule_of(candidates[i].strategy) == Schedule::Sharded) out[i].reset();
    return out;
  };
  const SearchResult result = search(problem, {.method = SearchMethod::Random, .trials = 40, .seed = 2});
  CHECK(result.too_large > 0);
  CHECK(result.trials.size() == 42);
  std::size_t failed = 0;
  for (const Trial& trial : result.trials) {
    CHECK(schedule_of(trial.candidate.strategy) != Schedule::Priority);
    if (!trial.step) ++failed;
  }
  CHECK(failed > 0);
  CHECK(schedule_of(result.best()->candidate.strategy) != Schedule::Sharded);
}

TEST_CASE("no trial begins once the cluster's time is spent", "[search]") {
  Lab lab;
  const SearchOptions all{.method = SearchMethod::Random, .trials = 30, .round = 5, .seed = 3, .steps_per_trial = 10};
  const SearchResult whole = search(lab.problem(), all);
  // Ten steps of every trial.
  double sum = 0.0;
  for (const Trial& trial : whole.trials) sum += 10.0 * trial.step->value();
  CHECK_THAT(whole.cluster_time.value(), WithinRel(sum, 1e-12));
  SearchOptions half = all;
  half.budget = 0.5 * whole.cluster_time;
  const SearchResult cut = search(lab.problem(), half);
  CHECK(cut.trials.size() < whole.trials.size());
  // What is spent when the last round begins is less than the budget, and that round is sized by the mean trial.
  double before = 0.0;
  for (const Trial& trial : cut.trials)
    if (trial.round < cut.trials.back().round) before += 10.0 * trial.step->value();
  CHECK(before < half.budget->value());
  CHECK(cut.cluster_time.value() > 0.8 * half.budget->value());
  // The trials that it has are those of the whole search.
  for (std::size_t i = 0; i < cut.trials.size(); ++i) CHECK(cut.trials[i].candidate.id == whole.trials[i].candidate.id);
}

TEST_CASE("builders that the budget does not pay for are not run", "[search]") {
  Lab lab;
  SearchProblem problem = lab.problem();
  problem.builders = {
      {"ddp", lab.builder("ddp")}, {"ps", lab.builder("ps")}, {"ddp", lab.builder("ddp")}, {"ps", lab.builder("ps")}};
  const Seconds first = lab.estimates.evaluate(lab.builder("ddp")).step;
  const Seconds second = lab.estimates.evaluate(lab.builder("ps")).step;
  // Ten steps of the first, and half of those of the second: that one begins, and nothing after it.
  SearchOptions options{.method = SearchMethod::Random, .trials = 5, .steps_per_trial = 10};
  options.budget = 10 * (first + 0.5 * second);
  const SearchResult result = search(problem, options);
  REQUIRE(result.trials.size() == 2);
  CHECK(result.trials[1].candidate.origin == "ps");
  CHECK(lab.first_of_batch == std::vector<int>{0});
  // Where trials take three times as long as predicted, the first ones show it: of the budget for ten trials of `ddp`
  // as predicted, ten of twelve run side by side, take all of it and more, and no other begins.
  problem.builders.assign(12, {"ddp", lab.builder("ddp")});
  int ran = 0;
  problem.run = [&](const std::vector<Candidate>& candidates, int, int) {
    std::vector<std::optional<Seconds>> out;
    for (const Candidate& candidate : candidates) out.emplace_back(3.0 * candidate.estimate.step);
    ran += static_cast<int>(candidates.size());
    return out;
  };
  options.budget = 10 * 9.5 * first;
  CHECK(search(problem, options).trials.size() == 10);
  CHECK(ran == 10);
}

TEST_CASE("a ranker learns only for methods that ask it", "[search]") {
  class Silent final : public Ranker {
  public:
    [[nodiscard]] double score(const std::vector<double>&) const override { throw std::logic_error("asked"); }
    [[nodiscard]] nlohmann::json weights() const override { return {}; }
  };
  const auto run = [&](SearchMethod method) {
    Lab lab(kSmall);
    SearchProblem problem = lab.problem();
    problem.source = TransferSource{.ranker = std::make_shared<Silent>(), .deviation = 1.0, .simulated_deviation = 1.0};
    return search(problem, {.method = method, .trials = 6, .round = 3, .candidates = 20}).trials.size();
  };
  CHECK(run(SearchMethod::Random) == 2 + 6);
  CHECK(run(SearchMethod::Exhaustive) == 2 + 6);
  for (const SearchMethod method : {SearchMethod::AutoSync, SearchMethod::Mutate, SearchMethod::Anneal})
    CHECK_THROWS_WITH(run(method), "asked");
}

TEST_CASE("where trials are real runs, the best tenth is replayed before trials are picked", "[search]") {
  // Replays say twice the estimate; trials agree with replays.
  class Twice final : public Evaluator {
  public:
    explicit Twice(Evaluator& estimates) : estimates_(estimates) {}
    Evaluation evaluate(const Strategy& strategy) override {
      ++count;
      Evaluation out = estimates_.evaluate(strategy);
      out.step *= 2.0;
      return out;
    }
    int count = 0;

  private:
    Evaluator& estimates_;
  };
  Lab lab;
  Twice replays(lab.estimates);
  SearchProblem problem = lab.problem();
  problem.replays = &replays;
  const SearchResult result = search(problem, {.trials = 4, .round = 4, .candidates = 200});
  for (const Trial& trial : result.trials) {
    REQUIRE(trial.candidate.replayed.has_value());
    CHECK_THAT(*trial.candidate.replayed / trial.candidate.estimate.step, WithinRel(2.0, 1e-12));
  }
  // Two builders, and a tenth of the 200 drawn (fewer where a draw cannot run).
  CHECK(replays.count <= 2 + 20);
  CHECK(replays.count >= 2 + 10);
}

TEST_CASE("a guided search tries no twins, and does not end because it has seen them", "[search]") {
  // Half of all draws are sharded, of which there are few that differ in what they do.
  const auto method = GENERATE(SearchMethod::Mutate, SearchMethod::AutoSync, SearchMethod::Anneal);
  const std::map<std::string, std::string> space{{"schedules", "wait-free,sharded"}};
  Lab lab(space);
  SearchProblem problem = lab.problem();
  problem.replays = &lab.estimates;
  const SearchResult result = search(problem, {.method = method, .trials = 60, .round = 10, .candidates = 100});
  CHECK(result.trials.size() == 2 + 60);
  std::vector<Seconds> sharded;
  for (const Trial& trial : result.trials)
    if (schedule_of(trial.candidate.strategy) == Schedule::Sharded) sharded.push_back(trial.candidate.estimate.step);
  std::sort(sharded.begin(), sharded.end());
  CHECK(std::adjacent_find(sharded.begin(), sharded.end()) == sharded.end());
}

TEST_CASE("a space that is too large is not searched exhaustively", "[search]") {
  Lab lab;
  CHECK_THROWS_AS(search(lab.problem(), {.method = SearchMethod::Exhaustive}), InputError);
}

TEST_CASE("the id of a strategy is that of its content", "[search]") {
  const Lab lab;
  Strategy named = lab.builder("ddp");
  const std::string id = strategy_id(named, lab.model.model);
  CHECK(id.size() == 12);
  named.name = "other";
  CHECK(strategy_id(named, lab.model.model) == id);
  named.graph.fusion.limit = {1};
  CHECK(strategy_id(named, lab.model.model) != id);
}

TEST_CASE("a table of trials says again what it was told", "[search]") {
  Lab lab;
  const SearchResult result = search(lab.problem(), {.trials = 3, .round = 3, .candidates = 6});
  std::string text = csv_row(trial_header()) + "\n";
  std::vector<TrialRow> written;
  for (const Trial& trial : result.trials) {
    written.push_back(trial_row(trial.candidate, lab.sampler.target(), 7));
    written.back().trial = trial.number;
    written.back().basis = {
        .settings = "seed=2;step_time=1s", .calibration = "c.yaml 0123456789ab", .runner = "simsync"};
    written.back().step = trial.number == 1 ? std::nullopt : trial.step;  // one that could not run
    text += csv_row(trial_cells(written.back())) + "\n";
  }
  const std::vector<TrialRow> read = read_trials(CsvTable::parse(text, "trials.csv"));
  REQUIRE(read.size() == 5);
  for (std::size_t i = 0; i < read.size(); ++i) {
    CHECK(read[i].trial == static_cast<int>(i));
    CHECK(read[i].step == written[i].step);
    CHECK(read[i].strategy_id == written[i].strategy_id);
    CHECK(read[i].batch == 7);
    CHECK(read[i].basis == written[i].basis);
    REQUIRE(read[i].features.size() == strategy_schema().names.size());
    for (std::size_t f = 0; f < read[i].features.size(); ++f)
      CHECK_THAT(read[i].features[f], WithinAbs(written[i].features[f], 1e-8 * std::abs(written[i].features[f])));
  }
  const auto break_it = [&](const std::string& from, const std::string& to) {
    std::string broken = text;
    broken.replace(broken.find(from), from.size(), to);
    return read_trials(CsvTable::parse(broken, "trials.csv"));
  };
  CHECK_THROWS_WITH(break_it("log_estimate", "log_guess"), ContainsSubstring("log_estimate"));
  CHECK_THROWS_WITH(break_it(",3,7,", ",3,,"), ContainsSubstring("'batch_per_worker' is empty"));
}
