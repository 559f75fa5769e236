// Bad studies and the exact text that their author reads.
#include "tests/support/catch.hpp"
#include "tests/unit/validate_support.hpp"
#include "validate/cases.hpp"

using namespace simsync;
using simsync::test::error_of;
using simsync::test::StudyFolder;

namespace {

constexpr const char* kTable =
    "id,model,gpus,batch,rate\n"
    "one,vgg,1,32,100\n"
    "two,vgg,2,32,180\n"
    "bad,net,2,0,x\n";

const std::string kGood =
    "schema: simsync/study/v1\n"     // 1
    "name: mine\n"                   // 2
    "reference: table.csv\n"         // 3
    "rows: {where: {model: vgg}}\n"  // 4
    "case:\n"                        // 5
    "  model: {column: model, values: {vgg: vgg16}}\n"
    "  cluster: two-nodes\n"       // 7
    "  strategy: ddp\n"            // 8
    "  workers: {column: gpus}\n"  // 9
    "  batch: {column: batch}\n"   // 10
    "measured: {column: rate, unit: samples_per_s}\n"
    "tolerance: {mape_pct: 10}\n";  // 12

/// kGood with one text replaced by another.
std::string with(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("a good study is read", "[validate]") {
  const StudyFolder folder(kTable);
  const Study study = folder.parse(kGood);
  CHECK(study.name == "mine");
  CHECK(study.measured.error_pct == 1.0);
  const auto cases = cases_of(study);
  REQUIRE(cases.size() == 2);
  CHECK(cases[1].request.model == "vgg16");
  CHECK(cases[1].request.workers == 2);
  // 32 samples on each of 2 workers at 180 samples/s.
  CHECK_THAT(cases[1].measured.value(), WithinRel(64.0 / 180.0, 1e-12));
}

TEST_CASE("a study of rows that measure wrote", "[validate]") {
  const StudyFolder folder(
      "model,strategy,workers,batch,settings,step_time_s\n"
      "vgg16,ddp,2,32,step_time=200ms;variable_scale=0.05,0.25\n"
      "vgg16,ps,2,32,,0.5\n"
      "vgg16,wfbp,2,32,step_time,0.5\n");
  const std::string study =
      "schema: simsync/study/v1\nname: mine\nreference: table.csv\n"
      "case:\n  id: [model, strategy]\n  model: {column: model}\n  cluster: two-nodes\n  strategy: {column: strategy}\n"
      "  workers: {column: workers}\n  batch: {column: batch}\n"
      "settings:\n  - {column: settings}\n"
      "measured: {column: step_time_s, unit: s}\ntolerance: {mape_pct: 10}\n";
  CHECK(error_of([&] { (void)cases_of(folder.parse(study)); }) ==
        "table.csv:4:1: error: column 'settings': expected key=value;key=value, got 'step_time'");
  const auto cases = cases_of(folder.parse(study + "rows: {except: {strategy: wfbp}}\n"));
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].id == "vgg16-ddp");
  CHECK(cases[0].request.settings == Settings{{"step_time", "200ms"}, {"variable_scale", "0.05"}});
  CHECK(cases[1].request.settings.empty());
  std::string twice = study;
  twice.replace(twice.find("id: [model, strategy]"), 21, "id: [model, workers]");
  CHECK_THAT(error_of([&] { (void)folder.parse(twice); }), ContainsSubstring("table.csv:3 repeats the id 'vgg16-2'"));
  for (const char* wrong : {"{key: step_time}", "{set: {a: b}, column: settings}"}) {
    INFO(wrong);
    std::string text = study;
    text.replace(text.find("{column: settings}"), 18, wrong);
    CHECK_THAT(error_of([&] { (void)folder.parse(text); }),
               ContainsSubstring("expected 'set', 'column' (of key=value;key=value), or 'key' with 'column'"));
  }
}

TEST_CASE("errors of a study name file, line, key and mend", "[validate]") {
  const StudyFolder folder(kTable);
  const auto error = [&](const std::string& text) { return error_of([&] { (void)folder.parse(text); }); };

  SECTION("an unknown key") {
    CHECK(error(kGood + "tolerence: 3\n") ==
          "study.yaml:13:1: error: unknown key 'tolerence'\n"
          "   13 | tolerence: 3\n"
          "      | ^\n"
          "  key:  tolerence\n"
          "  help: known keys: calibrate, case, description, deviations, measured, name, rank_within, reference, rows, "
          "schema, settings, tolerance");
  }
  SECTION("another schema") {
    CHECK(error(with("study/v1", "study/v2")) ==
          "study.yaml:1:9: error: 'simsync/study/v2' is not one of simsync/study/v1\n"
          "    1 | schema: simsync/study/v2\n"
          "      |         ^\n"
          "  key:  schema\n"
          "  help: did you mean 'simsync/study/v1'?");
  }
  SECTION("a table that is not there") {
    CHECK(error(with("table.csv", "tabel.csv")) ==
          "study.yaml:3:12: error: no such file: tabel.csv\n"
          "    3 | reference: tabel.csv\n"
          "      |            ^\n"
          "  key:  reference\n"
          "  help: the path starts at the folder of the study");
  }
  SECTION("no reference") {
    CHECK(error(with("reference: table.csv\n", "")) ==
          "study.yaml:1:1: error: missing key 'reference'\n"
          "    1 | schema: simsync/study/v1\n"
          "      | ^");
  }
  SECTION("a column that is not there") {
    CHECK(error(with("column: gpus", "column: gpu")) ==
          "study.yaml:9:21: error: no column 'gpu' in table.csv\n"
          "    9 |   workers: {column: gpu}\n"
          "      |                     ^\n"
          "  key:  case.workers.column\n"
          "  help: did you mean 'gpus'?");
  }
  SECTION("a filter on a column that is not there") {
    CHECK(error(with("{model: vgg}", "{modle: vgg}")) ==
          "study.yaml:4:23: error: no column 'modle' in table.csv\n"
          "    4 | rows: {where: {modle: vgg}}\n"
          "      |                       ^\n"
          "  key:  rows.where.modle\n"
          "  help: did you mean 'model'?");
  }
  SECTION("a filter that no row passes") {
    CHECK(error(with("{model: vgg}", "{model: vgg61}")) ==
          "study.yaml:4:7: error: no row of table.csv passes this filter\n"
          "    4 | rows: {where: {model: vgg61}}\n"
          "      |       ^\n"
          "  key:  rows");
  }
  SECTION("an unknown unit") {
    CHECK(error(with("samples_per_s}", "samples}")) ==
          "study.yaml:11:32: error: 'samples' is not one of samples_per_s, samples_per_s_per_worker, s, ms\n"
          "   11 | measured: {column: rate, unit: samples}\n"
          "      |                                ^\n"
          "  key:  measured.unit\n"
          "  help: did you mean 'samples_per_s' or 'samples_per_s_per_worker'?");
  }
  SECTION("a field that is neither column nor name") {
    CHECK(error(with("{column: gpus}", "{set: {a: 1}}")) ==
          "study.yaml:9:12: error: expected either 'column' or 'name'\n"
          "    9 |   workers: {set: {a: 1}}\n"
          "      |            ^\n"
          "  key:  case.workers");
  }
  SECTION("values without a column") {
    CHECK(error(with("cluster: two-nodes", "cluster: {name: a, values: {a: b}}")) ==
          "study.yaml:7:30: error: 'values' translates a column; there is none here\n"
          "    7 |   cluster: {name: a, values: {a: b}}\n"
          "      |                              ^\n"
          "  key:  case.cluster.values");
  }
  SECTION("an accuracy above one") {
    CHECK(error(with("{mape_pct: 10}", "{mape_pct: 10, pairwise_accuracy: 90}")) ==
          "study.yaml:12:46: error: 90 is out of range: expected from 0 to 1\n"
          "   12 | tolerance: {mape_pct: 10, pairwise_accuracy: 90}\n"
          "      |                                              ^\n"
          "  key:  tolerance.pairwise_accuracy");
  }
  SECTION("no tolerance") {
    CHECK(error(with("tolerance: {mape_pct: 10}\n", "")) ==
          "study.yaml:1:1: error: missing key 'tolerance'\n"
          "    1 | schema: simsync/study/v1\n"
          "      | ^");
  }
  SECTION("a repeated id") {
    const StudyFolder twice("id,model,gpus,batch,rate\nx,vgg,1,1,1\nx,vgg,1,1,1\n");
    CHECK(error_of([&] { (void)twice.parse(kGood); }) ==
          "study.yaml:6:3: error: table.csv:3 repeats the id 'x'\n"
          "    6 |   model: {column: model, values: {vgg: vgg16}}\n"
          "      |   ^\n"
          "  key:  case");
  }
  SECTION("a parameter whose bounds have different units") {
    CHECK(error(kGood + "calibrate:\n  fit:\n    - parameters: [{key: a, low: 1us, high: 1GB/s}]\n      rows: {where: "
                        "{id: two}}\n") ==
          "study.yaml:15:45: error: 'low' and 'high' must have the same kind of unit\n"
          "   15 |     - parameters: [{key: a, low: 1us, high: 1GB/s}]\n"
          "      |                                             ^\n"
          "  key:  calibrate.fit[0].parameters[0].high");
  }
  SECTION("a parameter without a range") {
    CHECK(
        error(kGood +
              "calibrate:\n  fit:\n    - parameters: [{key: a, low: 2, high: 1}]\n      rows: {where: {id: two}}\n") ==
        "study.yaml:15:43: error: 'high' must be greater than 'low'\n"
        "   15 |     - parameters: [{key: a, low: 2, high: 1}]\n"
        "      |                                           ^\n"
        "  key:  calibrate.fit[0].parameters[0].high");
  }
  SECTION("a bound that is no quantity") {
    CHECK(error(kGood + "calibrate:\n  fit:\n    - parameters: [{key: a, low: 2 apples, high: 3}]\n      rows: {where: "
                        "{id: two}}\n") ==
          "study.yaml:15:34: error: expected a number, time, size or bandwidth such as 0.5, 20us, 64KiB or 8Gbps, got "
          "'2 apples'\n"
          "   15 |     - parameters: [{key: a, low: 2 apples, high: 3}]\n"
          "      |                                  ^\n"
          "  key:  calibrate.fit[0].parameters[0].low");
  }
  SECTION("no parameters") {
    CHECK(error(kGood + "calibrate:\n  fit:\n    - parameters: []\n      rows: {where: {id: two}}\n") ==
          "study.yaml:15:19: error: expected 1 to 3 parameters, got 0\n"
          "   15 |     - parameters: []\n"
          "      |                   ^\n"
          "  key:  calibrate.fit[0].parameters");
  }
  SECTION("a deviation that names no rows") {
    CHECK(error(kGood + "deviations: [{entry: D1}]\n") ==
          "study.yaml:13:14: error: expected 'where': a deviation must name its rows\n"
          "   13 | deviations: [{entry: D1}]\n"
          "      |              ^\n"
          "  key:  deviations[0]");
  }
}

TEST_CASE("errors of a row name the group", "[validate]") {
  const StudyFolder folder(kTable);
  const auto error = [&](const std::string& text) { return error_of([&] { (void)cases_of(folder.parse(text)); }); };
  SECTION("a value that is not translated") {
    CHECK(error(with("{model: vgg}", "{id: bad}")) ==
          "table.csv:4:1: error: column 'model' says 'net', which case.model.values of study.yaml does not translate\n"
          "  help: add it there, or leave the row out with 'rows'");
  }
  SECTION("a batch of zero") {
    CHECK(error(with("{model: vgg}}\ncase:\n  model: {column: model, values: {vgg: vgg16}}",
                     "{id: bad}}\ncase:\n  model: a")) ==
          "table.csv:4:1: error: case.batch: expected a whole number from 1 to 2147483647, got '0'");
  }
  SECTION("a measured value that is no number") {
    CHECK(error(with("{model: vgg}}\ncase:\n  model: {column: model, values: {vgg: vgg16}}\n  cluster: two-nodes\n  "
                     "strategy: ddp\n  workers: {column: gpus}\n  batch: {column: batch}",
                     "{id: bad}}\ncase:\n  model: a\n  cluster: c\n  strategy: ddp\n  workers: 2\n  batch: 4")) ==
          "table.csv:4:1: error: column 'rate': expected a number, got 'x'");
  }
  SECTION("a case without its single-device row") {
    CHECK(error(kGood + "calibrate:\n  step_time: {where: {gpus: 1}, key: [model, gpus]}\n") ==
          "table.csv:3:1: error: no row of calibrate.step_time has model=vgg, gpus=2\n"
          "  help: leave the row out with 'rows', or add its single-device measurement");
  }
  SECTION("single-device rows of other work") {
    const StudyFolder mixed(
        "id,model,gpus,batch,rate\n"
        "one,vgg,1,32,100\n"
        "again,vgg,1,32,95\n"
        "other,resnet,1,32,300\n"
        "large,vgg,1,64,100\n"
        "two,vgg,2,32,180\n");
    const auto calibrated = [&](const std::string& key) {
      return error_of([&] {
        (void)cases_of(mixed.parse(kGood + "calibrate:\n  step_time: {where: {gpus: 1}, key: [" + key + "]}\n"));
      });
    };
    CHECK(calibrated("batch") ==
          "table.csv:2:1: error: calibrate.step_time takes its step from table.csv:4, which takes 106.667 ms where "
          "another of the same 'key' takes 336.842 ms\n"
          "  help: add a column to 'key', or narrow 'where'");
    CHECK(calibrated("model") ==
          "table.csv:2:1: error: calibrate.step_time takes its step from table.csv:5, which has a batch of 64\n"
          "  help: add a column to 'key', or narrow 'where'");
    CHECK(calibrated("model, batch") == "no error");  // rows 2 and 3 are repetitions
  }
  SECTION("filters that leave nothing") {
    CHECK(error(with("{model: vgg}}", "{model: vgg}, except: {model: vgg}}")) ==
          "study.yaml:4:7: error: no row of table.csv passes this filter\n"
          "    4 | rows: {where: {model: vgg}, except: {model: vgg}}\n"
          "      |       ^\n"
          "  key:  rows");
  }
}

TEST_CASE("a filter that no row passes is noted", "[validate]") {
  const StudyFolder folder(kTable);
  CHECK(folder.parse(kGood).notes.empty());
  const Study study = folder.parse(kGood +
                                   "settings: [{set: {iterations: 9}, where: {model: vgg61}}]\n"  // 13
                                   "deviations: [{where: {id: [one]}, except: {gpus: 1}, entry: D1}]\n"
                                   "calibrate:\n"
                                   "  fit:\n"  // 16
                                   "    - parameters: [{key: collective.launch, low: 0s, high: 1s, where: {id: a}}]\n"
                                   "      rows: {where: {id: b}}\n");
  CHECK(study.notes == std::vector<std::string>{
                           "study.yaml:13:12: note: no row of table.csv passes the filter of settings[0]",
                           "study.yaml:17:20: note: no row of table.csv passes the filter of "
                           "calibrate.fit[0].parameters[0]",
                           "study.yaml:18:13: note: no row of table.csv passes the filter of calibrate.fit[0].rows",
                           "study.yaml:14:14: note: no row of table.csv passes the filter of deviations[0]"});
  // A misspelled value among others.
  CHECK(folder.parse(kGood + "settings: [{set: {iterations: 9}, where: {model: [vgg, vgg61]}}]\n").notes ==
        std::vector<std::string>{"study.yaml:13:56: note: no row of table.csv has 'vgg61' in column 'model'"});
  // Nothing is fitted for no case, and no case depends on it.
  CHECK(cases_of(study).size() == 2);
}

TEST_CASE("mistakes in what a fit leaves out", "[validate]") {
  const StudyFolder folder(kTable);
  const std::string fit =
      "calibrate:\n  fit:\n    - parameters: [{key: collective.launch, low: 1us, high: 1ms}]\n      rows: {}\n";
  const auto message = [&](const std::string& more) {
    return error_of([&] { (void)folder.parse(kGood + fit + more); });
  };
  CHECK_THAT(message("      leave_out: modle\n"), ContainsSubstring("no column 'modle' in table.csv"));
  CHECK_THAT(message("      by: hand\n"), ContainsSubstring("hand"));
  // Without those of the only model there is no row.
  CHECK(folder.parse(kGood + fit + "      leave_out: model\n").fits.front().leave_out == "model");
}

TEST_CASE("a whole step is that of one row of the study", "[validate]") {
  const StudyFolder folder(kTable);
  const auto message = [&](const std::string& where) {
    return error_of([&] {
      (void)cases_of(
          folder.parse(kGood + "calibrate: {step_time: {where: {" + where + "}, key: [batch], of: step}}\n"));
    });
  };
  CHECK(cases_of(folder.parse(kGood + "calibrate: {step_time: {where: {id: two}, key: [model], of: step}}\n"))
            .front()
            .whole_step_row == 1);
  CHECK_THAT(message("model: vgg"), ContainsSubstring("of whole steps there may be one"));
  CHECK_THAT(message("id: bad"), ContainsSubstring("no row of calibrate.step_time has batch=32"));
}
