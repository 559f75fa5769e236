// Fits against a predictor whose parameters are known, and which of them are refused or distrusted.
#include "validate/fit.hpp"

#include <algorithm>
#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/unit/fake_study.hpp"
#include "validate/comparison.hpp"
#include "validate/evaluate.hpp"

using namespace simsync;
using namespace simsync::test;

TEST_CASE("a fit finds the least of a bounded function, robustly", "[validate]") {
  // Four points on y = 0.3 x + 0.6 and one far outlier; Huber's loss keeps the line near the four.
  const std::vector<double> x{0.0, 1.0, 2.0, 3.0, 4.0};
  std::vector<double> y;
  for (const double v : x) y.push_back(0.3 * v + 0.6);
  const auto residuals = [&](const std::vector<double>& p) {
    std::vector<double> out;
    for (std::size_t i = 0; i < x.size(); ++i) out.push_back(p[0] * x[i] + p[1] - y[i]);
    return out;
  };
  SECTION("exact data are reproduced") {
    const FitResult r = fit_shares(2, residuals);
    CHECK_THAT(r.shares[0], WithinAbs(0.3, 1e-4));
    CHECK_THAT(r.shares[1], WithinAbs(0.6, 1e-4));
    CHECK(r.rms < 1e-4);
  }
  SECTION("an outlier moves it little") {
    // Unweighted least squares would put the slope at 0.3 + 0.2 * 5 = 1.3, beyond the bound.
    y[4] += 5.0;
    CHECK(fit_shares(2, residuals, {.robust_scale = 0.01}).shares[0] < 0.45);
  }
  SECTION("a solution outside ends at the bound") {
    for (double& v : y) v += 1.0;
    CHECK(fit_shares(2, residuals).shares[1] == 1.0);
  }
  SECTION("a parameter that nothing depends on has no small spread") {
    const FitResult r = fit_shares(1, [](const std::vector<double>&) { return std::vector<double>{0.1}; });
    CHECK(r.spread[0] > 1.0);
  }
}

TEST_CASE("fits where one cost takes over from another: what they find and how often they ask", "[validate]") {
  // Times of messages: two costs and two rates, each on a logarithmic axis, with kinks where one takes over.
  const std::vector<double> truth{0.3, 0.7, 0.45, 0.62};
  const auto model = [](const std::vector<double>& shares) {
    std::vector<double> out;
    for (double size = 1.0; size < 1e6; size *= 2.0) {
      const double wire = std::max(std::pow(10.0, 3.0 * shares[0]), size / std::pow(10.0, 2.0 * shares[1]));
      const double host = std::max(std::pow(10.0, 2.0 * shares[2]), size / std::pow(10.0, 4.0 * shares[3]));
      out.push_back(std::log(wire));
      out.push_back(std::log(wire + host));
    }
    return out;
  };
  const auto at_truth = model(truth);
  std::vector<std::vector<double>> asked;
  const ResidualFunction residuals = [&](const std::vector<double>& shares) {
    asked.push_back(shares);
    auto values = model(shares);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] -= at_truth[i] + 0.01 * std::sin(static_cast<double>(i));
    return values;
  };
  SECTION("a search of all") {
    const FitResult found = fit_shares(4, residuals, {.followed = 3, .costly = true});
    for (std::size_t p = 0; p < truth.size(); ++p) CHECK_THAT(found.shares[p], WithinAbs(truth[p], 0.01));
    // 200 points; 8 starts of 8 steps and 3 of 40, each with 9 evaluations for its derivatives and a few for its
    // length.
    CHECK(found.evaluations < 200 + (8 * 8 + 3 * 40) * 12);
  }
  SECTION("a search that leaves three as they were found before") {
    const FitResult found =
        fit_shares(4, residuals, {.followed = 3, .costly = true, .held = {std::nullopt, 0.65, 0.5, 0.6}});
    constexpr std::size_t kPoints = 9;
    REQUIRE(asked.size() > kPoints);
    for (std::size_t i = 0; i < kPoints; ++i)
      CHECK(std::vector<double>(asked[i].begin() + 1, asked[i].end()) == std::vector<double>{0.65, 0.5, 0.6});
    for (std::size_t p = 0; p < truth.size(); ++p) CHECK_THAT(found.shares[p], WithinAbs(truth[p], 0.01));
  }
}

TEST_CASE("a parameter is identified up to a quarter of its range", "[validate]") {
  // b4 takes 1.95 s, of which 0.2 s are 200 launches of 1 ms, at 2 GB/s. On a logarithmic range of ratio r around 1 ms
  // an error of 1 % moves the share by 0.01 * 1.95 / (0.2 ln r): 0.240 for r = 1.5, 0.262 for r = 1.45.
  const StudyFolder folder(kTable);
  const auto evaluated = [&](const std::string& range) {
    FakePredictor predictor;
    return evaluate(folder.parse(kHead +
                                 "settings: [{set: {link.ethernet.per_flow_cap: 2GB/s}}]\n"
                                 "calibrate:\n"
                                 "  step_time: {where: {gpus: 1}, key: [model]}\n"
                                 "  fit:\n"
                                 "    - parameters: [{key: collective.launch, " +
                                 range +
                                 "}]\n"
                                 "      rows: {where: {id: b4}}\n"),
                    predictor);
  };
  const StudyResult wide = evaluated("low: 0.8165ms, high: 1.2247ms");
  CHECK_THAT(wide.parameters[0].spread, WithinRel(0.2405, 0.005));
  CHECK_FALSE(wide.parameters[0].at_bound);
  CHECK(wide.notes.empty());
  CHECK_THAT(test::error_of([&] { (void)evaluated("low: 0.8305ms, high: 1.2042ms"); }),
             ContainsSubstring("a measurement error of 1 % moves it over 26 % of its range"));
}

TEST_CASE("fits to distrust are noted and do not fail a study", "[validate]") {
  const StudyFolder folder(kTable);
  const auto evaluated = [&](const std::string& parameter, const std::string& rows) {
    FakePredictor predictor;
    std::string text = kHead +
                       "calibrate:\n  step_time: {where: {gpus: 1}, key: [model]}\n  fit:\n    - parameters: [" +
                       parameter + "]\n      rows: {where: {id: " + rows + "}}\n";
    text.replace(text.find("mape_pct: 1,"), 12, "mape_pct: 50,");
    return evaluate(folder.parse(text), predictor);
  };
  SECTION("at a bound") {
    // 0.95 s of b4 is communication; without launches that asks for 1.58 GB/s.
    const StudyResult r = evaluated("{key: link.ethernet.per_flow_cap, low: 100MB/s, high: 1.5GB/s}", "b4");
    CHECK(r.parameters[0].at_bound);
    REQUIRE(r.notes.size() == 1);
    CHECK(r.notes[0] ==
          "'link.ethernet.per_flow_cap' (calibrate.fit[0]) stands at the upper end of its range, 1.5e+09B/s: its rows "
          "may "
          "ask for a value beyond");
    CHECK(r.passed());
    CHECK_THAT(describe(r), ContainsSubstring("  note: 'link.ethernet.per_flow_cap'"));
  }
  SECTION("far from its own rows") {
    // b4 asks for 1.58 GB/s, s4 (0.175 s for 0.15 GB) for 0.86 GB/s: with 1 GB/s they are 28 and 9 % off.
    const StudyResult r = evaluated("{key: link.ethernet.per_flow_cap, low: 100MB/s, high: 50GB/s}", "[b4, s4]");
    REQUIRE(r.notes.size() == 1);
    CHECK_THAT(r.notes[0],
               ContainsSubstring("link.ethernet.per_flow_cap (calibrate.fit[0]): the rows that it is fitted to are"));
  }
}

TEST_CASE("a parameter that its rows do not depend on is refused by name", "[validate]") {
  const StudyFolder folder(kTable);
  // On one GPU nothing is sent.
  const Study study = folder.parse(kHead +
                                   "calibrate:\n"
                                   "  step_time: {where: {gpus: 1}, key: [model]}\n"
                                   "  fit:\n"
                                   "    - parameters:\n"
                                   "        - {key: collective.launch, low: 0s, high: 10ms}\n"
                                   "      rows: {where: {id: b1}}\n");
  FakePredictor predictor;
  CHECK(
      test::error_of([&] { (void)evaluate(study, predictor); }) ==
      "study.yaml:16:11: error: its rows cannot identify 'collective.launch': a measurement error of 1 % moves it over "
      "its whole range\n"
      "  key:  calibrate.fit[0]\n"
      "  help: give rows whose step time depends on it, or fix its value under 'settings'");
}

TEST_CASE("two parameters that one row cannot tell apart are refused", "[validate]") {
  const StudyFolder folder(kTable);
  FakePredictor predictor;
  const Study one_row = folder.parse(kHead + kFitBoth + "b2}}\n");
  CHECK_THAT(test::error_of([&] { (void)evaluate(one_row, predictor); }),
             ContainsSubstring("2 parameters need at least as many rows, got 1"));
}

TEST_CASE("scales walk from bound to bound and write their unit", "[validate]") {
  const Scale rate{Dimension::Rate, true};
  CHECK_THAT(rate.at(0.5, 1e8, 1e10), WithinRel(1e9, 1e-12));  // the geometric mean
  CHECK_THAT(rate.share_of(1e9, 1e8, 1e10), WithinRel(0.5, 1e-12));
  CHECK(rate.text(1.25e9) == "1.25e+09B/s");
  CHECK(parse_bandwidth(rate.text(1.25e9))->value() == 1.25e9);
  const Scale time{Dimension::Time, false};
  CHECK(time.at(0.25, 0.0, 4.0) == 1.0);
  CHECK(time.text(2e-5) == "2e-05s");
  CHECK(Scale{Dimension::Size, true}.text(65536.4) == "65536B");
  CHECK(Scale{}.text(0.5) == "0.5");
}

TEST_CASE("a fit that leaves out in turn never sees what it is set for", "[validate]") {
  // The last row of `big` is wrong on purpose: the rate that `small` gets follows from it, that of `big` does not.
  std::string table = kTable;
  table.replace(table.find("b8,big,8,2.075"), 14, "b8,big,8,2.950");
  const StudyFolder folder(table);
  FakePredictor predictor;
  const std::string study = kHead +
                            "settings: [{set: {collective.launch: 1ms}}]\n"
                            "calibrate:\n"
                            "  step_time: {where: {gpus: 1}, key: [model]}\n"
                            "  fit:\n"
                            "    - parameters: [{key: link.ethernet.per_flow_cap, low: 100MB/s, high: 50GB/s}]\n"
                            "      rows: {where: {gpus: [1, 8]}}\n"
                            "      leave_out: model\n";
  const auto result = evaluate(folder.parse(study), predictor);
  REQUIRE(result.parameters.size() == 2);
  CHECK(result.parameters[0].left_out == "model=big");
  CHECK(result.parameters[0].rows == 2);
  // From small: 0.0875 s for 2 * 7/8 * 1e8 bytes: 2 GB/s.
  CHECK_THAT(parse_bandwidth(result.parameters[0].value)->value(), WithinRel(2e9, 1e-2));
  // From big: 2.95 - 1 - 0.2 = 1.75 s for 1.75e9 bytes: 1 GB/s.
  CHECK_THAT(parse_bandwidth(result.parameters[1].value)->value(), WithinRel(1e9, 1e-2));
  CHECK_THAT(result.cases[2].predicted.value(), WithinRel(1.95, 5e-3));              // b4
  CHECK_THAT(result.cases[6].predicted.value(), WithinRel(0.1 + 0.15 + 0.1, 5e-3));  // s4 at 1 GB/s
  CHECK(result.cases[3].the_case.role == CaseRole::Scored);
}

TEST_CASE("rows that a fit sets nothing for say what others get", "[validate]") {
  // `big` on eight workers says 2 GB/s, and only `small` is predicted with it; `big` keeps the 1 GB/s of the study.
  const StudyFolder folder(kTable);
  FakePredictor predictor;
  const auto result =
      evaluate(folder.parse(kHead + "settings: [{set: {collective.launch: 1ms, link.ethernet.per_flow_cap: 1GB/s}}]\n"
                                    "calibrate:\n"
                                    "  step_time: {where: {gpus: 1}, key: [model]}\n"
                                    "  fit:\n"
                                    "    - parameters: [{key: link.ethernet.per_flow_cap, low: 100MB/s, high: 50GB/s, "
                                    "where: {model: small}}]\n"
                                    "      rows: {where: {gpus: 8}}\n"
                                    "      leave_out: model\n"),
               predictor);
  REQUIRE(result.parameters.size() == 1);
  CHECK(result.parameters[0].left_out == "model=small");
  CHECK_THAT(parse_bandwidth(result.parameters[0].value)->value(), WithinRel(2e9, 1e-2));
  CHECK(result.cases[3].the_case.role == CaseRole::Calibration);  // b8
  CHECK(result.cases[7].the_case.role == CaseRole::Scored);       // s8
  CHECK_THAT(result.cases[2].predicted.value(), WithinRel(1.0 + 1.5 + 0.2, 1e-6));
  CHECK_THAT(result.cases[6].predicted.value(), WithinRel(0.275, 5e-3));
}

TEST_CASE("a fit to saturated rows asks for no replay", "[validate]") {
  // A server that is busy 10 ms a step of each worker: eight workers that wait for nothing else make a step each in 80
  // ms.
  class Queue : public FakePredictor {
  public:
    ClosedNetwork network(const PredictRequest& request) override {
      const double demand = parse_seconds(setting(request, "collective.launch", "0s"))->value();
      return {Seconds{1.0}, {{"link", Seconds{1e-4}}, {"server", Seconds{demand}}}};
    }
  };
  const StudyFolder folder("id,model,gpus,seconds\nq1,a,1,0.05\nq8,a,8,0.08\n");
  Queue predictor;
  const std::string fit =
      "calibrate:\n"
      "  fit:\n"
      "    - parameters: [{key: collective.launch, low: 1ms, high: 50ms}]\n"
      "      rows: {where: {id: q8}}\n"
      "      by: saturation\n";
  const auto result = evaluate(folder.parse(kHead + fit), predictor);
  CHECK_THAT(parse_seconds(result.parameters.at(0).value)->value(), WithinRel(10e-3, 1e-3));
  CHECK(predictor.calls == 2);  // the two cases
  FakePredictor without;
  CHECK_THROWS_WITH(evaluate(folder.parse(kHead + fit), without),
                    ContainsSubstring("case 'q8': no closed form is known of 'ddp'"));
}
