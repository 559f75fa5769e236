// Traces of one worker: a model given in numbers, and a profile whose steps are kept apart.
#include "cli/import_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "base/progress_bar.hpp"
#include "cli/outputs.hpp"
#include "cli/settings.hpp"
#include "cli/unknown.hpp"
#include "models/layer_times.hpp"
#include "models/trace/importers.hpp"
#include "models/trace/update_line.hpp"
#include "platforms/device_name.hpp"
#include "platforms/reader.hpp"

namespace simsync {
namespace {

struct TraceFlags {
  std::vector<std::string> files;
  std::string out;
  std::string device;
  std::string precision = "fp32";
  std::int64_t batch = 1;
};

/// A kind of file: how it is called, what it is and who reads it.
struct TraceFormat {
  const char* command;
  const char* about;
  const char* files;
  const char* framework;
  bool several;
  ImportedTrace (*read)(const std::vector<std::string>& files);
};

ImportedTrace read_own(const std::vector<std::string>& files) {
  return import_own(files.front());
}

ImportedTrace read_kineto(const std::vector<std::string>& files) {
  constexpr std::size_t kMebi = 1U << 20U;
  const std::string& file = files.front();
  const bool regular = std::filesystem::is_regular_file(file);
  const std::size_t size = regular ? std::filesystem::file_size(file) / kMebi : 0;
  ProgressBar bar(size);
  const std::string detail = "MiB of " + std::filesystem::path(file).filename().string();
  return import_kineto(
      file, [&](double share) { bar.set(static_cast<std::size_t>(share * static_cast<double>(size)), detail); });
}

/// The median over the steps, and between which times most of them lie: the nearest to 10 and to 90 %.
std::string spread(std::vector<Seconds> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    const double last = static_cast<double>(times.size() - 1);
    return format_seconds(times[static_cast<std::size_t>(std::lround(share * last))]);
  };
  const std::string middle = format_seconds(median(times));
  return times.size() == 1 ? middle : fmt::format("{} (10 % {}, 90 % {})", middle, at(0.1), at(0.9));
}

std::string updates_text(const UpdateLine& line) {
  std::vector<std::string> found;
  if (line.per_tensor) found.push_back(fmt::format("group.*.cpu.per_tensor={:.3g}us", 1e6 * line.per_tensor->value()));
  if (line.rate) found.push_back(fmt::format("group.*.cpu.update_rate={:.3g}GB/s", 1e-9 * line.rate->value()));
  const std::string fitted =
      found.empty() ? "tell neither a cost per tensor nor a rate" : fmt::format("fit {}", fmt::join(found, " and "));
  return fmt::format("  updates      {} of {} sizes {} (rms {})\n", line.operations, line.sizes, fitted,
                     format_seconds(line.residual));
}

void print_found(const ImportedTrace& imported, const TracedModel& traced) {
  std::size_t variables = 0;
  double bytes = 0.0;
  for (const TracedLayer& layer : traced.layers) {
    for (const TracedVariable& variable : layer.variables) {
      ++variables;
      bytes += 4.0 * static_cast<double>(std::accumulate(variable.shape.begin(), variable.shape.end(), std::int64_t{1},
                                                         std::multiplies<>()));
    }
  }
  std::vector<Seconds> compute;
  for (const TraceStep& step : imported.trace.steps) compute.push_back(compute_of(step));
  std::cout << fmt::format("{} steps, {} layers, {} variables of {}\n", traced.steps.size(), traced.layers.size(),
                           variables, format_bytes(bytes));
  std::cout << fmt::format("  compute      {}\n", spread(compute));
  if (traced.update) std::cout << fmt::format("  optimizer    {}\n", format_seconds(*traced.update));
  if (!imported.wall.empty()) std::cout << fmt::format("  whole step   {}\n", spread(imported.wall));
  if (!imported.device.empty()) std::cout << fmt::format("  recorded on  {}\n", imported.device);
  if (const auto line = fit_updates(imported.trace)) std::cout << updates_text(*line);
}

/// The first built-in cluster whose GPUs are all of that device and which has a network.
std::optional<Cluster> cluster_with(const std::string& device) {
  for (const std::string& name : known_clusters()) {
    Cluster cluster = find_cluster(name);
    const bool has = std::all_of(cluster.groups.begin(), cluster.groups.end(), [&](const NodeGroup& group) {
      return group.gpus == 0 || (group.device == device && !group.nic_link.empty());
    });
    if (has && cluster.gpu_count() > 0) return cluster;
  }
  return std::nullopt;
}

/// What to type next, and what the user has to fill in where the program cannot.
std::string next_command(const TracedFiles& written, const TraceFlags& flags) {
  const auto cluster = cluster_with(flags.device);
  const std::string model = written.model.find('/') == std::string::npos ? "./" + written.model : written.model;
  std::string text = fmt::format("next: simsync predict --model {} --cluster {} --strategy ddp --workers 8", model,
                                 cluster ? cluster->name : "CLUSTER");
  if (flags.precision != (cluster ? cluster->precision : "fp32")) text += " --set precision=" + flags.precision;
  text += '\n';
  if (cluster) return text;
  std::vector<std::string> devices;
  for (const auto& [name, device] : device_catalogue()) devices.push_back(name);
  text += fmt::format("note: CLUSTER stands for one whose GPUs are of '{}': no built-in one is\n", flags.device);
  const bool known = std::find(devices.begin(), devices.end(), flags.device) != devices.end();
  const std::string hint = known ? std::string{} : did_you_mean(flags.device, devices);
  return hint.empty() ? text : text + fmt::format("note: no device '{}' is known: {}\n", flags.device, hint);
}

/// A warning where the trace names another device than the user does; else empty.
std::string other_device(const std::string& recorded, const std::string& device) {
  if (recorded.empty() || !device_catalogue().contains(device) || names_chip(recorded, device)) return {};
  return fmt::format(
      "warning: the trace was recorded on '{}', which is no {}: the layer times are those of that device\n", recorded,
      device);
}

void run_import(const TraceFormat& format, const TraceFlags& flags) {
  for (const char* beside : {".profile.csv", ".profile.yaml"})
    announce_output(std::filesystem::path(flags.out).replace_extension(beside).string(), "--out");
  const ImportedTrace imported = format.read(flags.files);
  TracedModel traced = layers_of(imported.trace, imported.hints);
  if (imported.update) traced.update = imported.update;
  traced.notes.insert(traced.notes.begin(), imported.notes.begin(), imported.notes.end());
  const std::filesystem::path first = std::filesystem::path(flags.files.front()).filename();
  const TracedFiles written = save_traced_model(
      flags.out, traced,
      {.name = std::filesystem::path(flags.out).stem().string(),
       .device = flags.device,
       .precision = flags.precision,
       .batch = flags.batch,
       .framework = format.framework,
       .source = fmt::format("simsync import {} of {}{}", format.command, first.string(),
                             flags.files.size() > 1 ? fmt::format(" and {} more", flags.files.size() - 1) : "")});
  print_found(imported, traced);
  std::cout << fmt::format("  written      {} and {}\n", written.model, written.profile);
  std::cerr << other_device(imported.device, flags.device);
  for (const std::string& note : traced.notes) std::cerr << "note: " << note << '\n';
  std::cerr << next_command(written, flags);
}

void add_format(CLI::App& import, const TraceFormat& format) {
  auto flags = std::make_shared<TraceFlags>();
  auto* command = import.add_subcommand(format.command, format.about);
  auto* files = command->add_option("FILE", flags->files, format.files)->required()->check(file_name());
  if (!format.several) files->expected(1);
  command
      ->add_option("--out", flags->out,
                   "Model to write, NAME.yaml; it names its layer times, which go beside it, to NAME.profile.csv")
      ->required()
      ->check(output_file("--out"));
  command->add_option("--device", flags->device, "What clusters call the device that computed ('simsync list devices')")
      ->required();
  command->add_option("--batch", flags->batch, "Samples of one step")
      ->capture_default_str()
      ->check(whole_number(1, 100'000'000));
  command->add_option("--precision", flags->precision, "fp32, tf32, amp, fp16 or bf16")
      ->capture_default_str()
      ->check(CLI::IsMember({"fp32", "tf32", "amp", "fp16", "bf16"}));
  command->callback([format, flags] { run_import(format, *flags); });
}

}  // namespace

void setup_import_traces(CLI::App& import) {
  add_format(import, {.command = "trace",
                      .about = "A trace of one worker in simsync's own form: a model and a profile",
                      .files = "The trace (CSV)",
                      .framework = "trace",
                      .several = false,
                      .read = read_own});
  add_format(import, {.command = "tf-timeline",
                      .about = "RunMetadata or timelines of TensorFlow, one file a step: a model and a profile",
                      .files = "The steps (JSON), one worker with its parameter servers",
                      .framework = "TensorFlow",
                      .several = true,
                      .read = import_tensorflow});
  add_format(import, {.command = "kineto",
                      .about = "A trace of PyTorch's profiler: a model and a profile",
                      .files = "The trace (.json or .json.gz), recorded with record_shapes=True",
                      .framework = "PyTorch",
                      .several = false,
                      .read = read_kineto});
}

}  // namespace simsync
