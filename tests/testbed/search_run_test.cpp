// A measured search the whole way: trials on real processes, a resumed one, and what its trials teach of predictions.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <optional>

#include "base/csv.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/command_case.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr int kMissingCapability = 4;
constexpr std::size_t kBuilders = 19;
constexpr std::size_t kTrials = 6;

/// What `text` has between two of the lines that divide it; without `begin` from its beginning, without `end` to its
/// end.
CsvTable part_of(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = begin.empty() ? 0 : text.find("\n" + begin + "\n") + begin.size() + 2;
  const std::size_t to = end.empty() ? text.size() : text.find("\n" + end + "\n", from) + 1;
  return CsvTable::parse(text.substr(from, to - from), begin);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Output {
  CsvTable trials, resumed, corrected, best, builder;
  explicit Output(const std::string& out)
      : trials(part_of(out, "", "resumed")),
        resumed(part_of(out, "resumed", "corrected")),
        corrected(part_of(out, "corrected", "best")),
        best(part_of(out, "best", "builder")),
        builder(part_of(out, "builder", "")) {}
};

/// How many of the builders took as long as their corrected prediction has in its interval.
int within_intervals(const Output& output) {
  std::map<std::string, double> measured;
  for (std::size_t row = 0; row < kBuilders; ++row)
    measured[output.trials.cell(row, "origin")] = *output.trials.number(row, "step_time_s");
  int out = 0;
  for (std::size_t row = 0; row < output.corrected.size(); ++row) {
    const auto trial = measured.find(output.corrected.cell(row, "strategy"));
    if (trial == measured.end()) continue;
    const double low = *output.corrected.number(row, "step_time_low_s");
    const double high = *output.corrected.number(row, "step_time_high_s");
    out += low <= trial->second && trial->second <= high ? 1 : 0;
  }
  return out;
}

/// Half of the trials are predicted to 15 %, and 15 of the 19 builders are within the intervals that claim 90 %: other
/// work on the machine slows some.
bool is_as_predicted(const Output& output) {
  std::vector<double> errors;
  for (std::size_t row = 0; row < output.trials.size(); ++row)
    errors.push_back(
        std::abs(*output.trials.number(row, "replayed_step_time_s") / *output.trials.number(row, "step_time_s") - 1.0));
  return median(errors) < 0.15 && within_intervals(output) >= 15;
}

/// The report says with which flags the best builder runs as its trial did: it is predicted as that trial was.
void check_builder(const Output& output) {
  REQUIRE(output.builder.size() == 1);
  int found = 0;
  for (std::size_t row = 0; row < kBuilders; ++row) {
    if (output.trials.cell(row, "origin") != output.builder.cell(0, "strategy")) continue;
    ++found;
    CHECK_THAT(*output.builder.number(0, "step_time_s"),
               WithinRel(*output.trials.number(row, "replayed_step_time_s"), 1e-3));
  }
  CHECK(found == 1);
}

}  // namespace

TEST_CASE("a measured search runs its trials, resumes, and corrects predictions of such runs", "[testbed]") {
  constexpr int kAttempts = 3;
  CommandResult result;
  std::optional<Output> output;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    result = run_case(case_folder("testbed", "search"));
    if (result.exit == kMissingCapability) {
      std::cout << "skipped: " << result.err;
      return;
    }
    std::cout << result.out << result.err;
    REQUIRE(result.exit == 0);
    output.emplace(result.out);
    if (is_as_predicted(*output)) break;
  }
  CHECK(is_as_predicted(*output));
  const CsvTable& trials = output->trials;
  REQUIRE(trials.size() == kBuilders + kTrials);
  for (std::size_t row = 0; row < trials.size(); ++row) {
    CHECK(trials.cell(row, "evaluator") == "measure");
    CHECK(trials.cell(row, "runner") == "simsync");
    CHECK(trials.cell(row, "settings") == "collective.interference=0;step_time=60ms;variable_scale=0.005");
    // Devices compute for 60 ms; a clock may lose some.
    CHECK(*trials.number(row, "step_time_s") > 0.059);
  }
  // The 23 trials that the table had are as they were, and the two others are of the same strategies.
  REQUIRE(output->resumed.size() == trials.size());
  for (std::size_t row = 0; row < trials.size(); ++row) {
    CHECK(output->resumed.cell(row, "strategy_id") == trials.cell(row, "strategy_id"));
    if (row < 23) CHECK(output->resumed.cell(row, "step_time_s") == trials.cell(row, "step_time_s"));
  }
  // What the correction is asked is what its trials were: servers as this program has them, and nothing to note.
  CHECK(output->corrected.size() == kBuilders);
  for (std::size_t row = 0; row < output->corrected.size(); ++row)
    if (output->corrected.cell(row, "strategy") == "ps")
      CHECK(output->corrected.cell(row, "settings").find("strategy.shared_process=false") != std::string::npos);
  CHECK(output->best.size() == 1);
  check_builder(*output);
  CHECK(result.err.find("its trials") == std::string::npos);
}
