// A data set in AutoDist's own format.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <utility>

#include "base/csv.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/progress_bar.hpp"
#include "cli/dataset.hpp"
#include "cli/terminal.hpp"
#include "sim/problem/problem.hpp"
#include "strategies/dataset/autodist_strategy.hpp"
#include "strategies/dataset/layout.hpp"
#include "strategies/reader.hpp"

namespace simsync {
namespace {

namespace fs = std::filesystem;

class Exporter {
public:
  Exporter(const std::string& folder, const std::string& out) : folder_(folder), out_(out) {
    const std::string file = question_file(folder);
    question_ = parse_question(read_file(file), file);
    for (const Combination& at : combinations_of(question_, inputs_))
      combinations_.emplace(combination_folder(at.model, at.cluster, at.workers), at);
  }

  void write_all() {
    const CsvTable table = CsvTable::load(table_file(folder_));
    ProgressBar progress(table.size());
    for (std::size_t row = 0; row < table.size(); ++row) {
      write(table, row);
      progress.advance();
    }
  }

  void print_summary() const {
    std::cout << fmt::format("{} strategies in AutoDist's format, {} left out\n", written_, left_out_);
    for (const auto& [why, count] : reasons_) print_line("left out", fmt::format("{}: {}", count, why));
  }

private:
  void write(const CsvTable& table, std::size_t row) {
    const std::string combination = combination_folder(table.cell(row, "model"), table.cell(row, "cluster"),
                                                       static_cast<int>(table.number(row, "workers").value_or(0.0)));
    const auto at = combinations_.find(combination);
    if (at == combinations_.end()) table.refuse(row, "dataset.yaml asks for no such pair");
    const std::string& id = table.cell(row, "strategy_id");
    if (!known_.emplace(combination, id).second) return;  // builders that do the same share a file
    const fs::path from = fs::path(folder_) / combination;
    const Problem& problem = problem_of(at->second);
    Strategy strategy = load_strategy((from / "strategy" / id).string(), {.model = problem.model,
                                                                          .cluster = problem.cluster,
                                                                          .workers = at->second.workers,
                                                                          .batch = problem.samples(),
                                                                          .options = {}});
    strategy.name = id;
    const Expressed expressed = to_message(strategy, problem.model, problem.cluster);
    if (!expressed.message) {
      ++left_out_;
      ++reasons_[expressed.why_not];
      return;
    }
    ++written_;
    write_pair((fs::path(out_) / combination).string(),
               {.id = id,
                .resource_spec = read_file((from / "resource_spec" / id).string()),
                .runtime = read_file((from / "runtime" / id).string()),
                .strategy = to_bytes(*expressed.message)});
  }

  /// Rows go from combination to combination.
  const Problem& problem_of(const Combination& at) {
    const std::string combination = combination_folder(at.model, at.cluster, at.workers);
    if (!problem_ || combination != of_) {
      problem_ = std::make_unique<Problem>(prepare(question_at(question_, at).request, inputs_));
      of_ = combination;
    }
    return *problem_;
  }

  std::string folder_;
  std::string out_;
  DatasetQuestion question_;
  Inputs inputs_;
  std::map<std::string, Combination> combinations_;
  std::unique_ptr<Problem> problem_;
  std::string of_;
  std::set<std::pair<std::string, std::string>> known_;  ///< combination and strategy
  std::size_t written_ = 0;                              ///< strategies
  std::size_t left_out_ = 0;
  std::map<std::string, std::size_t> reasons_;
};

}  // namespace

void export_dataset(const std::string& folder, const std::string& out) {
  if (fs::exists(out) && !(fs::is_directory(out) && fs::is_empty(out)))
    throw InputError(fmt::format("{} exists already", out), "name another folder");
  Exporter exporter(folder, out);
  exporter.write_all();
  exporter.print_summary();
}

}  // namespace simsync
