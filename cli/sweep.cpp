#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <set>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "base/parse_units.hpp"
#include "base/progress_bar.hpp"
#include "cli/commands.hpp"
#include "cli/outputs.hpp"
#include "cli/resumed_inputs.hpp"
#include "cli/settings.hpp"
#include "cli/unknown.hpp"
#include "cli/worker_pool.hpp"
#include "sim/engine/predict.hpp"
#include "strategies/builders.hpp"

namespace simsync {
namespace {

struct SweepOptions {
  std::vector<std::string> models, clusters, strategies;
  std::vector<int> workers{1};
  std::vector<std::int64_t> batches;
  std::vector<std::string> settings;
  std::string calibration;
  std::string csv = "-";
  std::string shard;
  int jobs = 1;
  bool resume = false;
  std::string sort;
};

std::vector<PredictRequest> combinations(const SweepOptions& options) {
  std::vector<std::string> strategies;
  for (const auto& name : options.strategies) {
    const auto known = known_builders();
    if (name == "all") {
      strategies.insert(strategies.end(), known.begin(), known.end());
    } else {
      strategies.push_back(name);
    }
  }
  std::vector<std::optional<std::int64_t>> batches(options.batches.begin(), options.batches.end());
  if (batches.empty()) batches.emplace_back();
  const auto settings = parse_settings(options.settings);
  std::vector<PredictRequest> out;
  for (const auto& model : options.models)
    for (const auto& cluster : options.clusters)
      for (const auto& strategy : strategies)
        for (const int workers : options.workers)
          for (const auto& batch : batches)
            out.push_back({model, cluster, strategy, workers, batch, settings, options.calibration});
  return out;
}

/// `i/n`, the i-th (from 1) of n parts.
struct Shard {
  long long number = 1;
  long long count = 1;
};

std::optional<Shard> parse_shard(const std::string& text) {
  const std::size_t slash = std::min(text.find('/'), text.size() - 1);
  const auto number = parse_integer(text.substr(0, slash));
  const auto count = parse_integer(text.substr(slash + 1));
  if (!number || !count || *number < 1 || *number > *count) return std::nullopt;
  return Shard{*number, *count};
}

CLI::Validator shard() {
  const auto check = [](std::string& text) {
    return parse_shard(text) ? std::string{} : fmt::format("expected i/n with i from 1 to n, got '{}'", text);
  };
  return CLI::Validator(check, "i/n");
}

/// Every n-th combination, beginning with the i-th.
std::vector<PredictRequest> shard_of(std::vector<PredictRequest> all, const std::string& text) {
  if (text.empty()) return all;
  const Shard shard = parse_shard(text).value();
  std::vector<PredictRequest> out;
  for (auto k = static_cast<std::size_t>(shard.number - 1); k < all.size(); k += static_cast<std::size_t>(shard.count))
    out.push_back(all[k]);
  return out;
}

/// What one process sends back: a row and its notes, or why there is no row.
constexpr char kApart = '\x1e';
constexpr char kSkipped = '!';

std::string answer(const PredictRequest& request, Inputs& inputs) {
  try {
    const PredictedRow row = predict(request, inputs);
    return csv_row(row_cells(row)) + fmt::format("{}{}", kApart, fmt::join(row.notes, std::string(1, kApart)));
  } catch (const PlanError& e) {
    // One combination that does not fit does not end a sweep; it has no row.
    return fmt::format("{}{} with {} workers on {}: {}", kSkipped, request.strategy, request.workers, request.cluster,
                       e.what());
  }
}

/// Takes answers apart: rows go to `row`, everything else to the user, the same note only once.
class Answers {
public:
  Answers(ProgressBar& progress, std::function<void(const std::string&)> row)
      : progress_(progress), row_(std::move(row)) {}

  void take(const std::string& answer) {
    progress_.advance();
    if (answer.front() == kSkipped) {
      ++skipped_;
      return progress_.message("skipped: " + answer.substr(1));
    }
    std::size_t at = answer.find(kApart);
    row_(answer.substr(0, at));
    while (++at < answer.size()) {
      const std::size_t end = std::min(answer.find(kApart, at), answer.size());
      const std::string note = answer.substr(at, end - at);
      if (told_.insert(note).second) progress_.message("note: " + note);
      at = end;
    }
  }

  [[nodiscard]] std::size_t skipped() const { return skipped_; }

private:
  ProgressBar& progress_;
  std::size_t skipped_ = 0;
  std::function<void(const std::string&)> row_;
  std::set<std::string> told_;
};

void sort_rows(std::vector<std::string>& rows, const std::string& column) {
  if (rows.empty()) return;
  const auto& header = row_header();
  const auto found = std::find(header.begin(), header.end(), column);
  SIMSYNC_ASSERT(found != header.end());
  const auto at = static_cast<std::size_t>(found - header.begin());
  const auto key = [&](const std::string& row) {
    const auto table = CsvTable::parse(csv_row(header) + "\n" + row, "sweep");
    return std::pair{parse_number(table.cell(0, header[at])).value_or(0.0), table.cell(0, header[at])};
  };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const std::string& a, const std::string& b) { return key(a) < key(b); });
}

/// What is misspelt is told before the first row is out: every model, cluster and strategy is prepared once, with all
/// settings. What does not fit together is told when its turn comes. @throws InputError
void check_names(const SweepOptions& options, const std::vector<PredictRequest>& requests, Inputs& inputs) {
  for (const auto& name : options.models) (void)inputs.model(name);
  for (const auto& name : options.clusters) (void)inputs.cluster(name);
  const auto& header = row_header();
  if (!options.sort.empty() && std::find(header.begin(), header.end(), options.sort) == header.end())
    throw InputError("--sort " + options.sort + ": no such column", did_you_mean(options.sort, header));
  std::set<std::string> models, clusters, strategies;
  for (const PredictRequest& request : requests) {
    if (models.contains(request.model) && clusters.contains(request.cluster) && strategies.contains(request.strategy))
      continue;
    try {
      (void)prepare(request, inputs);
    } catch (const PlanError&) {
      continue;  // another combination has to show the names
    }
    models.insert(request.model);
    clusters.insert(request.cluster);
    strategies.insert(request.strategy);
  }
}

void check_resume(const SweepOptions& options) {
  if (!options.resume) return;
  if (!options.sort.empty())
    throw InputError("--resume goes on in the order of the sweep and cannot be combined with --sort");
  if (options.csv == "-") throw InputError("--resume needs the file to go on with: --csv FILE");
}

/// A sweep without a row is a mistake; one shard without a row is not, when the others have some.
void tell_skipped(const SweepOptions& options, std::size_t skipped, std::size_t asked, bool has_rows) {
  if (skipped == 0) return;
  if (skipped == asked && !has_rows && options.shard.empty())
    throw PlanError(asked == 1 ? std::string("the only combination was skipped: there is no row")
                               : fmt::format("all {} combinations were skipped: there is no row", asked));
  std::cerr << fmt::format("{} of {} combinations {} skipped\n", skipped, asked, skipped == 1 ? "was" : "were");
}

void run_sweep(const SweepOptions& options) {
  Inputs inputs;
  check_resume(options);
  if (options.csv != "-") announce_output(inputs_file(options.csv), "--csv");
  const auto all = combinations(options);
  check_names(options, all, inputs);
  auto requests = shard_of(all, options.shard);
  RowFile file = open_resumable(options.csv, csv_row(row_header()), options.resume);
  if (options.sort.empty()) tell_how_to_resume(options.csv);
  requests = without_row(requests, file.found(), inputs);
  ProgressBar progress(requests.size());
  std::vector<std::string> rows;
  Answers answers(progress, [&](const std::string& row) {
    if (options.sort.empty()) return file.append(row);
    rows.push_back(row);
  });
  run_in_processes(
      requests.size(), options.jobs, [&](std::size_t i) { return answer(requests[i], inputs); },
      [&](std::size_t, const std::string& text) { answers.take(text); });
  sort_rows(rows, options.sort);
  for (const auto& row : rows) file.append(row);
  progress.clear();
  tell_skipped(options, answers.skipped(), requests.size(), file.found().size() > 0);
}

}  // namespace

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
  command->add_option("--set", options->settings, "key=value, again and again ('simsync list settings')")
      ->check(key_and_value());
  command->add_option("--csv", options->csv, "Write rows to this file, anew without --resume; '-' is standard output")
      ->check(output_file("--csv"))
      ->capture_default_str();
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
