#include "cli/import_autosync.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

#include "base/csv.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/progress_bar.hpp"
#include "cli/pair_bench.hpp"
#include "cli/row_file.hpp"
#include "cli/settings.hpp"
#include "cli/unknown.hpp"
#include "strategies/dataset/autodist_strategy.hpp"
#include "strategies/dataset/layout.hpp"
#include "strategies/reader.hpp"
#include "strategies/search/trial_table.hpp"

namespace simsync {
namespace {

namespace fs = std::filesystem;

struct AutosyncFlags {
  std::string archive;
  std::string model;
  std::string cluster;
  std::int64_t batch = 0;
  std::vector<std::string> settings;
  std::string out;
};

class Importer {
public:
  explicit Importer(const AutosyncFlags& flags) : flags_(flags) {}

  /// @return whether the strategy is one of which the simulator can say something.
  bool import(const ArchivedPair& pair, int number, RowFile& table) {
    const StrategyMessage message = parse_message(read_file(pair.strategy), pair.strategy);
    const std::string resources = read_file(pair.resource_spec);
    const int workers = static_cast<int>(message.replicas.size());
    PairBench& bench = bench_for(workers);
    const Problem& problem = bench.problem();
    const Strategy strategy = from_message(message, {.model = problem.model,
                                                     .cluster = problem.cluster,
                                                     .nodes = parse_resource_nodes(resources, pair.resource_spec),
                                                     .file = pair.strategy});
    const auto candidate = bench.candidate(strategy, "archive");
    if (!candidate) return false;
    const Seconds step = parse_runtime(read_file(pair.runtime), pair.runtime);
    TrialRow row = trial_row(*candidate, bench.target(), problem.samples());
    row.trial = number;
    row.round = 1;
    row.step = step;
    row.evaluator = "archive";
    const std::string folder = combination_folder(row.model, row.cluster, workers);
    write_pair((fs::path(flags_.out) / folder).string(), {.id = row.strategy_id,
                                                          .resource_spec = resources,
                                                          .runtime = runtime_text({step}),
                                                          .strategy = to_yaml(strategy, problem.model)});
    table.append(csv_row(trial_cells(row)));
    return true;
  }

private:
  PairBench& bench_for(int workers) {
    auto& bench = benches_[workers];
    if (bench == nullptr) {
      PredictRequest request{.model = flags_.model,
                             .cluster = flags_.cluster,
                             .strategy = {},
                             .workers = workers,
                             .batch = {},
                             .settings = {},
                             .calibration = {}};
      if (flags_.batch != 0) request.batch = flags_.batch;
      auto settings = parse_settings(flags_.settings);
      settings.emplace_back("memory", "ignore");  // it ran
      bench = std::make_unique<PairBench>(search_question(std::move(request), settings), inputs_, 1);
    }
    return *bench;
  }

  const AutosyncFlags& flags_;
  Inputs inputs_;
  std::map<int, std::unique_ptr<PairBench>> benches_;
};

void import_autosync(const AutosyncFlags& flags) {
  const auto pairs = find_pairs(flags.archive);
  if (fs::exists(table_file(flags.out)))
    throw InputError(fmt::format("{} has a data set already", flags.out), "name another folder");
  make_folders(flags.out);
  RowFile table(table_file(flags.out), csv_row(trial_header()), false);
  Importer importer(flags);
  int number = 0;
  std::size_t left_out = 0;
  {
    ProgressBar progress(pairs.size());
    for (const ArchivedPair& pair : pairs) {
      if (importer.import(pair, number, table)) {
        ++number;
      } else {
        ++left_out;
      }
      progress.advance();
    }
  }
  std::cout << fmt::format("{} pairs imported to {}\n", number, flags.out);
  if (left_out > 0)
    std::cout << fmt::format("{} left out: their steps differ from each other, or they have too many shards\n",
                             left_out);
}

}  // namespace

void setup_import_autosync(CLI::App& import) {
  auto flags = std::make_shared<AutosyncFlags>();
  auto* command = import.add_subcommand("autosync", "Measured strategies of AutoSync's archives: a data set");
  command->add_option("ARCHIVE", flags->archive, "Folder of the archive with strategies of one model on one cluster")
      ->required()
      ->check(file_name());
  command->add_option("--model", flags->model, "Model with the archive's variables, by name: a name or a path")
      ->required();
  command
      ->add_option("--cluster", flags->cluster,
                   "Cluster with as many GPUs in each node as the archive's: a name or a path")
      ->required();
  command->add_option("--out", flags->out, "Folder of the data set")->required()->check(file_name());
  command->add_option("--batch", flags->batch, "Samples per worker and step (default: the model's)")
      ->check(whole_number(1, 100'000'000));
  command->add_option("--set", flags->settings, "key=value, again and again ('simsync list settings')")
      ->check(key_and_value());
  command->callback([flags] { import_autosync(*flags); });
}

}  // namespace simsync
