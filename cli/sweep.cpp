#include "cli/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/parse_units.hpp"
#include "base/progress_bar.hpp"
#include "cli/commands.hpp"
#include "cli/correction.hpp"
#include "cli/interruption.hpp"
#include "cli/outputs.hpp"
#include "cli/ranking.hpp"
#include "cli/resumed_inputs.hpp"
#include "cli/row_file.hpp"
#include "cli/settings.hpp"
#include "cli/shard.hpp"
#include "cli/terminal.hpp"
#include "cli/unknown.hpp"
#include "cli/worker_pool.hpp"
#include "sim/engine/predict.hpp"
#include "sim/engine/step_parts.hpp"
#include "strategies/builders.hpp"

namespace simsync {
namespace {

/// In their order, each once.
template <class Value>
std::vector<Value> without_repeats(const std::vector<Value>& values) {
  std::vector<Value> out;
  for (const Value& value : values)
    if (std::find(out.begin(), out.end(), value) == out.end()) out.push_back(value);
  return out;
}

std::vector<std::string> strategies_of(const SweepOptions& options) {
  std::vector<std::string> out;
  for (const auto& name : options.strategies) {
    if (name != "all") out.push_back(name);
    if (name == "all")
      for (const auto& known : known_builders()) out.push_back(known);
  }
  return without_repeats(out);
}

std::vector<PredictRequest> combinations(const SweepOptions& options) {
  std::vector<std::optional<std::int64_t>> batches(options.batches.begin(), options.batches.end());
  if (batches.empty()) batches.emplace_back();
  const auto settings = settings_combinations(options.settings);
  std::vector<PredictRequest> out;
  for (const auto& model : without_repeats(options.models))
    for (const auto& cluster : without_repeats(options.clusters))
      for (const auto& strategy : strategies_of(options))
        for (const int workers : without_repeats(options.workers))
          for (const auto& batch : without_repeats(batches))
            for (const auto& setting : without_repeats(settings))
              out.push_back({model, cluster, strategy, workers, batch, setting, options.calibration});
  return out;
}

/// Every n-th combination, beginning with the i-th.
std::vector<PredictRequest> shard_of(std::vector<PredictRequest> all, const std::string& text) {
  if (text.empty()) return all;
  const ShardFlag shard = parse_shard(text).value();
  std::vector<PredictRequest> out;
  for (auto k = static_cast<std::size_t>(shard.number - 1); k < all.size(); k += static_cast<std::size_t>(shard.count))
    out.push_back(all[k]);
  return out;
}

/// Rows come from the native solver unless the user names one.
bool names_solver(const PredictRequest& request) {
  return std::any_of(request.settings.begin(), request.settings.end(),
                     [](const auto& setting) { return setting.first == "solver"; });
}

/// What one process sends back: a row, what limits it (for the table only) and its notes, or why there is no row.
constexpr char kApart = '\x1e';
constexpr char kSkipped = '!';

std::string answer(const PredictRequest& request, Inputs& inputs, const RowCorrection* correction, bool with_limit) {
  try {
    Problem problem = prepare(request, inputs);
    if (!names_solver(request)) problem.options.solver = Solver::Native;
    const Prediction prediction =
        replay(problem.plan, problem.cluster, with_limit ? recorded_for_limit(problem) : problem.options);
    PredictedRow row = row_of(request, problem, prediction);
    if (correction != nullptr) {
      correction->apply(request, problem, row);
      const std::vector<std::string> notes = correction->notes(request, problem);
      row.notes.insert(row.notes.end(), notes.begin(), notes.end());
    }
    std::vector<std::string> parts{csv_row(row_cells(row)), with_limit ? limit_phrase(problem, prediction) : ""};
    parts.insert(parts.end(), row.notes.begin(), row.notes.end());
    return fmt::format("{}", fmt::join(parts, std::string(1, kApart)));
  } catch (const PlanError& e) {
    // One combination that does not fit does not end a sweep; it has no row.
    return fmt::format("{}{} with {} workers on {}: {}", kSkipped, request.strategy, request.workers, request.cluster,
                       e.what());
  }
}

/// The same row by the reference solver, `row` itself where that would take minutes.
std::string confirmed(const PredictRequest& request, Inputs& inputs, const RowCorrection* correction,
                      const std::string& row) {
  if (names_solver(request)) return row;
  constexpr std::int64_t kMostWork = 1'000'000'000;  // some ten seconds
  Problem problem = prepare(request, inputs);
  problem.options.solver = Solver::SimGrid;
  ReplayOptions options = problem.options;
  options.most_work = kMostWork;
  const Prediction prediction = replay(problem.plan, problem.cluster, options);
  if (!prediction.finished) return row;
  PredictedRow reference = row_of(request, problem, prediction);
  if (correction != nullptr) correction->apply(request, problem, reference);
  return csv_row(row_cells(reference));
}

/// Takes answers apart: rows go to `row`, everything else to the user, the same note only once.
class Answers {
public:
  using TakeRow = std::function<void(std::size_t request, const std::string& row, const std::string& limit)>;
  Answers(ProgressBar& progress, TakeRow row) : progress_(progress), row_(std::move(row)) {}

  void take(std::size_t request, const std::string& answer) {
    progress_.advance();
    if (answer.front() == kSkipped) {
      ++skipped_;
      return progress_.message("skipped: " + answer.substr(1));
    }
    std::size_t at = 0;
    const auto next = [&] {
      const std::size_t begin = at;
      at = std::min(answer.find(kApart, begin), answer.size()) + 1;
      return answer.substr(begin, at - 1 - begin);
    };
    const std::string row = next();
    const std::string limit = next();
    row_(request, row, limit);
    while (at < answer.size()) {
      const std::string note = next();
      if (told_.insert(note).second) progress_.message("note: " + note);
    }
  }

  [[nodiscard]] std::size_t skipped() const { return skipped_; }

private:
  ProgressBar& progress_;
  std::size_t skipped_ = 0;
  TakeRow row_;
  std::set<std::string> told_;
};

struct Row {
  std::size_t request = 0;  ///< number of its question
  std::string csv;
  std::string limit;
  bool is_confirmed = false;  ///< by the reference solver
};

void sort_rows(std::vector<Row>& rows, const SweepOptions& options) {
  const std::string& column = options.sort;
  if (options.best_first)
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return is_better(ranked_row(a.csv, a.limit), ranked_row(b.csv, b.limit));
    });
  if (rows.empty() || column.empty()) return;
  const auto& header = row_header();
  const auto found = std::find(header.begin(), header.end(), column);
  SIMSYNC_ASSERT(found != header.end());
  const auto at = static_cast<std::size_t>(found - header.begin());
  const auto key = [&](const std::string& row) {
    const auto table = CsvTable::parse(csv_row(header) + "\n" + row, "sweep");
    return std::pair{parse_number(table.cell(0, header[at])).value_or(0.0), table.cell(0, header[at])};
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return key(a.csv) < key(b.csv); });
}

/// What is misspelt is told before the first row is out: every model, cluster and strategy is prepared once, with all
/// settings. What does not fit together is told when its turn comes. @throws InputError
void check_names(const SweepOptions& options, const std::vector<PredictRequest>& requests, Inputs& inputs) {
  for (const auto& name : options.models) (void)inputs.model(name);
  for (const auto& name : options.clusters) (void)inputs.cluster(name);
  const auto& header = row_header();
  if (!options.sort.empty() && std::find(header.begin(), header.end(), options.sort) == header.end())
    throw InputError("--sort " + options.sort + ": no such column", did_you_mean(options.sort, header));
  std::set<std::string> models, clusters, strategies, settings;
  for (const PredictRequest& request : requests) {
    const std::string setting = settings_text(request.settings);
    if (models.contains(request.model) && clusters.contains(request.cluster) && strategies.contains(request.strategy) &&
        settings.contains(setting))
      continue;
    try {
      (void)prepare(request, inputs);
    } catch (const PlanError&) {
      continue;  // another combination has to show the names
    }
    models.insert(request.model);
    clusters.insert(request.cluster);
    strategies.insert(request.strategy);
    settings.insert(setting);
  }
}

void check_output(const SweepOptions& options) {
  if (options.table && options.csv == "-")
    throw InputError("--table and --csv -: both need standard output", "give --csv a file");
  if (!options.resume) return;
  if (!options.sort.empty())
    throw InputError("--resume goes on in the order of the sweep and cannot be combined with --sort");
  if (options.csv.empty() || options.csv == "-") throw InputError("--resume needs the file to go on with: --csv FILE");
}

/// A sweep without a row is a mistake; one shard without a row is not, when the others have some.
void tell_skipped(const SweepOptions& options, std::size_t skipped, std::size_t asked, bool has_rows) {
  if (skipped == 0) return;
  if (skipped == asked && !has_rows && options.shard.empty())
    throw PlanError(asked == 1 ? std::string("the only combination was skipped: there is no row")
                               : fmt::format("all {} combinations were skipped: there is no row", asked));
  std::cerr << fmt::format("{} of {} combinations {} skipped\n", skipped, asked, skipped == 1 ? "was" : "were");
}

/// Takes rows as they come, and shows them at the end.
class Results {
public:
  Results(const SweepOptions& options, RowFile* file, bool table)
      : options_(options), file_(file), table_(table), at_end_(!options.sort.empty() || options.best_first) {}

  void add(const Row& row) {
    if (!at_end_ && file_ != nullptr) file_->append(row.csv);
    rows_.push_back(row);
  }

  /// The best row of each model, which a table names first, as `confirm` has it.
  void confirm_best(const std::function<std::string(const Row&)>& confirm) {
    if (!table_) return;
    for (bool all = false; !all;) {
      all = true;
      for (Row* row : best_of_each_model()) {
        if (std::exchange(row->is_confirmed, true)) continue;
        row->csv = confirm(*row);
        all = false;  // another one may be the best now
      }
    }
  }

  /// What would be lost if the process ended now.
  [[nodiscard]] bool shows_at_end() const { return at_end_ || table_; }
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  void show() {
    sort_rows(rows_, options_);
    if (at_end_ && file_ != nullptr)
      for (const Row& row : rows_) file_->append(row.csv);
    std::vector<RankedRow> ranked;
    for (const Row& row : rows_) ranked.push_back(ranked_row(row.csv, row.limit));
    if (table_)
      std::cout << ranking(ranked, {terminal_style(), !options_.sort.empty()}) << std::flush;
    else if (const std::string misfits = misfit_note(ranked, "note: ", kWidth); !misfits.empty())
      std::cerr << misfits << '\n';
  }

private:
  [[nodiscard]] std::vector<Row*> best_of_each_model() {
    std::map<std::string, Row*> best;
    for (Row& row : rows_) {
      const RankedRow ranked = ranked_row(row.csv, row.limit);
      const auto [known, fresh] = best.try_emplace(ranked.model, &row);
      if (!fresh && is_better(ranked, ranked_row(known->second->csv, known->second->limit))) known->second = &row;
    }
    std::vector<Row*> out;
    for (const auto& [model, row] : best) out.push_back(row);
    return out;
  }

  static constexpr std::size_t kWidth = 80;
  const SweepOptions& options_;
  RowFile* file_;
  bool table_;
  bool at_end_;
  std::vector<Row> rows_;
};

}  // namespace

void run_sweep(const SweepOptions& options) {
  Inputs inputs;
  const auto correction = options.correction.empty() ? nullptr : std::make_unique<RowCorrection>(options.correction);
  check_output(options);
  const bool table = options.table || (options.csv != "-" && prints_to_terminal());
  const std::string csv = options.csv.empty() ? "-" : options.csv;
  if (csv != "-") announce_output(inputs_file(csv), "--csv");
  auto all = combinations(options);
  if (correction != nullptr)
    for (PredictRequest& request : all) request = correction->asked(std::move(request), inputs);
  check_names(options, all, inputs);
  auto requests = shard_of(all, options.shard);
  const std::size_t combined = requests.size();
  std::optional<RowFile> file;
  if (!table || !options.csv.empty()) file.emplace(open_resumable(csv, csv_row(row_header()), options.resume));
  Results results(options, file ? &*file : nullptr, table);
  if (file && options.sort.empty() && !options.best_first) tell_how_to_resume(csv);
  if (file) requests = without_row(requests, file->found(), inputs);
  const std::size_t found = combined - requests.size();
  if (options.resume && requests.empty())
    std::cerr << fmt::format("nothing left: {} of {} rows are there\n", found, combined);
  std::size_t skipped = 0;
  {
    std::optional<HeldInterruption> held;
    std::function<bool()> stop;
    if (results.shows_at_end()) {
      held.emplace();
      stop = [] { return HeldInterruption::signal() != 0; };
    }
    std::optional<ProgressBar> progress(std::in_place, requests.size());
    Answers answers(*progress, [&](std::size_t request, const std::string& row, const std::string& limit) {
      results.add({.request = request, .csv = row, .limit = limit});
    });
    std::size_t done = 0;
    const bool all_done = run_in_processes(
        requests.size(), options.jobs,
        [&](std::size_t i) { return answer(requests[i], inputs, correction.get(), table); },
        [&](std::size_t request, const std::string& text) {
          ++done;
          answers.take(request, text);
        },
        stop);
    progress.reset();
    if (!all_done) {
      results.show();
      end_interrupted(HeldInterruption::signal(),
                      fmt::format("interrupted: {} of {} combinations are done", found + done, combined));
    }
    skipped = answers.skipped();
  }
  tell_skipped(options, skipped, requests.size(), !results.empty() || found > 0);
  results.confirm_best(
      [&](const Row& row) { return confirmed(requests[row.request], inputs, correction.get(), row.csv); });
  results.show();
}

void setup_sweep(CLI::App& app, Outcome&) {
  auto options = std::make_shared<SweepOptions>();
  auto* command =
      app.add_subcommand("sweep", "Predict every combination of models, clusters, strategies, workers and batches");
  const auto list = [&](const char* flag, auto& into, const char* text) {
    return command->add_option(flag, into, text)->delimiter(',');
  };
  list("--model", options->models, "Models, separated by commas")->required();
  list("--cluster", options->clusters, "Clusters")->required();
  list("--strategy", options->strategies, "Strategies; 'all' stands for every builder")->required();
  list("--workers", options->workers, "Numbers of devices")->capture_default_str()->check(whole_number(1, 1'000'000));
  list("--batch", options->batches, "Samples per worker and step (default: each model's)")
      ->check(whole_number(1, 100'000'000));
  command->add_option("--calibration", options->calibration, "Fitted numbers of the clusters: a file of calibrate")
      ->check(file_name());
  command
      ->add_option("--correction", options->correction,
                   "What measured strategies teach of predicted steps: a file of calibrate")
      ->check(file_name());
  command->add_option("--set", options->settings, "key=value or key=a,b,c, again and again ('simsync list settings')")
      ->check(key_and_value());
  command
      ->add_option("--csv", options->csv,
                   "Write rows to this file, anew without --resume; '-' is standard output, where they go by default "
                   "unless it is a terminal")
      ->check(output_file("--csv"));
  command->add_flag("--table", options->table, "Print a ranking for people, as on a terminal");
  command->add_option("--sort", options->sort, "Sort rows by this column (rows appear at the end)");
  command->add_option("--jobs", options->jobs, "Processes that work side by side")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  command->add_option("--shard", options->shard, "i/n: only every n-th combination, beginning with the i-th")
      ->check(shard());
  command->add_flag("--resume", options->resume,
                    "Keep the rows that the file has and add the others, skipped ones included");
  command->callback([options] { run_sweep(*options); });
}

}  // namespace simsync
