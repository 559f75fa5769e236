// What validate prints of a case works: its command repeats the prediction, and what was fitted serves elsewhere.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;
namespace fs = std::filesystem;

namespace {

const std::string kProgram = SIMSYNC_PROGRAM;

/// A fresh folder that is the current one while this lives, with a study in a folder below.
class ScratchFolder {
public:
  ScratchFolder()
      : before_(fs::current_path()),
        path_(fs::temp_directory_path() / ("simsync-repeats-" + std::to_string(::getpid()))) {
    fs::create_directories(path_ / "of mine" / "studies");
    fs::current_path(path_);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    fs::current_path(before_, ignored);
    fs::remove_all(path_, ignored);
  }

private:
  fs::path before_, path_;
};

/// Runs a command of the program; its exit code.
int run(const std::string& command) {
  INFO(command);
  const std::string words = command.substr(std::string("simsync ").size());
  const int status = std::system((kProgram + " " + words + " >out 2>err").c_str());
  INFO(read_file("err"));
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

CsvTable cases_of(const std::string& arguments) {
  const int code = run("simsync validate " + arguments + " --csv cases.csv");
  CHECK((code == 0 || code == 1));
  return CsvTable::load("cases.csv");
}

/// Every row's command, in the current folder, gives the digits of the row.
void expect_repeated(const CsvTable& cases) {
  REQUIRE(cases.size() > 0);
  for (std::size_t row = 0; row < cases.size(); ++row) {
    const std::string& command = cases.cell(row, "command");
    INFO(command);
    REQUIRE(run(command + " --csv row.csv") == 0);
    const CsvTable predicted = CsvTable::load("row.csv");
    CHECK(predicted.cell(0, "step_time_s") == cases.cell(row, "predicted_step_time_s"));
    CHECK(predicted.cell(0, "settings") == cases.cell(row, "settings"));
  }
}

// Two strategies, each with the rate of its transport; the model is a file beside the study, in a folder with a space.
const std::string kModel = "schema: simsync/model/v1\nname: mine\nextends: alexnet\n";
const std::string kTable =
    "id,model,system,gpus,step\n"
    "ddp-1,mine,ddp,1,0.1\nddp-8,mine,ddp,8,0.7\nddp-16,mine,ddp,16,0.8\n"
    "ps-8,mine,ps,8,1.5\nps-16,mine,ps,16,1.8\n";
const std::string kHead =
    "schema: simsync/study/v1\nname: mine\nreference: ../table.csv\nrows: {except: {gpus: 1}}\n"
    "case:\n"
    "  model: ../model.yaml\n"
    "  cluster: g4dn.12xlarge\n  strategy: {column: system}\n  workers: {column: gpus}\n  batch: 32\n";
const std::string kTail =
    "measured: {column: step, unit: s}\ntolerance: {mape_pct: 90}\n"
    "calibrate:\n  step_time: {where: {gpus: 1}, key: [model]}\n";
const std::string kFit =
    "  fit:\n"
    "    - parameters: [{key: link.ethernet.per_flow_cap, low: 1Gbps, high: 40Gbps, where: {system: ddp}}]\n"
    "      rows: {where: {id: ddp-8}}\n"
    "    - parameters: [{key: link.ethernet.per_flow_cap, low: 1Gbps, high: 40Gbps, where: {system: ps}}]\n"
    "      rows: {where: {id: ps-8}}\n";

}  // namespace

TEST_CASE("the command of a case repeats its prediction to the last digit", "[validate]") {
  const ScratchFolder scratch;
  // A model beside the study and a fit; a step time from a whole step, with fits that leave out its model; a placement;
  // a calibration beside the study; two fits of one network.
  for (const char* cases :
       {"ddp-a40 --case 'p9-ddp-*'", "cmdare --case cmdare-p100-res32-4", "sia-t4 --case sia-aws-bert-b12-1111",
        "testbed-4x1gbps --case testbed-4x1gbps-resnet50-ps-4,testbed-4x1gbps-resnet50-ddp-2",
        "hkbu --case hkbu-resnet-50-wfbp-a2a-10gbe-tcp-8"}) {
    INFO(cases);
    expect_repeated(cases_of(cases));
  }
}

TEST_CASE("a case alone has the digits that it has among all", "[validate]") {
  const ScratchFolder scratch;
  const CsvTable all = cases_of("poseidon");
  const CsvTable some = cases_of("poseidon --case 'poseidon-caffe-*-4,poseidon-poseidon-2'");
  REQUIRE(some.size() == 3);
  for (std::size_t row = 0; row < some.size(); ++row) {
    std::size_t same = 0;
    while (all.cell(same, "case") != some.cell(row, "case")) ++same;
    for (const auto& column : all.header()) CHECK(some.cell(row, column) == all.cell(same, column));
  }
}

TEST_CASE("what one study fitted serves predict and another study", "[validate]") {
  const ScratchFolder scratch;
  write_file("of mine/model.yaml", kModel);
  write_file("of mine/table.csv", kTable);
  write_file("of mine/studies/fitted.yaml", kHead + kTail + kFit);
  const CsvTable fitted =
      cases_of("'of mine/studies/fitted.yaml' --calibration-out 'of mine/cal.yaml' --date 2026-01-31");
  expect_repeated(fitted);
  // One file for each transport, in the order of the cases.
  write_file("of mine/studies/taken.yaml",
             kHead + "  calibration: {column: system, values: {ddp: ../cal-1.yaml, ps: ../cal-2.yaml}}\n" + kTail);
  const CsvTable taken = cases_of("'of mine/studies/taken.yaml'");
  expect_repeated(taken);
  REQUIRE(taken.size() == fitted.size());
  for (std::size_t row = 0; row < fitted.size(); ++row) {
    CHECK(taken.cell(row, "predicted_step_time_s") == fitted.cell(row, "predicted_step_time_s"));
    CHECK(taken.cell(row, "settings") != fitted.cell(row, "settings"));
  }
  CHECK(read_file("of mine/cal-2.yaml")
            .starts_with(
                "schema: simsync/calibration/v1\ncluster: g4dn.12xlarge\ndate: 2026-01-31\nsources:\n"
                "  - \"study mine: link.ethernet.per_flow_cap from ps-8\"\n"
                "valid_for:\n  - \"ps on g4dn.12xlarge, 8 to 16 workers, model: 2 cases of study mine\"\nrows: 1\n"));
}
