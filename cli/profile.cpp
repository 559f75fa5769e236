// Times the layers of a model on this machine.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/parse_units.hpp"
#include "base/progress_bar.hpp"
#include "cli/commands.hpp"
#include "cli/outputs.hpp"
#include "cli/settings.hpp"
#include "cli/unknown.hpp"
#include "hw/profile/stages.hpp"
#include "hw/profile/time_layers.hpp"
#include "models/profile_writer.hpp"
#include "models/reader.hpp"

namespace simsync {
namespace {

struct ProfileOptions {
  std::string model;
  std::string precision = "fp32";
  std::string device;
  std::string device_name;
  std::string out;
  std::int64_t batch = 0;
  int repeats = 20;
};

std::string manifest_of(const std::string& table) {
  return std::filesystem::path(table).replace_extension(".yaml").string();
}

void expect_layers_to_time(const Model& model) {
  for (LayerId id = 0; id < model.layer_count(); ++id)
    if (has_kernels(model.layer(id))) return;
  throw InputError(
      fmt::format("every layer of model '{}' is given in numbers: there is nothing to time", model.name()));
}

LayerTimings measure(const Model& model, LayerTimingOptions options, Backend& backend) {
  ProgressBar bar(static_cast<std::size_t>(options.warm_up + 2 * options.repeats));
  options.on_step = [&bar] { bar.advance(); };
  return time_layers(model, options, backend);
}

/// What the times contain and what not, for the manifest.
std::string note_of(const LayerTimings& timings) {
  std::string note =
      "every layer timed within whole steps; convolutions and matrix products as such, without biases; all other "
      "layers "
      "as streams of the bytes they move";
  if (!timings.untimed.empty())
    note += fmt::format("; {} layers given in numbers have no rows", timings.untimed.size());
  return note;
}

MeasuredProfile profile_of(const ProfileOptions& options, const LayerTimings& timings,
                           const DeviceDescription& device) {
  return {.device = options.device_name.empty() ? device.name : options.device_name,
          .precision = options.precision,
          .batch = options.batch,
          .framework = device.framework,
          .source = fmt::format("measured with simsync profile on {} on {:%Y-%m-%d}, {} steps", device.name,
                                fmt::gmtime(std::time(nullptr)), timings.steps.size()),
          .note = note_of(timings),
          .steps = timings.steps};
}

void print_summary(const ProfileOptions& options, const LayerTimings& timings, Backend& backend) {
  const DeviceDescription device = backend.device();
  const Seconds sum = timings.sum_of_layers();
  const Seconds whole = timings.whole_step();
  std::cout << fmt::format("{} at {}, batch {}, on {} ({})\n", options.model, options.precision, options.batch,
                           device.name, device.framework);
  std::cout << fmt::format("  sum of layers  {}   (median of {} steps in which every pass of a layer was timed)\n",
                           format_seconds(sum), timings.steps.size());
  std::cout << fmt::format("  whole step     {}   (median of {} steps without a stop; the sum is {:+.1f} %)\n",
                           format_seconds(whole), timings.whole.size(), 100.0 * (sum / whole - 1.0));
  if (const auto rate = backend.host_bandwidth())
    std::cout << fmt::format("  host to device {:.2f} GB/s, device to host {:.2f} GB/s\n",
                             1e-9 * rate->to_device.value(), 1e-9 * rate->to_host.value());
  std::cout << fmt::format("  written        {} and {}\n", options.out, manifest_of(options.out));
}

void run_profile(ProfileOptions options) {
  announce_output(manifest_of(options.out), "--out");
  const Model model = find_model(options.model);
  expect_layers_to_time(model);
  if (options.batch == 0) options.batch = model.default_batch();
  const auto backend = make_backend(options.device, options.precision);
  const LayerTimings timings = measure(model, {.batch = options.batch, .repeats = options.repeats}, *backend);
  for (const std::string& layer : timings.untimed)
    std::cerr << fmt::format("warning: layer '{}' is given in numbers; its time will be estimated\n", layer);
  save_profile(options.out, model, profile_of(options, timings, backend->device()));
  print_summary(options, timings, *backend);
}

/// A check that a file name ends in .csv.
CLI::Validator csv_file() {
  return {[](std::string& text) {
            return std::filesystem::path(text).extension() == ".csv"
                       ? std::string{}
                       : fmt::format("expected a file name that ends in .csv, got '{}'", text);
          },
          "", "csv file"};
}

}  // namespace

void setup_profile(CLI::App& app, Outcome&) {
  auto options = std::make_shared<ProfileOptions>();
  auto* command = app.add_subcommand(kProfile, kAboutProfile);
  command->add_option("--model", options->model, "Model: a name ('simsync list models') or a path")->required();
  command->add_option("--device", options->device, "cpu, or a GPU: cuda:0, cuda:1, ...")->required();
  command->add_option("--out", options->out, "Table to write, ending in .csv; its manifest (.yaml) goes beside it")
      ->required()
      ->check(csv_file())
      ->check(output_file("--out"));
  command->add_option("--batch", options->batch, "Samples per step (default: the model's)")
      ->check(whole_number(1, 100'000'000));
  command->add_option("--precision", options->precision, "fp32, tf32, fp16 or bf16")->capture_default_str();
  command->add_option("--repeats", options->repeats, "Steps to keep")
      ->capture_default_str()
      ->check(whole_number(1, 10'000));
  command->add_option("--device-name", options->device_name,
                      "What clusters call the device (default: what the device says)");
  command->callback([options] { run_profile(*options); });
}

}  // namespace simsync
