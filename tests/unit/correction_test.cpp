// What measured strategies teach of predicted steps.
#include "strategies/search/correction.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/random.hpp"
#include "strategies/search/features.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

using Catch::Matchers::WithinAbs;

namespace {

std::size_t index_of(const std::string& name) {
  const auto& names = strategy_schema().names;
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

/// A strategy with so much of its bytes on servers, the rest all-reduced, and half of its step communication.
std::vector<double> features_of(double served, double cut = 0.0) {
  std::vector<double> out(strategy_schema().names.size(), 0.0);
  out[index_of("log_simulated")] = std::log(2.0);
  out[index_of("served_share")] = served;
  out[index_of("reduced_share")] = 1.0 - served;
  out[index_of("cut_share")] = cut;
  return out;
}

/// Servers take 40 % longer than predicted, collectives 5 %, and runs differ by 1 %.
std::vector<MeasuredStep> runs(int count, std::uint64_t seed) {
  Random random(seed);
  std::vector<MeasuredStep> out;
  for (int i = 0; i < count; ++i) {
    const double served = random.unit();
    const double noise = 0.01 * (2.0 * random.unit() - 1.0);
    out.push_back(
        {.features = features_of(served), .predicted = 0.5, .measured = 0.5 * (1.05 + 0.35 * served + noise)});
  }
  return out;
}

}  // namespace

TEST_CASE("what a dozen runs show is expected of others", "[search]") {
  const Correction correction = Correction::learn(runs(12, 3));
  for (const double served : {0.1, 0.5, 0.9}) {
    const StepFactor factor = correction.at(features_of(served));
    CAPTURE(served, factor.middle, factor.low, factor.high);
    CHECK_THAT(factor.middle, WithinAbs(1.05 + 0.35 * served, 0.02));
    CHECK(factor.low < 1.05 + 0.35 * served);
    CHECK(factor.high > 1.05 + 0.35 * served);
    CHECK(factor.high / factor.low < 1.15);
  }
}

TEST_CASE("90 % of new runs are within the interval of a correction", "[search]") {
  const Correction correction = Correction::learn(runs(30, 5));
  int within = 0;
  const std::vector<MeasuredStep> others = runs(400, 6);
  for (const MeasuredStep& run : others) {
    const StepFactor factor = correction.at(run.features);
    const double measured = run.measured / run.predicted;
    within += factor.low <= measured && measured <= factor.high ? 1 : 0;
  }
  CAPTURE(within);
  CHECK(within >= 340);
}

TEST_CASE("of strategies unlike all that ran a correction says less", "[search]") {
  const Correction correction = Correction::learn(runs(12, 3));
  const StepFactor known = correction.at(features_of(0.5));
  const StepFactor unknown = correction.at(features_of(0.5, 1.0));
  CHECK(unknown.high / unknown.low > known.high / known.low);
}

TEST_CASE("where predictions are right nothing is corrected", "[search]") {
  std::vector<MeasuredStep> exact = runs(10, 4);
  for (MeasuredStep& step : exact) step.measured = step.predicted;
  CHECK_THAT(Correction::learn(exact).at(features_of(0.7)).middle, WithinAbs(1.0, 1e-6));
}

TEST_CASE("an error of a left-out run is that of a correction without it", "[search]") {
  const std::vector<MeasuredStep> all = runs(9, 8);
  const Correction correction = Correction::learn(all);
  int same_kernel = 0;
  for (std::size_t left = 0; left < all.size(); ++left) {
    std::vector<MeasuredStep> others = all;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left));
    const Correction without = Correction::learn(others);
    if (!(without.kernel() == correction.kernel())) continue;  // it chose another one
    ++same_kernel;
    const double middle = without.at(all[left].features).middle;
    CHECK_THAT(correction.left_out_errors()[left],
               WithinAbs(std::log(all[left].measured / all[left].predicted / middle), 1e-9));
  }
  CHECK(same_kernel >= 3);
}

TEST_CASE("a correction is read back as it was written, and another file is refused", "[search]") {
  const SavedCorrection saved{.models = {"vgg16"}, .clusters = {"lab"}, .correction = Correction::learn(runs(5, 1))};
  const SavedCorrection again = SavedCorrection::read(saved.to_json(), "c.json");
  CHECK(again.models == saved.models);
  CHECK(again.to_json() == saved.to_json());
  CHECK(again.correction.at(features_of(0.3)).middle == saved.correction.at(features_of(0.3)).middle);
  CHECK_THROWS_WITH(SavedCorrection::read("{}", "c.json"), ContainsSubstring("not a correction"));
  CHECK_THROWS_WITH(SavedCorrection::read("nothing", "c.json"), ContainsSubstring("not a correction"));
  std::string shorter = saved.to_json();
  shorter.replace(shorter.find("\"places\""), 8, "\"other\"");
  CHECK_THROWS_WITH(SavedCorrection::read(shorter, "c.json"), ContainsSubstring("not a correction"));
}

TEST_CASE("a correction keeps what its trials rest on, as far as all of them tell", "[search]") {
  TrialRow trial{.step = Seconds{1.0}, .estimated = Seconds{1.0}, .bound = {}, .replayed = {}, .evaluator = "measure"};
  trial.features = features_of(0.5);
  trial.model = "vgg16";
  trial.cluster = "lab";
  trial.workers = 4;
  trial.batch = 32;
  trial.basis = {.settings = "step_time=100ms", .calibration = "c.yaml 0123456789ab", .runner = kOwnRunner};
  TrialRow other = trial;
  other.workers = 8;
  other.basis->settings = "step_time=200ms";
  const SavedCorrection learned = learn_correction({trial, other});
  const SavedCorrection again = SavedCorrection::read(learned.to_json(), "c.json");
  CHECK(again.workers == std::set<int>{4, 8});
  CHECK(again.batches == std::set<std::int64_t>{32});
  REQUIRE(again.basis.has_value());
  CHECK(*again.basis == CorrectionBasis{.settings = {"step_time=100ms", "step_time=200ms"},
                                        .calibrations = {"c.yaml 0123456789ab"},
                                        .runners = {kOwnRunner}});
  // One trial of an older table: what holds for all of them is not known.
  other.basis.reset();
  CHECK_FALSE(learn_correction({trial, other}).basis.has_value());
  // An older file has models and clusters only.
  std::string older = again.to_json();
  const std::size_t from = older.find(R"(],
  "workers")");
  REQUIRE(from != std::string::npos);
  const std::size_t to = older.find(R"( },
 "kernel")");
  REQUIRE(to != std::string::npos);
  older.replace(from, to - from, "]\n");
  const SavedCorrection read = SavedCorrection::read(older, "c.json");
  CHECK(read.models == std::set<std::string>{"vgg16"});
  CHECK(read.workers.empty());
  CHECK_FALSE(read.basis.has_value());
}

TEST_CASE("a correction is learned from real runs only", "[search]") {
  TrialRow trial{.step = Seconds{1.0}, .estimated = Seconds{1.0}, .bound = {}, .replayed = {}, .evaluator = "measure"};
  trial.features = features_of(0.5);
  TrialRow simulated = trial;
  simulated.evaluator = "replay";
  CHECK_THROWS_WITH(learn_correction({trial, simulated}), ContainsSubstring("not measured"));
  CHECK_THROWS_WITH(learn_correction({trial}), ContainsSubstring("two measured strategies"));
  TrialRow slower = trial;
  slower.replayed = Seconds{0.5};  // rather than the estimate
  const SavedCorrection learned = learn_correction({slower, slower, slower});
  CHECK_THAT(learned.correction.errors().front(), WithinAbs(std::log(2.0), 1e-12));
}
