// Metrics by hand, which rows are scored, and what reaches the predictor.
#include <algorithm>
#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/unit/fake_study.hpp"
#include "validate/comparison.hpp"
#include "validate/evaluate.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

Sample sample(const std::string& group, double measured, double predicted) {
  return {group, Seconds{measured}, Seconds{predicted}};
}

}  // namespace

TEST_CASE("error metrics follow their definitions", "[validate]") {
  // Errors +10 %, -20 %, 0 %: mean of absolutes 10 %; rank ceil(0.9 * 3) = 3, so p90 is the largest, 20 %.
  const std::vector<Sample> three{sample("a", 1.0, 1.1), sample("a", 2.0, 1.6), sample("a", 4.0, 4.0)};
  CHECK_THAT(error_pct(three[0]), WithinRel(10.0, 1e-12));
  CHECK_THAT(error_pct(three[1]), WithinRel(-20.0, 1e-12));
  CHECK_THAT(mean_absolute_error_pct(three), WithinRel(10.0, 1e-12));
  CHECK_THAT(p90_error_pct(three), WithinRel(20.0, 1e-12));
  // Ten samples with errors 1 ... 10 %: rank 9, the ninth smallest.
  std::vector<Sample> ten;
  for (int i = 10; i >= 1; --i) ten.push_back(sample("a", 100.0, 100.0 + i));
  CHECK_THAT(p90_error_pct(ten), WithinRel(9.0, 1e-9));
  // Errors 2 ... 10 %: rank ceil(8.1) = 9, so the largest; rounding to the nearest would give the eighth.
  CHECK_THAT(p90_error_pct({ten.begin(), ten.end() - 1}), WithinRel(10.0, 1e-9));
  CHECK(mean_absolute_error_pct({}) == 0.0);
  CHECK(p90_error_pct({}) == 0.0);
}

TEST_CASE("pairs are ranked within groups and beyond the stated error", "[validate]") {
  // Group a, measured 1, 2, 3 and predicted 1, 3, 2: pairs (1,2) right, (1,3) right, (2,3) wrong -> 2/3.
  // tau-b: C = 2, D = 1, no ties: (2 - 1) / 3.
  std::vector<Sample> samples{sample("a", 1.0, 1.0), sample("a", 2.0, 3.0), sample("a", 3.0, 2.0)};
  Ranking r = ranking(samples, 1.0);
  CHECK(r.pairs == 3);
  CHECK(r.within_error == 0);
  CHECK_THAT(r.accuracy.value(), WithinRel(2.0 / 3.0, 1e-12));
  CHECK_THAT(r.kendall_tau.value(), WithinRel(1.0 / 3.0, 1e-12));
  SECTION("a pair of another group is not looked at") {
    samples.push_back(sample("b", 0.5, 9.0));
    CHECK(ranking(samples, 1.0).pairs == 3);
  }
  SECTION("a pair within the stated error is left out of the accuracy") {
    // 2.0 and 2.01 differ by 0.5 %. Pairs left: (1,2) (1,3) (2,3) (1,2.01) (2.01,3); 2.01 is predicted 2.5.
    samples.push_back(sample("a", 2.01, 2.5));
    r = ranking(samples, 1.0);
    CHECK(r.pairs == 5);
    CHECK(r.within_error == 1);
    CHECK_THAT(r.accuracy.value(), WithinRel(3.0 / 5.0, 1e-12));
  }
  SECTION("equal predictions count one half") {
    // Measured 1, 2 predicted 5, 5: accuracy 0.5; tau-b has no pair untied in both, so there is none.
    r = ranking({sample("a", 1.0, 5.0), sample("a", 2.0, 5.0)}, 1.0);
    CHECK(r.accuracy.value() == 0.5);
    CHECK_FALSE(r.kendall_tau.has_value());
  }
  SECTION("without pairs there is no accuracy, and none is perfect") {
    r = ranking({sample("a", 1.0, 5.0), sample("b", 2.0, 5.0)}, 1.0);
    CHECK(r.pairs == 0);
    CHECK_FALSE(r.accuracy.has_value());
    CHECK_FALSE(r.kendall_tau.has_value());
  }
  SECTION("ties in the measured times shrink the denominator of tau-b") {
    // Measured 1, 1, 2 predicted 1, 2, 3: C = 2, D = 0, pairs 3, measured ties 1: 2 / sqrt(2 * 3).
    r = ranking({sample("a", 1.0, 1.0), sample("a", 1.0, 2.0), sample("a", 2.0, 3.0)}, 1.0);
    CHECK_THAT(r.kendall_tau.value(), WithinRel(2.0 / std::sqrt(6.0), 1e-12));
    CHECK(r.pairs == 2);
  }
}

TEST_CASE("a study recovers the parameters and scores only the rows that it did not use", "[validate]") {
  const StudyFolder folder(kTable);
  const Study study = folder.parse(kHead + kCalibrate);
  FakePredictor predictor;
  const StudyResult result = evaluate(study, predictor);
  REQUIRE(result.parameters.size() == 2);
  CHECK_THAT(parse_bandwidth(result.parameters[0].value)->value(), WithinRel(2e9, 0.01));
  CHECK_THAT(parse_seconds(result.parameters[1].value)->value(), WithinRel(1e-3, 0.02));
  CHECK(result.parameters[0].rows == 2);
  // Eight rows: b1 and s1 give step_time, b4 and s4 the parameters.
  CHECK(result.cases.size() == 8);
  CHECK(result.summary.cases == 4);
  CHECK(result.summary.calibration == 4);
  CHECK(result.summary.mape_pct < 0.5);
  CHECK(result.summary.ranking.pairs == 2);  // (b2, b8) and (s2, s8): models are not ranked against each other
  CHECK(result.summary.ranking.accuracy.value() == 1.0);
  CHECK(result.passed());
  CHECK(FakePredictor::setting(result.cases[1].the_case.request, "step_time", "") == "1s");
  CHECK(FakePredictor::setting(result.cases[5].the_case.request, "step_time", "") == "0.1s");
}

TEST_CASE("findings: missed tolerance, closed deviation, failed prediction", "[validate]") {
  const StudyFolder folder(kTable);
  FakePredictor predictor;
  const std::string calibrate = "calibrate:\n  step_time: {where: {gpus: 1}, key: [model]}\n";
  SECTION("an uncalibrated rate misses the tolerance") {
    const StudyResult r = evaluate(folder.parse(kHead + calibrate), predictor);
    REQUIRE(r.findings.size() == 1);
    // Rate 1 GB/s, launch 0: big +17.6, +28.2, +32.5 % off by hand: (2.0, 2.5, 2.75) against (1.7, 1.95, 2.075);
    // small (0.2, 0.25, 0.275) against (0.25, 0.275, 0.2875): -20, -9.1, -4.3. Mean of absolutes 18.64.
    CHECK(r.findings[0] == "mape_pct is 18.64, allowed are 1");
  }
  SECTION("a deviation is asserted to be one") {
    const StudyResult r = evaluate(folder.parse(kHead + kCalibrate +
                                                "deviations:\n"
                                                "  - {where: {id: [b8]}, entry: D1, beyond_pct: 5}\n"),
                                   predictor);
    REQUIRE(r.findings.size() == 1);
    CHECK_THAT(r.findings[0], ContainsSubstring("case 'b8' is listed under 'D1' as more than 5 % off and is only"));
    CHECK(r.summary.deviations == 1);
    CHECK(r.summary.cases == 3);
  }
  SECTION("a deviation that stays in the score is asserted all the same") {
    const StudyResult r = evaluate(folder.parse(kHead + kCalibrate +
                                                "deviations:\n"
                                                "  - {where: {id: [b8]}, entry: D1, beyond_pct: 5, scored: true}\n"),
                                   predictor);
    REQUIRE(r.findings.size() == 1);
    CHECK_THAT(r.findings[0], ContainsSubstring("case 'b8' is listed under 'D1' as more than 5 % off and is only"));
    CHECK(r.summary.deviations == 0);
    CHECK(r.summary.cases == 4);
  }
  SECTION("a case that cannot be planned is a finding, not the end") {
    std::string text = kHead + kCalibrate;
    text.replace(text.find("strategy: ddp"), 13,
                 "strategy: {column: id, values: {b1: ddp, b2: impossible, b4: ddp, "
                 "b8: ddp, s1: ddp, s2: ddp, s4: ddp, s8: ddp}}");
    const StudyResult r = evaluate(folder.parse(text), predictor);
    REQUIRE(r.findings.size() == 1);
    CHECK(r.findings[0] == "case 'b2': no such wire");
    CHECK(comparison_rows(r)[1] ==
          "fake,b2,big,two-nodes,impossible,2,1.7,,,8,scored,,"
          "collective.launch=0.001s;link.ethernet.per_flow_cap=2e+09B/s;step_time=1s,"
          "simsync predict --model big --cluster two-nodes --strategy impossible --workers 2 --batch 8 "
          "--set step_time=1s --set link.ethernet.per_flow_cap=2e+09B/s --set collective.launch=0.001s,,");
  }
}

TEST_CASE("units of measured values become seconds of one step", "[validate]") {
  const StudyFolder folder(kTable);
  // Row b2: 2 workers, batch 8, value 1.7.
  const auto step = [&](const std::string& unit) {
    std::string text = kHead;
    text.replace(text.find("unit: s}"), 8, "unit: " + unit + "}");
    return measured_step(folder.parse(text), 1, 2, 8).value();
  };
  CHECK_THAT(step("s"), WithinRel(1.7, 1e-12));
  CHECK_THAT(step("ms"), WithinRel(1.7e-3, 1e-12));
  CHECK_THAT(step("samples_per_s"), WithinRel(8.0 * 2 / 1.7, 1e-12));
  CHECK_THAT(step("samples_per_s_per_worker"), WithinRel(8.0 / 1.7, 1e-12));
}

TEST_CASE("settings reach the predictor in the order of the study", "[validate]") {
  const StudyFolder folder("id,model,gpus,place,seconds\nx,a,3,\"1,2\",1\ny,b,3,\"2,1\",1\n");
  const Study study = folder.parse(
      "schema: simsync/study/v1\nname: s\nreference: table.csv\n"
      "case:\n  model: {column: model, values: {a: {name: vgg16, set: {precision: amp}}, b: ./mine.yaml}}\n"
      "  cluster: c\n  strategy: {name: ddp, set: {strategy.bucket: 4MiB}}\n  workers: {column: gpus}\n  batch: 4\n"
      "measured: {column: seconds, unit: s}\ntolerance: {mape_pct: 1}\n"
      "settings:\n  - {key: placement, column: place}\n  - {set: {iterations: 9}, except: {id: y}}\n");
  const auto cases = cases_of(study);
  const Settings first{{"placement", "1,2"}, {"iterations", "9"}, {"precision", "amp"}, {"strategy.bucket", "4MiB"}};
  CHECK(cases[0].request.settings == first);
  CHECK(cases[0].request.model == "vgg16");
  const Settings second{{"placement", "2,1"}, {"strategy.bucket", "4MiB"}};
  CHECK(cases[1].request.settings == second);
  CHECK_THAT(cases[1].request.model, ContainsSubstring("mine.yaml"));
}

TEST_CASE("the same study twice gives the same bytes", "[validate]") {
  const StudyFolder folder(kTable);
  const Study study = folder.parse(kHead + kCalibrate);
  FakePredictor predictor;
  const StudyResult a = evaluate(study, predictor);
  const StudyResult b = evaluate(study, predictor);
  CHECK(comparison_rows(a) == comparison_rows(b));
  CHECK(summary_row(a) == summary_row(b));
  CHECK(describe(a) == describe(b));
  CHECK(
      comparison_header().starts_with("study,case,model,cluster,strategy,workers,measured_step_time_s,"
                                      "predicted_step_time_s,error_pct"));
}

TEST_CASE("cases that other processes predict are told as those of this one", "[validate]") {
  /// With an interval, which has digits of its own.
  struct WithInterval : FakePredictor {
    Answer answer(const PredictRequest& request) override {
      const Seconds step = step_time(request);
      return {step, StepInterval{step / 3.0, 1.1 * step}};
    }
  } predictor;
  const StudyFolder folder(kTable);
  std::string text = kHead + kCalibrate;
  text.replace(text.find("strategy: ddp"), 13,
               "strategy: {column: id, values: {b1: ddp, b2: impossible, b4: ddp, "
               "b8: ddp, s1: ddp, s2: ddp, s4: ddp, s8: ddp}}");
  const Study study = folder.parse(text);
  const StudyResult here = evaluate(study, predictor);
  const StudyResult elsewhere = evaluate(
      study, predictor, {.progress = {}, .cases = {}, .side_by_side = [](std::size_t count, auto work, auto done) {
                           std::vector<std::string> texts(count);
                           for (std::size_t i = count; i-- > 0;) texts[i] = work(i);
                           for (std::size_t i = 0; i < count; ++i) done(i, texts[i]);
                         }});
  REQUIRE(here.cases.size() == 8);
  CHECK(here.cases[1].failure == "case 'b2': no such wire");
  CHECK(comparison_rows(here) == comparison_rows(elsewhere));
  CHECK(summary_row(here) == summary_row(elsewhere));
  for (std::size_t i = 0; i < here.cases.size(); ++i) {
    CHECK(here.cases[i].predicted == elsewhere.cases[i].predicted);
    REQUIRE(here.cases[i].interval.has_value() == elsewhere.cases[i].interval.has_value());
    if (here.cases[i].interval) CHECK(here.cases[i].interval->low == elsewhere.cases[i].interval->low);
  }
}

TEST_CASE("compute follows from a whole step where a study says so", "[validate]") {
  // The rows on two workers hold 0.5 + 0.2 s and 0.05 + 0.1 s besides compute: 1.0 and 0.1 s are left.
  const StudyFolder folder(kTable);
  FakePredictor predictor;
  const auto result =
      evaluate(folder.parse(kHead + "settings: [{set: {link.ethernet.per_flow_cap: 2GB/s, collective.launch: 1ms}}]\n"
                                    "calibrate: {step_time: {where: {gpus: 2}, key: [model], of: step}}\n"),
               predictor);
  CHECK(result.passed());
  CHECK(result.summary.calibration == 2);
  CHECK(result.summary.cases == 6);
  CHECK(result.summary.mape_pct < 0.2);
  CHECK_THAT(result.cases[0].predicted.value(), WithinRel(1.0, 2e-3));
  // One worker shares nothing, so its step is its compute; each was found once, in a few questions, and then kept.
  CHECK(predictor.calls < 8 + 2 * 5);
}

TEST_CASE("what no compute explains is told", "[validate]") {
  const StudyFolder folder(kTable);
  FakePredictor predictor;
  const auto result =
      evaluate(folder.parse(kHead + "settings: [{set: {link.ethernet.per_flow_cap: 200MB/s}}]\n"
                                    "calibrate: {step_time: {where: {gpus: 2}, key: [model], of: step}}\n"),
               predictor);
  // 1e9 bytes at 200 MB/s take 5 s where 1.7 s were measured; 1e8 bytes 0.5 s where 0.25 s were.
  REQUIRE_FALSE(result.findings.empty());
  CHECK_THAT(result.findings.front(),
             ContainsSubstring("case 'b2' is +194.") && ContainsSubstring("alone take longer than its step"));
}
