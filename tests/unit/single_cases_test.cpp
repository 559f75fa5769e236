// Single cases of a study, the commands that repeat them, and what was fitted for them.
#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/unit/fake_study.hpp"
#include "validate/command.hpp"
#include "validate/comparison.hpp"
#include "validate/evaluate.hpp"
#include "validate/fitted_calibration.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

/// Two fits, one for each model.
const std::string kFitEach =
    "calibrate:\n"
    "  step_time: {where: {gpus: 1}, key: [model]}\n"
    "  fit:\n"
    "    - parameters: [{key: link.ethernet.per_flow_cap, low: 100MB/s, high: 50GB/s, where: {model: big}}]\n"
    "      rows: {where: {id: b4}}\n"
    "    - parameters: [{key: link.ethernet.per_flow_cap, low: 100MB/s, high: 50GB/s, where: {model: small}}]\n"
    "      rows: {where: {id: s4}}\n";

std::vector<std::string> ids(const StudyResult& result) {
  std::vector<std::string> out;
  for (const auto& c : result.cases) out.push_back(c.the_case.id);
  return out;
}

}  // namespace

TEST_CASE("a question is a command, quoted for the shell", "[validate]") {
  PredictRequest request{.model = "my models/a.yaml", .cluster = "dgx-1", .strategy = "it's.yaml", .workers = 3};
  CHECK(command_of(request) ==
        "simsync predict --model 'my models/a.yaml' --cluster dgx-1 --strategy 'it'\\''s.yaml' --workers 3");
  request.batch = 4;
  request.calibration = "cal.yaml";
  // In their order, also of a key that is set twice: the last one counts.
  request.settings = {{"placement", "1,2"}, {"group.*.cpu.threads", "3"}, {"placement", "2,1"}};
  request.strategy = "ddp";
  request.model = "vgg16";
  CHECK(command_of(request) ==
        "simsync predict --model vgg16 --cluster dgx-1 --strategy ddp --workers 3 --batch 4 --calibration cal.yaml "
        "--set placement=1,2 --set 'group.*.cpu.threads=3' --set placement=2,1");
}

TEST_CASE("a case that is asked for alone is fitted and predicted like among all", "[validate]") {
  const StudyFolder folder(kTable);
  const Study study = folder.parse(kHead + kFitEach);
  FakePredictor predictor;
  const StudyResult all = evaluate(study, predictor);
  const int calls = predictor.calls;
  const StudyResult one = evaluate(study, predictor, {.progress = {}, .cases = {"s8"}});
  CHECK(ids(one) == std::vector<std::string>{"s8"});
  CHECK(comparison_rows(one)[0] == comparison_rows(all)[7]);
  CHECK(one.parameters.size() == 1);       // big's is not needed
  CHECK(predictor.calls - calls < calls);  // nor found
  CHECK(one.passed());
  CHECK(one.summary.cases == 0);
  SECTION("by pattern, and several") {
    CHECK(ids(evaluate(study, predictor, {.progress = {}, .cases = {"b?", "s2"}})) ==
          std::vector<std::string>{"b1", "b2", "b4", "b8", "s2"});
  }
  SECTION("an unknown one names the closest") {
    CHECK(error_of([&] { (void)evaluate(study, predictor, {.progress = {}, .cases = {"s9"}}); }) ==
          "error: study 'fake' has no case 's9'\n  help: did you mean 's1'?");
  }
}

TEST_CASE("a case depends on fits of the rows that its own fit depends on", "[validate]") {
  // The launch is found from b8, whose rate is found from b4: s2 is set neither rate, and needs both fits.
  const StudyFolder folder(kTable);
  const Study study = folder.parse(
      kHead +
      "settings: [{set: {collective.launch: 1ms}}]\n"
      "calibrate:\n"
      "  step_time: {where: {gpus: 1}, key: [model]}\n"
      "  fit:\n"
      "    - parameters: [{key: link.ethernet.per_flow_cap, low: 100MB/s, high: 50GB/s, where: {model: big}}]\n"
      "      rows: {where: {id: b4}}\n"
      "    - parameters: [{key: collective.launch, low: 0s, high: 10ms}]\n"
      "      rows: {where: {id: b8}}\n");
  FakePredictor predictor;
  const StudyResult all = evaluate(study, predictor);
  const StudyResult one = evaluate(study, predictor, {.progress = {}, .cases = {"s2"}});
  CHECK(one.parameters.size() == 2);
  CHECK(comparison_rows(one)[0] == comparison_rows(all)[5]);
}

TEST_CASE("what is fitted for different cases is several calibrations", "[validate]") {
  const StudyFolder folder(kTable);
  FakePredictor predictor;
  const Study study = folder.parse([] {
    std::string text = kHead + kFitEach;
    return text.replace(text.find("two-nodes"), 9, "{column: model, values: {big: two-nodes, small: dgx-1}}");
  }());
  const StudyResult result = evaluate(study, predictor);
  const auto found = fitted_calibrations(study, result, "2026-01-31");
  REQUIRE(found.size() == 2);
  CHECK(found[0].cluster == "two-nodes");
  CHECK(found[1].cluster == "dgx-1");
  CHECK(found[0].sources == std::vector<std::string>{"study fake: link.ethernet.per_flow_cap from b4"});
  CHECK(found[0].valid_for == std::vector<std::string>{"ddp on two-nodes, 1 to 8 workers, big: 4 cases of study fake"});
  CHECK(found[0].rows == 1);
  // The rate alone has to explain the start-up costs, too: 0.95 s for 1.5e9 bytes.
  REQUIRE(found[0].parameters.size() == 1);
  CHECK_THAT(found[0].parameters[0].value, WithinRel(1.5e9 / 0.95, 1e-3));
  CHECK(found[0].parameters[0].scale.text(found[0].parameters[0].value) == result.parameters[0].value);
  // d log(step) / d log(rate) = -0.95 / 1.95; the stated error of the one row is 1 %: 0.01 * 1.95 / 0.95.
  CHECK_THAT(found[0].parameters[0].deviation, WithinRel(0.01 * 1.95 / 0.95, 0.01));
  CHECK(found[0].repeat_pct == 1.0);
  CHECK(found[0].residuals.worst_pct < 0.1);
  for (const auto& calibration : found) CHECK(parse_calibration(to_yaml(calibration), "cal.yaml") == calibration);
}

TEST_CASE("parameters of one fit keep their correlation, and a calibration before them stays", "[validate]") {
  const StudyFolder folder(kTable);
  const auto calibrations = [&](const std::string& head) {
    FakePredictor predictor;
    const Study study = folder.parse(head + kCalibrate);
    return fitted_calibrations(study, evaluate(study, predictor), "2026-01-31");
  };
  const auto alone = calibrations(kHead);
  REQUIRE(alone.size() == 1);
  REQUIRE(alone[0].parameters.size() == 2);
  // A faster network leaves more to the start-up costs.
  CHECK(alone[0].correlation[0][1] > 0.3);
  CHECK(alone[0].correlation[0][1] == alone[0].correlation[1][0]);
  CHECK(alone[0].rows == 2);
  write_file("before.yaml",
             "schema: simsync/calibration/v1\ncluster: two-nodes\ndate: 2025-01-01\nsources: [probes]\nrows: 2\n"
             "residuals: {rms_pct: 3, median_pct: 2, worst_pct: 4}\nrepeat_pct: 2\n"
             "assumed: {link.ethernet.half_size: 0B, collective.launch: 7us}\n"
             "parameters:\n"
             "  - {key: link.ethernet.latency, value: 20us, scale: log, deviation: 0.1}\n"
             "  - {key: link.ethernet.per_flow_cap, value: 1GB/s, scale: log, deviation: 0.2}\n"
             "correlation: [[1], [0.5, 1]]\n");
  std::string head = kHead;
  head.replace(head.find("  batch: 8\n"), 11, "  batch: 8\n  calibration: before.yaml\n");
  const auto both = calibrations(head);
  REQUIRE(both.size() == 1);
  CHECK(both[0].assumed == std::vector<std::pair<std::string, std::string>>{{"link.ethernet.half_size", "0B"}});
  REQUIRE(both[0].parameters.size() == 3);
  CHECK(both[0].parameters[0].key == "link.ethernet.latency");
  CHECK(both[0].parameters[1] == alone[0].parameters[0]);
  CHECK(both[0].correlation[0] == std::vector<double>{1.0, 0.0, 0.0});
  CHECK(both[0].correlation[1][2] == alone[0].correlation[0][1]);
  CHECK(both[0].rows == 4);
  CHECK(both[0].repeat_pct == 2.0);
  CHECK(both[0].residuals.worst_pct == 4.0);
  // Two rows of 3 % and two of next to 0: 3 / sqrt(2).
  CHECK_THAT(both[0].residuals.rms_pct, WithinRel(3.0 / std::sqrt(2.0), 0.01));
}

TEST_CASE("a calibration may follow from a column", "[validate]") {
  const StudyFolder folder(kTable);
  std::string head = kHead;
  head.replace(head.find("  batch: 8\n"), 11,
               "  batch: 8\n  calibration: {column: model, values: {big: cals/big.yaml, small: none}}\n");
  const auto cases = cases_of(parse_study(head, "./study.yaml"));
  CHECK(cases[0].request.calibration == "cals/big.yaml");
  CHECK(cases[4].request.calibration.empty());
}

TEST_CASE("the error of parameters that come from others stands beside that in sample", "[validate]") {
  // The rate of `big` follows from `small` (2 GB/s), that of `small` from `big`, whose last row is wrong on purpose:
  // 1.75 s for 1.75e9 bytes, 1 GB/s. In sample both rows share one rate.
  std::string table = kTable;
  table.replace(table.find("b8,big,8,2.075"), 14, "b8,big,8,2.950");
  const StudyFolder folder(table);
  FakePredictor predictor;
  const auto study = folder.parse(kHead +
                                  "settings: [{set: {collective.launch: 1ms}}]\n"
                                  "calibrate:\n"
                                  "  step_time: {where: {gpus: 1}, key: [model]}\n"
                                  "  fit:\n"
                                  "    - parameters: [{key: link.ethernet.per_flow_cap, low: 100MB/s, high: 50GB/s}]\n"
                                  "      rows: {where: {gpus: [1, 8]}}\n"
                                  "      leave_out: model\n");
  const auto result = evaluate(study, predictor);
  // b2, b4, b8 at 2 GB/s: 0, 0, -29.7 %; s2, s4, s8 at 1 GB/s: +20, +27.3, +30.4 %: 107.4 / 6.
  CHECK(result.transfer.cases == 6);
  CHECK_THAT(result.transfer.mape_pct.value(), WithinRel(107.4 / 6.0, 0.02));
  // In sample one rate of 1.14 GB/s, where Huber's loss of b8 (-7.4 %) and of s8 (+22.8 %) balance: the six cases are
  // 22.0, 28.8, -7.4, 15.0, 20.4 and 22.8 % off.
  CHECK_THAT(result.transfer.in_sample_pct.value(), WithinRel(19.4, 0.02));
  CHECK(result.transfer.mape_pct == result.summary.mape_pct);
  CHECK_THAT(describe(result), ContainsSubstring("over 6 cases that their parameters were not fitted to, "));
  SECTION("nothing is left out, nothing is transferred") {
    const auto plain = evaluate(folder.parse(kHead + kCalibrate), predictor);
    CHECK(plain.transfer.cases == 0);
    CHECK_FALSE(plain.transfer.mape_pct.has_value());
    CHECK(summary_row(plain).ends_with(",0,,,"));
  }
}
