#include "models/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <tuple>

#include "base/error.hpp"
#include "base/file.hpp"
#include "models/layer_times.hpp"
#include "models/precision.hpp"
#include "models/profile_file.hpp"
#include "models/roofline.hpp"

namespace simsync {
namespace {

using detail::carry_over;
using detail::fill_gaps;
using detail::Manifest;
using detail::multiply;

constexpr const char* kUnknownDevice = "unknown";
constexpr const char* kAutomatic = "auto";

bool same_structure(const Model& a, const Model& b) {
  if (a.layer_count() != b.layer_count()) return false;
  for (LayerId id = 0; id < a.layer_count(); ++id) {
    if (a.layer(id).name != b.layer(id).name) return false;
  }
  return true;
}

/// The model as it was measured: with the manifest's settings, when it has any. @throws InputError when it is neither
/// `model` nor one of the zoo.
Model measured_model(const Manifest& manifest, const Model& model) {
  const bool same = manifest.model == model.name() && model.variant().empty();
  if (same && manifest.settings.empty()) return model;
  const auto zoo = list_files(data_folder(detail::kZooRoom), ".yaml");
  if (!same && std::find(zoo.begin(), zoo.end(), manifest.model) == zoo.end())
    throw InputError(fmt::format("profile '{}' was measured on model '{}', not on '{}'", manifest.name, manifest.model,
                                 model.variant().empty() ? model.name() : model.name() + " with " + model.variant()));
  detail::Overrides overrides;
  overrides.settings = manifest.settings;
  return detail::load_variant(resolve_name(manifest.model, detail::kZooRoom, ".yaml", "model"), overrides);
}

/// Times of a model whose work is not known, such as that of a trace, hold as they were measured or not at all.
void expect_scalable(const Manifest& manifest, const Model& model, const ProfileRequest& request) {
  if (!model.layer_of_unknown_work()) return;
  const auto refuse = [&](const std::string& measured, const std::string& wanted, const std::string& help) {
    throw InputError(
        fmt::format(
            "profile '{}' was measured {}; model '{}' does not tell the work of its layers to scale it to {} by",
            manifest.name, measured, model.name(), wanted),
        help);
  };
  if (manifest.batch != request.batch)
    refuse(fmt::format("with a batch of {}", manifest.batch), fmt::format("a batch of {}", request.batch),
           fmt::format("--batch {} asks for what was measured", manifest.batch));
  const bool same_device = manifest.device == request.device;
  if (!same_device || manifest.precision != request.precision)
    refuse(fmt::format("on {} at {}", manifest.device, manifest.precision),
           fmt::format("{} at {}", request.device, request.precision),
           same_device ? fmt::format("--set precision={} asks for what was measured", manifest.precision)
                       : "record a trace on that device and import it");
}

/// A layer without a row would get the estimate of work that is not known.
void expect_complete(const Manifest& manifest, const Model& model, const std::vector<std::vector<LayerTime>>& steps) {
  if (!model.layer_of_unknown_work()) return;
  for (const auto& times : steps) {
    for (LayerId id = 0; id < model.layer_count(); ++id) {
      if (times[id].forward.value() < 0.0)
        throw InputError(
            fmt::format("{}: a step has no row of layer '{}'", manifest.table, model.layer(id).name),
            fmt::format("model '{}' does not tell the work of its layers to fill the gap by", model.name()));
    }
  }
}

std::size_t layers_without_time(const std::vector<LayerTime>& times) {
  return static_cast<std::size_t>(
      std::count_if(times.begin(), times.end(), [](const LayerTime& time) { return time.forward.value() < 0.0; }));
}

Profile profile_from(const Manifest& manifest, const Model& model, const ProfileRequest& request, Profile target) {
  const Model source = measured_model(manifest, model);
  if (!same_structure(source, model)) {
    throw InputError(fmt::format("profile '{}' was measured on model '{}', whose layers are not those of '{}'",
                                 manifest.name, manifest.model, model.name()));
  }
  expect_scalable(manifest, model, request);
  const Profile there = estimate_profile(source, request.roofline, manifest.batch);
  auto steps = detail::load_times(manifest, source, there.layers);
  const std::size_t missing = layers_without_time(steps.front());
  expect_complete(manifest, model, steps);
  bool scaled = false;
  for (auto& times : steps) {
    fill_gaps(times, there.layers);
    scaled = carry_over(times, there.layers, target.layers) || scaled;
  }
  const Seconds estimated = target.forward() + target.backward();
  target.layers = request.mean ? means(steps) : medians(steps);
  if (steps.size() > 1) target.steps = std::move(steps);
  target.provenance = fmt::format("layer times of {} ({}, {}, batch {}, {})", manifest.name,
                                  manifest.device == kUnknownDevice ? "unknown device" : manifest.device,
                                  manifest.precision, manifest.batch, manifest.source);
  target.source = scaled ? ProfileSource::MeasuredScaled : ProfileSource::Measured;
  target.basis = scaled ? TimeBasis::OtherBatch : TimeBasis::LayerTimes;
  if (target.steps.size() > 1)
    target.provenance += fmt::format(", {} of {} steps", request.mean ? "means" : "medians", target.steps.size());
  if (scaled) target.provenance += fmt::format(", scaled to batch {} by the estimates of each layer", target.batch);
  if (missing > 0 && request.profile != kAutomatic)
    target.provenance += fmt::format(", {} of {} layers estimated", missing, target.layers.size());
  const Seconds measured = target.forward() + target.backward();
  if (measured.value() <= 0.0) throw InputError(fmt::format("profile '{}' has no time in it", manifest.name));
  if (manifest.device == request.device && manifest.precision == request.precision) {
    target.update = manifest.update.value_or(target.update);
    return target;
  }

  multiply(target, estimated / measured);
  target.basis = TimeBasis::Estimate;
  target.source = ProfileSource::MeasuredScaled;
  target.provenance += ", used as relative times that add up to the estimate for this device";
  return target;
}

/// Smaller is better: the device itself, then the precision, then a known device, then the nearest batch.
auto rank(const Manifest& manifest, const ProfileRequest& request) {
  const bool precision = manifest.precision == request.precision;
  const bool exact = precision && manifest.device == request.device;
  const double distance = std::abs(std::log(static_cast<double>(manifest.batch) / static_cast<double>(request.batch)));
  return std::make_tuple(!exact, !precision, manifest.device == kUnknownDevice, distance, manifest.name);
}

/// Built-in profiles of the model, best first.
std::vector<Manifest> candidates(const Model& model, const ProfileRequest& request) {
  std::vector<Manifest> found;
  const std::string folder = data_folder(detail::kProfilesRoom);
  for (const std::string& name : list_files(folder, ".yaml")) {
    Manifest manifest = detail::load_manifest(folder + "/" + name + ".yaml");
    if (manifest.model == model.name() && same_structure(measured_model(manifest, model), model))
      found.push_back(std::move(manifest));
  }
  std::sort(found.begin(), found.end(), [&](auto& a, auto& b) { return rank(a, request) < rank(b, request); });
  return found;
}

/// The profile that the model's file names.
Manifest own_manifest(const Model& model) {
  if (!std::filesystem::exists(model.profile()))
    throw InputError(fmt::format("model '{}' names a profile that does not exist: {}", model.name(), model.profile()),
                     "--set profile=F.csv names another one");
  return detail::load_manifest(detail::find_manifest(model.profile()));
}

/// @throws InputError for a model whose layers do not tell their work: an estimate of it would be the launch of empty
/// kernels.
Profile checked_estimate(const Model& model, Profile estimate) {
  const auto unknown = model.layer_of_unknown_work();
  if (!unknown) return estimate;
  throw InputError(
      fmt::format("model '{}' needs a profile: the work of its layer '{}' is not known, so its time cannot "
                  "be estimated",
                  model.name(), model.layer(*unknown).name),
      "'simsync import kineto TRACE --device D --out m.yaml' writes a model together with its profile; "
      "--set profile=F.csv names one");
}

Profile choose(const Model& model, const ProfileRequest& request, Profile estimate) {
  if (request.profile == "roofline") return checked_estimate(model, std::move(estimate));
  if (request.profile != kAutomatic) {
    return profile_from(detail::load_manifest(detail::find_manifest(request.profile)), model, request,
                        std::move(estimate));
  }
  if (!model.profile().empty()) return profile_from(own_manifest(model), model, request, std::move(estimate));
  const auto found = candidates(model, request);
  return found.empty() ? checked_estimate(model, std::move(estimate))
                       : profile_from(found.front(), model, request, std::move(estimate));
}

}  // namespace

const char* name_of(ProfileSource source) {
  switch (source) {
    case ProfileSource::Measured:
      return "measured";
    case ProfileSource::MeasuredScaled:
      return "measured-scaled";
    case ProfileSource::Roofline:
      return "roofline";
    case ProfileSource::RooflineScaled:
      return "roofline-scaled";
  }
  return "unknown";
}

Seconds Profile::forward() const {
  Seconds sum;
  for (const LayerTime& time : layers) sum += time.forward;
  return sum;
}

Seconds Profile::backward() const {
  Seconds sum;
  for (const LayerTime& time : layers) sum += time.backward;
  return sum;
}

Seconds Profile::recompute() const {
  Seconds sum;
  for (LayerId id = 0; id < recomputed.size(); ++id)
    if (recomputed[id]) sum += layers[id].forward;
  return sum;
}

double Profile::activation_bytes(double per_sample) const {
  const double share = has_half_activations(precision) ? 0.5 : 1.0;
  return share * per_sample * static_cast<double>(batch);
}

Profile Profile::scaled_to(Seconds measured) const {
  Profile out = *this;
  const Seconds now = step();
  SIMSYNC_ASSERT(measured.value() > 0.0);
  const double factor = now.value() > 0.0 ? measured / now : 1.0;
  multiply(out, factor);
  out.update *= factor;
  const bool estimated = source == ProfileSource::Roofline || source == ProfileSource::RooflineScaled;
  out.source = estimated ? ProfileSource::RooflineScaled : ProfileSource::MeasuredScaled;
  out.basis = TimeBasis::StepTime;
  out.provenance += ", scaled to a measured step time";
  return out;
}

Profile make_profile(const Model& model, const ProfileRequest& request) {
  if (request.batch < 1 || request.batch > detail::kLargestBatch)
    throw InputError(
        fmt::format("a batch of {} is out of range: expected 1 to {}", request.batch, detail::kLargestBatch));
  if (request.step_time && !(request.step_time->value() > 0.0))
    throw InputError("a measured step time must be above 0");
  ProfileRequest wanted = request;
  wanted.roofline.element_bytes = has_half_activations(request.precision) ? 2.0 : 4.0;
  wanted.roofline.winograd = request.precision == "fp32";
  Profile estimate = estimate_profile(model, wanted.roofline, request.batch);
  Profile profile = choose(model, wanted, std::move(estimate));
  profile.device = request.device;
  profile.precision = request.precision;
  profile.roofline = wanted.roofline;
  profile.micro_steps = request.micro_steps;
  if (request.recompute != Recompute::None) profile.recomputed = recomputed_layers(model, request.recompute);
  return request.step_time ? profile.scaled_to(*request.step_time) : profile;
}

}  // namespace simsync
