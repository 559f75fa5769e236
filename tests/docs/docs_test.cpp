#include <unistd.h>

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

}  // namespace

TEST_CASE("every column of the program is on the columns page, in its order", "[docs]") {
  const auto documented = documented_columns();
  CHECK(documented.at("predict, sweep") == row_header());
  CHECK(documented.at("profile") == profile_header());
#ifdef SIMSYNC_HAS_RUN
  CHECK(documented.at("measure") == measured_header());
  CHECK(documented.at("probe") == probe_header());
#endif
  CHECK(documented.at("calibrate") == calibration_header());
  CHECK(documented.at("validate, cases") == CsvTable::parse(comparison_header() + "\n", "cases").header());
  CHECK(documented.at("validate, summary") == CsvTable::parse(summary_header() + "\n", "summary").header());
}

// A block ```yaml whose first line is `# name.yaml` (or .yml) is that file; a block ```sh holds commands.
TEST_CASE("every command of the README runs", "[docs]") {
  const ScratchFolder scratch;
  const std::string program = fs::path(SIMSYNC_PROGRAM).parent_path().string();
  REQUIRE(setenv("PATH", (program + ":" + std::getenv("PATH")).c_str(), 1) == 0);
  int commands = 0;
  for (const auto& [language, lines] : blocks_of(kRoot + "/README.md")) {
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
