#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/csv.hpp"
#include "base/file.hpp"
#ifdef SIMSYNC_HAS_RUN
#include "hw/run/measured_row.hpp"
#include "hw/run/run_probe.hpp"
#endif
#include "models/profile_writer.hpp"
#include "sim/engine/predict.hpp"
#include "strategies/search/rank_study.hpp"
#include "strategies/search/trial_table.hpp"
#include "tests/support/catch.hpp"
#include "validate/calibrate/report.hpp"
#include "validate/comparison.hpp"

using namespace simsync;
namespace fs = std::filesystem;

namespace {

const std::string kRoot = SIMSYNC_ROOT;

std::vector<std::string> lines_of(const std::string& path) {
  std::istringstream in(read_file(path));
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

/// Names in back quotes in the first cell of every table row, by heading.
std::map<std::string, std::vector<std::string>> documented_columns() {
  std::map<std::string, std::vector<std::string>> out;
  std::string heading;
  for (const auto& line : lines_of(kRoot + "/docs/columns.md")) {
    if (line.starts_with("## ")) heading = line.substr(3);
    if (!line.starts_with("| `")) continue;
    const std::string cell = line.substr(1, line.find('|', 1) - 1);
    for (std::size_t open = cell.find('`'); open != std::string::npos;) {
      const std::size_t close = cell.find('`', open + 1);
      out[heading].push_back(cell.substr(open + 1, close - open - 1));
      open = cell.find('`', close + 1);
    }
  }
  return out;
}

/// Code blocks of a page: the word behind the fence and the lines.
std::vector<std::pair<std::string, std::vector<std::string>>> blocks_of(const std::string& page) {
  std::vector<std::pair<std::string, std::vector<std::string>>> out;
  bool inside = false;
  for (const auto& line : lines_of(page)) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) out.emplace_back(line.substr(3), std::vector<std::string>{});
    } else if (inside) {
      out.back().second.push_back(line);
    }
  }
  return out;
}

/// A fresh folder that is the current one while this lives.
class ScratchFolder {
public:
  ScratchFolder()
      : before_(fs::current_path()), path_(fs::temp_directory_path() / ("simsync-docs-" + std::to_string(::getpid()))) {
    fs::create_directories(path_);
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

/// What a command shows on a terminal of so many columns. Bars of progress, which come with time, are left out.
std::string screen_of(const std::string& command, const std::string& columns) {
  const std::string inner = "LC_ALL=C.UTF-8 COLUMNS=" + columns + " " + command + " 2>/dev/null";
  write_file("screen.sh", inner + "\n");
  REQUIRE(std::system("script -qec 'sh screen.sh' /dev/null > screen.txt < /dev/null") == 0);
  std::string text = read_file("screen.txt");
  text.erase(std::remove(text.begin(), text.end(), '\r'), text.end());
  return text;
}

/// The page with every screen drawn again: in a block ```text the lines behind `$ command`. A command goes on while its
/// lines end with a backslash. The last heading says how wide the terminal is.
std::string redrawn(const std::string& path) {
  std::string out, columns = "80";
  const auto page = lines_of(path);
  for (std::size_t i = 0; i < page.size(); ++i) {
    out += page[i] + "\n";
    if (page[i].starts_with("## ")) columns = page[i].find("120") == std::string::npos ? "80" : "120";
    if (!page[i].starts_with("$ ")) continue;
    std::string command = page[i].substr(2);
    while (command.ends_with("\\")) {
      command.pop_back();
      command += page.at(++i);
      out += page[i] + "\n";
    }
    out += screen_of(command, columns);
    while (page.at(i + 1) != "```") ++i;
  }
  return out;
}

}  // namespace

TEST_CASE("the screens are what the program shows on a terminal", "[docs]") {
  const ScratchFolder scratch;
  const std::string program = fs::path(SIMSYNC_PROGRAM).parent_path().string();
  REQUIRE(setenv("PATH", (program + ":" + std::getenv("PATH")).c_str(), 1) == 0);
  const std::string path = kRoot + "/docs/screens.md";
  const std::string page = redrawn(path);
  const char* wish = std::getenv("SIMSYNC_APPROVE");
  if (wish != nullptr && std::string(wish) == "1") write_file(path, page);
  CHECK(read_file(path) == page);
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }) <= 120);
  }
}

TEST_CASE("a comparison's columns are on the columns page", "[docs]") {
  const ScratchFolder scratch;
  REQUIRE(
      std::system((std::string(SIMSYNC_PROGRAM) + " compare --model alexnet --cluster two-nodes --strategy ddp,ps " +
                   "--workers 4 --csv compare.csv > out")
                      .c_str()) == 0);
  CHECK(documented_columns().at("compare") == CsvTable::load("compare.csv").header());
}

TEST_CASE("the columns of a table of signatures are on the columns page", "[docs]") {
  const ScratchFolder scratch;
  REQUIRE(std::system((std::string(SIMSYNC_PROGRAM) + " predict --model gpt2 --cluster dgx-h100 --strategy ddp " +
                       "--workers 4 --export signatures > plan.csv")
                          .c_str()) == 0);
  CHECK(documented_columns().at("predict, signatures") == CsvTable::load("plan.csv").header());
}

TEST_CASE("every column of the program is on the columns page, in its order", "[docs]") {
  const auto documented = documented_columns();
  CHECK(documented.at("predict, sweep") == row_header());
  CHECK(documented.at("search") == trial_header());
  CHECK(documented.at("rank") == rank_header());
  CHECK(documented.at("profile") == profile_header());
#ifdef SIMSYNC_HAS_RUN
  CHECK(documented.at("measure") == measured_header());
  CHECK(documented.at("probe") == probe_header());
#endif
  CHECK(documented.at("calibrate") == calibration_header());
  CHECK(documented.at("validate, cases") == CsvTable::parse(comparison_header() + "\n", "cases").header());
  CHECK(documented.at("validate, groups") == CsvTable::parse(groups_header() + "\n", "groups").header());
  CHECK(documented.at("validate, summary") == CsvTable::parse(summary_header() + "\n", "summary").header());
}

TEST_CASE("the README's table is what the study says", "[docs]") {
  const ScratchFolder scratch;
  REQUIRE(std::system((std::string(SIMSYNC_PROGRAM) +
                       " validate autodist-g4dn --case 'autodist-vgg16-*-32' > cases.csv " + "2> notes")
                          .c_str()) == 0);
  const CsvTable cases = CsvTable::load("cases.csv");
  REQUIRE(cases.size() == 6);
  const std::string page = read_file(kRoot + "/README.md");
  for (std::size_t row = 0; row < cases.size(); ++row) {
    const auto number = [&](const char* column) { return cases.number(row, column).value(); };
    CHECK_THAT(page, ContainsSubstring(fmt::format("| `{}` | {:.0f} ms | {:.0f} ms | {:+.1f} % |",
                                                   cases.cell(row, "case"), 1000 * number("measured_step_time_s"),
                                                   1000 * number("predicted_step_time_s"), number("error_pct"))));
  }
}

TEST_CASE("the picture of the README is drawn from what the program says", "[docs]") {
  const ScratchFolder scratch;
  const std::string program = fs::path(SIMSYNC_PROGRAM).parent_path().string() + "/simsync";
  REQUIRE(std::system((program + " validate autodist-g4dn --case 'autodist-vgg16-*' > cases.csv 2> notes").c_str()) ==
          0);
  CHECK(read_file("cases.csv") == read_file(kRoot + "/docs/vgg16-g4dn.csv"));
}

// Every 40th row, by `--shard`, which makes one pair of a combination alone.
TEST_CASE("the sample of the data set is what the program makes today", "[docs]") {
  const ScratchFolder scratch;
  const std::string path = kRoot + "/strategies/search/data/sample-simulated.csv";
  const auto lines = lines_of(path);
  const CsvTable sample = CsvTable::load(path);
  REQUIRE(lines.size() == sample.size() + 1);
  REQUIRE(sample.size() >= 200);
  CHECK(sample.header() == trial_header());
  CHECK(fs::file_size(path) < 300'000);
  constexpr int kPairs = 112;
  for (std::size_t row = 0; row < sample.size(); row += 40) {
    const auto trial = static_cast<int>(sample.number(row, "trial").value());
    const std::string command =
        fmt::format("{} dataset --model {} --cluster {} --workers {} --pairs {} --shard {}/{} --out pair{} > output",
                    SIMSYNC_PROGRAM, sample.cell(row, "model"), sample.cell(row, "cluster"),
                    sample.cell(row, "workers"), kPairs, trial + 1, kPairs, row);
    INFO(command);
    INFO("strategies/search/data/README.md has the command that makes the sample again");
    REQUIRE(std::system(command.c_str()) == 0);
    const auto made = lines_of(fmt::format("pair{}/pairs.csv", row));
    REQUIRE(made.size() == 2);
    CHECK(made[1] == lines[row + 1]);
  }
}

// A block ```yaml whose first line is `# name.yaml` (or .yml) is that file; a block ```sh holds commands.
TEST_CASE("every command of the pages runs", "[docs]") {
  const ScratchFolder scratch;
  const std::string program = fs::path(SIMSYNC_PROGRAM).parent_path().string();
  REQUIRE(setenv("PATH", (program + ":" + std::getenv("PATH")).c_str(), 1) == 0);
  int commands = 0;
  std::vector<std::pair<std::string, std::vector<std::string>>> blocks;
  for (const char* page : {"/README.md", "/docs/commands.md", "/docs/files.md", "/docs/language-models.md"})
    for (auto& block : blocks_of(kRoot + page)) blocks.push_back(std::move(block));
  for (const auto& [language, lines] : blocks) {
    if (language == "yaml" && !lines.empty() && lines.front().starts_with("# ")) {
      std::string text;
      for (const auto& line : lines) text += line + "\n";
      write_file(lines.front().substr(2), text);
    }
    if (language != "sh") continue;
    for (const auto& line : lines) {
      if (!line.starts_with("simsync ")) continue;
      INFO(line);
      CHECK(std::system((line + " > output 2>&1").c_str()) == 0);
      ++commands;
    }
  }
  CHECK(commands >= 5);
}
