#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "base/file.hpp"
#include "base/parse_units.hpp"
#include "base/wrap.hpp"
#include "cli/commands.hpp"
#include "cli/settings.hpp"
#include "cli/unknown.hpp"
#include "models/reader.hpp"
#include "platforms/reader.hpp"
#include "strategies/layouts/layout_space.hpp"
#include "strategies/reader.hpp"
#include "strategies/search/space.hpp"
#include "validate/study.hpp"

namespace simsync {
namespace {

void list_models() {
  for (const auto& name : known_models()) std::cout << fmt::format("{:<18} {}\n", name, source_of_model(name));
}

void list_model_sizes() {
  for (const auto& name : known_models()) {
    const Model model = find_model(name);
    std::cout << fmt::format(
        "{:<18} {:>13} parameters in {:>4} variables, {:>9.3f} GFLOP forward per sample, batch {}\n", name,
        model.parameter_count(), model.variables().size(), model.forward_flops().value() * 1e-9, model.default_batch());
  }
}

void list_clusters() {
  for (const auto& name : known_clusters())
    std::cout << fmt::format("{:<22} {}\n", name, find_cluster(name).description);
}

void list_devices() {
  for (const auto& [name, device] : device_catalogue()) {
    std::vector<std::string> precisions;
    for (const auto& [precision, rate] : device.peak) precisions.push_back(precision);
    std::cout << fmt::format("{:<16} {:>9}  {}\n", name, format_bytes(static_cast<double>(device.memory.count)),
                             fmt::join(precisions, " "));
  }
}

void list_strategies() {
  for (const auto& name : known_builders()) std::cout << fmt::format("{:<34} {}\n", name, describe_builder(name));
  for (const auto& name : known_strategies()) std::cout << fmt::format("{:<34} preset file\n", name);
}

void list_names(const std::vector<std::string>& names) {
  for (const auto& name : names) std::cout << name << '\n';
}

void list_settings(const std::string& cluster) {
  const Cluster c = find_cluster(cluster);
  std::cout
      << "step_time=TIME        measured single-device step to scale layer times to\n"
         "precision=NAME        fp32, tf32, amp, fp16, bf16 or fp8\n"
         "profile=NAME          auto (what the model's file names, else the best known), roofline, a profile's name "
         "or its CSV file\n"
         "optimizer=NAME        sgd, momentum (default) or adam\n"
         "master_weights=BOOL   true: weights in half precision beside an fp32 copy that the optimizer keeps\n"
         "fp32_gradients=BOOL   true: gradients of half precision add up and travel in fp32\n"
         "memory=NAME           check (default): what does not fit into a device is refused; ignore: it is predicted\n"
         "fidelity=NAME         auto, steps, fluid or folded\n"
         "solver=NAME           simgrid, or native as sweeps do: what shares links among flows\n"
         "iterations=N          most iterations to simulate\n"
         "placement=G,G,...     GPUs per node\n"
         "straggler=FACTOR      one node computes so many times slower\n"
         "variable_scale=FACTOR bytes of the variables times that, layer times as they are\n"
         "step_variation=SHARE  coefficient of variation of the compute of every worker's steps\n"
         "compute_error=0.1     standard deviation of how far the compute of a step may be off (of its logarithm)\n"
         "network_error=0.3     the same of all that is not compute\n"
         "steps_per_worker=N    steps of each worker to simulate where they vary or workers are asynchronous\n"
         "                      (default: 60 to 300, until the standard error of their mean is 1 %)\n"
         "seed=N                for what is drawn: by strategies, and in workers' steps\n"
         "model.NAME=N          a parameter of the model's file, such as model.length=4096\n"
         "strategy.OPTION=VALUE options of the strategy ('simsync list strategies')\n";
  std::cout << "group.*.KEY=VALUE     a key of every group below at once, such as group.*.cpu.threads=4\n";
  std::cout << "and, for cluster '" << c.name << "':\n";
  for (const auto& key : parameter_keys(c)) std::cout << fmt::format("{}={}\n", key, parameter_text(c, key));
}

struct SpaceQuestion {
  std::string model = "resnet50";
  std::string cluster = "g4dn.12xlarge";
  int workers = 64;
  std::vector<std::string> settings;  ///< `DIMENSION=VALUES`, with or without `space.` before it
};

void print_dimensions(const std::vector<OptionInfo>& dimensions, const std::map<std::string, std::string>& given) {
  for (const OptionInfo& dimension : dimensions) {
    const auto found = given.find(dimension.name);
    std::cout << fmt::format("{}={}\n", dimension.name, found == given.end() ? dimension.fallback : found->second)
              << "  " << wrapped(dimension.meaning, 96, 2) << '\n';
  }
}

void list_space(const SpaceQuestion& question) {
  std::map<std::string, std::string> given;
  for (const auto& [key, value] : parse_settings(question.settings))
    given[key.starts_with("space.") ? key.substr(std::string("space.").size()) : key] = value;
  const Model model = find_model(question.model);
  const Cluster cluster = grown_to(find_cluster(question.cluster), question.workers);
  const SearchSpace space = make_space(given, cluster);
  std::cout << "Dimensions of 'simsync search', each restricted or widened by --set space.DIMENSION=VALUES:\n";
  print_dimensions(space_dimensions(), given);
  std::cout << fmt::format(
      "{} on {} workers of {}: about 10^{:.0f} ways to handle the variables, for each choice of the graph "
      "level\n(schedules, fusions, algorithms and the sizes and times that follow them above)\n",
      question.model, question.workers, question.cluster, log10_size(space, model, cluster, question.workers));
  std::cout << "\nDimensions of 'simsync search --space layouts' (--method coordinate), in the same way:\n";
  print_dimensions(layout_dimensions(), {});
}

}  // namespace

void setup_list(CLI::App& app, Outcome&) {
  auto* command = app.add_subcommand(
      "list", "List models, clusters, devices, strategies, profiles, studies, settings or what a search chooses from");
  command->require_subcommand(1);
  auto sizes = std::make_shared<bool>(false);
  auto* models = command->add_subcommand("models", "The model zoo");
  models->add_flag("--sizes", *sizes, "Parameters, operations and batch of each, which takes building them");
  models->callback([sizes] { *sizes ? list_model_sizes() : list_models(); });
  command->add_subcommand("clusters", "Cluster presets")->callback(list_clusters);
  command->add_subcommand("devices", "GPUs that any cluster file may name")->callback(list_devices);
  command->add_subcommand("strategies", "Builders with their options, and preset files")->callback(list_strategies);
  command->add_subcommand("profiles", "Measured layer times")->callback([] {
    list_names(list_files(data_folder("models/profiles"), ".yaml"));
  });
  command->add_subcommand("studies", "Comparisons with published measurements")->callback([] {
    list_names(known_studies());
  });
  auto cluster = std::make_shared<std::string>("g4dn.12xlarge");
  auto* settings = command->add_subcommand("settings", "Keys of --set");
  settings->add_option("--cluster", *cluster, "Whose keys")->capture_default_str();
  settings->callback([cluster] { list_settings(*cluster); });
  auto question = std::make_shared<SpaceQuestion>();
  auto* space = command->add_subcommand("space", "What 'simsync search' chooses from, and how large that is");
  space->add_option("--model", question->model, "Whose variables are counted")->capture_default_str();
  space->add_option("--cluster", question->cluster, "Whose servers are counted")->capture_default_str();
  space->add_option("--workers", question->workers, "Devices that take part")
      ->check(whole_number(1, 1'000'000))
      ->capture_default_str();
  space->add_option("--set", question->settings, "space.DIMENSION=VALUES, again and again")->check(key_and_value());
  space->callback([question] { list_space(*question); });
}

}  // namespace simsync
