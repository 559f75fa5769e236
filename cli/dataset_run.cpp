#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/output_file.hpp"
#include "base/progress_bar.hpp"
#include "cli/dataset.hpp"
#include "cli/outputs.hpp"
#include "cli/pair_bench.hpp"
#include "cli/resumed_inputs.hpp"
#include "cli/terminal.hpp"
#include "cli/trial_basis.hpp"
#include "cli/worker_pool.hpp"
#include "strategies/dataset/layout.hpp"
#include "strategies/dataset/resource_spec.hpp"
#include "strategies/reader.hpp"
#include "strategies/search/trial_table.hpp"

namespace simsync {
namespace {

namespace fs = std::filesystem;

/// A name that can be a folder's.
void check_folder_name(const std::string& name, const std::string& given) {
  if (name.find('/') != std::string::npos || name.starts_with('.'))
    throw InputError(fmt::format("'{}' calls itself '{}', which cannot be the name of a folder", given, name));
}

/// One pair of a data set.
struct Task {
  std::size_t combination = 0;
  int index = 0;
};

/// What one process sends back: a mark and, where there is a pair, its row.
constexpr char kBuilt = 'b';
constexpr char kDrawn = 'd';
constexpr char kNone = '-';

class Maker {
public:
  Maker(const DatasetOptions& options, Inputs& inputs) : options_(options), inputs_(inputs) {}

  /// Writes the files of a pair and says its row.
  std::string make(const Combination& at, int index) {
    std::optional<Trial> pair = bench_for(at).pair(index);
    if (!pair) return std::string(1, kNone);
    const Problem& problem = bench_->problem();
    TrialRow row = trial_row(pair->candidate, bench_->target(), problem.samples());
    row.trial = pair->number;
    row.round = pair->round;
    row.step = pair->step;
    row.evaluator = "replay";
    row.basis = basis_of(question_at(options_.question, at).request);
    pair->candidate.strategy.name = row.strategy_id;  // two builders may make the same strategy: one file
    const std::string folder = combination_folder(at.model, at.cluster, at.workers);
    write_pair((fs::path(options_.out) / folder).string(),
               {.id = row.strategy_id,
                .resource_spec = resource_spec_text(problem.cluster, at.workers),
                .runtime = runtime_text({*pair->step}),
                .strategy = to_yaml(pair->candidate.strategy, problem.model)});
    return (pair->round == 0 ? kBuilt : kDrawn) + csv_row(trial_cells(row));
  }

private:
  /// Tasks go from combination to combination, so that one bench at a time will do.
  PairBench& bench_for(const Combination& at) {
    const auto key = std::tuple{at.model, at.cluster, at.workers};
    if (bench_ == nullptr || key != of_) {
      bench_ = std::make_unique<PairBench>(question_at(options_.question, at), inputs_, options_.question.seed);
      of_ = key;
    }
    return *bench_;
  }

  const DatasetOptions& options_;
  Inputs& inputs_;
  std::unique_ptr<PairBench> bench_;
  std::tuple<std::string, std::string, int> of_;
};

/// Every n-th pair of all, beginning with the i-th.
std::vector<Task> tasks_of(const DatasetQuestion& question, std::size_t combinations) {
  std::vector<Task> out;
  const auto pairs = static_cast<std::size_t>(question.pairs);
  for (std::size_t k = static_cast<std::size_t>(question.shard) - 1; k < combinations * pairs;
       k += static_cast<std::size_t>(question.shards))
    out.push_back({k / pairs, static_cast<int>(k % pairs)});
  return out;
}

/// Opens DIR/pairs.csv. @throws InputError when there is a data set already, or one of another question.
RowFile open_table(const DatasetOptions& options) {
  const std::string table = table_file(options.out);
  const std::string question = question_file(options.out);
  const bool exists = fs::exists(table) || fs::exists(question);
  if (exists && !options.resume)
    throw InputError(fmt::format("{} has a data set already", options.out),
                     "name another folder, or go on with this one by --resume");
  make_folders(options.out);
  if (options.resume) remove_left_files(options.out);
  announce_output(table, "--out");
  const std::string text = to_yaml(options.question);
  if (fs::exists(question)) {
    if (parse_question(read_output(question), question) != options.question)
      throw InputError(fmt::format("--resume: {} was asked for something else than this command", question),
                       "name another folder, or ask for the same");
  } else {
    write_file(question, text);
  }
  return open_resumable(table, csv_row(trial_header()), options.resume);
}

/// Behind the last pair that has a row. @throws InputError naming a row that this data set does not make.
std::size_t first_left(const CsvTable& found, const std::vector<Combination>& combinations,
                       const std::vector<Task>& tasks) {
  std::size_t at = 0;
  for (std::size_t row = 0; row < found.size(); ++row) {
    const auto is_row = [&](const Task& task) {
      const Combination& of = combinations[task.combination];
      return found.cell(row, "model") == of.model && found.cell(row, "cluster") == of.cluster &&
             found.cell(row, "workers") == std::to_string(of.workers) &&
             found.cell(row, "trial") == std::to_string(task.index);
    };
    while (at < tasks.size() && !is_row(tasks[at])) ++at;
    if (at == tasks.size())
      found.refuse(row, "--resume: this data set has no such pair here", "begin anew in another folder");
    ++at;
  }
  return at;
}

/// A row made again. @throws InputError when it has become another one, as with another version of the program.
void check_last(const CsvTable& found, const std::string& again) {
  const std::size_t row = found.size() - 1;
  std::vector<std::string> cells;
  for (const std::string& column : trial_header()) cells.push_back(found.cell(row, column));
  if (again.substr(1) != csv_row(cells))
    found.refuse(row, "--resume: this pair is made otherwise today", "begin anew in another folder");
}

struct Counts {
  std::size_t built = 0;
  std::size_t drawn = 0;
  std::size_t none = 0;
};

std::string list_of(const std::vector<int>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ", "));
}

void print_summary(const DatasetOptions& options, std::size_t combinations, const Counts& counts) {
  const DatasetQuestion& question = options.question;
  std::cout << fmt::format("{} pairs of {} combination{}, seed {}\n", counts.built + counts.drawn, combinations,
                           combinations == 1 ? "" : "s", question.seed);
  print_line("workers", list_of(question.workers));
  print_line("strategies", fmt::format("{} of builders, {} drawn", counts.built, counts.drawn));
  if (counts.none > 0)
    print_line("left out", fmt::format("{} pairs: no strategy that was drawn fits or runs", counts.none));
  print_line("written", fmt::format("{}, and the strategies in folders beside it", table_file(options.out)));
}

}  // namespace

Question question_at(const DatasetQuestion& question, const Combination& at) {
  return search_question({.model = at.model_given,
                          .cluster = at.cluster_given,
                          .strategy = {},
                          .workers = at.workers,
                          .batch = question.batch,
                          .settings = {},
                          .calibration = question.calibration},
                         question.settings);
}

std::vector<Combination> combinations_of(const DatasetQuestion& question, Inputs& inputs) {
  std::vector<Combination> out;
  for (const std::string& model : question.models) {
    for (const std::string& cluster : question.clusters) {
      for (const int workers : question.workers) {
        const Combination at{inputs.model(model).name(), inputs.cluster(cluster).name, model, cluster, workers};
        check_folder_name(at.model, model);
        check_folder_name(at.cluster, cluster);
        try {
          const PairBench check(question_at(question, at), inputs, question.seed);
          out.push_back(at);
        } catch (const PlanError& e) {
          std::cerr << fmt::format("left out: {} on {} with {} workers: {}\n", model, cluster, workers, e.what());
        }
      }
    }
  }
  const auto key = [](const Combination& c) { return std::tie(c.model, c.cluster, c.workers); };
  std::sort(out.begin(), out.end(), [&](const Combination& a, const Combination& b) { return key(a) < key(b); });
  const auto twice = std::adjacent_find(out.begin(), out.end(),
                                        [&](const Combination& a, const Combination& b) { return key(a) == key(b); });
  if (twice != out.end())
    throw InputError(fmt::format("two models or clusters have the same name: {} on {}", twice->model, twice->cluster));
  if (out.empty()) throw PlanError("no model can run on any of these clusters: there is no pair");
  return out;
}

void make_dataset(const DatasetOptions& options) {
  Inputs inputs;
  const auto combinations = combinations_of(options.question, inputs);
  const auto tasks = tasks_of(options.question, combinations.size());
  RowFile table = open_table(options);
  tell_how_to_resume(table_file(options.out));
  Maker maker(options, inputs);
  const auto make = [&](const Task& task) { return maker.make(combinations[task.combination], task.index); };
  const std::size_t first = first_left(table.found(), combinations, tasks);
  if (first > 0) check_last(table.found(), make(tasks[first - 1]));
  Counts counts;
  for (std::size_t row = 0; row < table.found().size(); ++row)
    ++(table.found().cell(row, "round") == "0" ? counts.built : counts.drawn);
  counts.none = first - table.found().size();
  {
    ProgressBar progress(tasks.size());
    progress.set(first);
    run_in_processes(
        tasks.size() - first, options.jobs, [&](std::size_t i) { return make(tasks[first + i]); },
        [&](std::size_t, const std::string& answer) {
          progress.advance();
          const char mark = answer.front();
          if (mark == kNone) ++counts.none;
          if (mark == kNone) return;
          ++(mark == kBuilt ? counts.built : counts.drawn);
          table.append(answer.substr(1));
        });
  }
  print_summary(options, combinations.size(), counts);
}

}  // namespace simsync
