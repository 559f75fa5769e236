#include "cli/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"
#include "cli/shard.hpp"
#include "cli/unknown.hpp"
#include "strategies/dataset/merge.hpp"

namespace simsync {
namespace {

constexpr const char* kAutodist = "autodist";

struct DatasetFlags {
  // More than ten thousand different pairs: 96 combinations of 112, of which some cannot run and some are alike.
  std::vector<std::string> models{"alexnet",      "bert-base", "densenet121", "gpt2",
                                  "inception-v3", "ncf",       "resnet50",    "vgg16"};
  std::vector<std::string> clusters{"titanx-40gbe",    "g4dn.12xlarge", "dgx-1",
                                    "rtx2080ti-10gbe", "p3.16xlarge",   "v100-pcie-rdma100g"};
  std::vector<int> workers{8, 16};
  int pairs = 112;
  std::int64_t batch = 0;
  std::uint64_t seed = 1;
  std::string calibration;
  std::vector<std::string> settings;
  std::string shard;
  std::string out;
  int jobs = 1;
  bool resume = false;
  std::vector<std::string> merge;
  std::vector<std::string> exported;  ///< format and folder
};

/// In order, each once: what is asked does not depend on how a list is written.
template <class Value>
std::vector<Value> sorted(std::vector<Value> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

DatasetQuestion question_of(const DatasetFlags& flags) {
  DatasetQuestion out{.models = sorted(flags.models),
                      .clusters = sorted(flags.clusters),
                      .workers = sorted(flags.workers),
                      .pairs = flags.pairs,
                      .seed = flags.seed,
                      .batch = {},
                      .calibration = flags.calibration,
                      .settings = parse_settings(flags.settings)};
  if (flags.batch != 0) out.batch = flags.batch;
  if (const auto shard = flags.shard.empty() ? std::nullopt : parse_shard(flags.shard)) {
    out.shard = static_cast<int>(shard->number);
    out.shards = static_cast<int>(shard->count);
  }
  return out;
}

void run_dataset(const DatasetFlags& flags) {
  if (!flags.merge.empty()) {
    const MergedPairs pairs = merge_datasets(flags.merge, flags.out);
    std::cout << fmt::format("{} pairs of {} shard{}\n", pairs.made, flags.merge.size(),
                             flags.merge.size() == 1 ? "" : "s");
    if (pairs.made < pairs.asked)
      std::cerr << fmt::format(
          "note: {} of the {} pairs that were asked for {} missing: no strategy fits, or a shard was ended early (its "
          "command with --resume goes on)\n",
          pairs.asked - pairs.made, pairs.asked, pairs.asked - pairs.made == 1 ? "is" : "are");
    return;
  }
  if (!flags.exported.empty()) {
    if (flags.exported.front() != kAutodist)
      throw InputError(fmt::format("--export {}: unknown format", flags.exported.front()),
                       "expected --export autodist DIR");
    return export_dataset(flags.exported.back(), flags.out);
  }
  make_dataset({.question = question_of(flags), .out = flags.out, .jobs = flags.jobs, .resume = flags.resume});
}

void add_question(CLI::App& command, DatasetFlags& flags) {
  const auto list = [&](const char* flag, auto& into, const char* text) {
    return command.add_option(flag, into, text)->delimiter(',');
  };
  list("--model", flags.models, "Models, separated by commas (default: eight, which docs/dataset.md names)");
  list("--cluster", flags.clusters, "Clusters (default: six)");
  list("--workers", flags.workers, "Numbers of devices (default: 8,16)")->check(whole_number(1, 1'000'000));
  command
      .add_option("--pairs", flags.pairs,
                  "Pairs of each model, cluster and number of devices: of all builders, then drawn")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  command.add_option("--batch", flags.batch, "Samples per worker and step (default: each model's)")
      ->check(whole_number(1, 100'000'000));
  command.add_option("--seed", flags.seed, "For everything that is drawn")->capture_default_str();
  command.add_option("--calibration", flags.calibration, "Fitted numbers of the clusters: a file of calibrate")
      ->check(file_name());
  command
      .add_option(
          "--set", flags.settings,
          "key=value, again and again ('simsync list settings'); space.DIMENSION=VALUES restricts what is drawn "
          "('simsync list space')")
      ->check(key_and_value());
}

}  // namespace

void setup_dataset(CLI::App& app, Outcome&) {
  auto flags = std::make_shared<DatasetFlags>();
  auto* command = app.add_subcommand("dataset", "Make a data set of strategies and their steps, for rankers");
  add_question(*command, *flags);
  command->add_option("--out", flags->out, "Folder of the data set: pairs.csv, and strategies in AutoSync's layout")
      ->required()
      ->check(file_name());
  command->add_option("--jobs", flags->jobs, "Processes that work side by side")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  command->add_option("--shard", flags->shard, "i/n: only every n-th pair, beginning with the i-th")->check(shard());
  command->add_flag("--resume", flags->resume, "Go on with the pairs that the folder has");
  command->add_option("--merge", flags->merge, "Put the shards in these folders together, and make nothing")
      ->expected(1, 1'000'000)
      ->check(file_name());
  command
      ->add_option("--export", flags->exported,
                   "autodist DIR: write the data set in DIR in the format of AutoSync's archives, and make nothing")
      ->expected(2)
      ->check(file_name());
  command->callback([flags] { run_dataset(*flags); });
}

}  // namespace simsync
