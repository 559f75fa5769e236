// Seconds per layer for one device, batch size and precision.
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/blocks.hpp"
#include "models/model.hpp"

namespace simsync {

/// What a device can do, as far as a layer's time depends on it. Sources are named where presets define it.
///
/// The defaults are round numbers between the devices of the NeuSight measurements in models/profiles (A100, H100,
/// V100 and L4, fp32); models/README.md has the errors that remain.
struct Roofline {
  FlopsPerSecond peak{1e12};        ///< for the precision in use
  BytesPerSecond memory{1e11};      ///< device memory
  Seconds launch{5e-6};             ///< fixed cost of one kernel, hidden or not
  double compute_efficiency = 0.7;  ///< share of peak reached by a large matrix product or convolution
  /// Share of peak reached by a large matrix product whose inner axis or columns are no multiple of 16 bytes; none: as
  /// by others. models/README.md (Products) has the source.
  std::optional<double> unaligned_efficiency = {};
  /// Rate of attention in one kernel, on large sequences; none: that of other products.
  std::optional<FlopsPerSecond> attention = {};
  double memory_efficiency = 0.75;  ///< share of memory bandwidth reached by a large copy
  Flops half_efficiency{0.5e9};     ///< work at which half of compute_efficiency is reached
  double element_bytes = 4.0;       ///< of an activation; make_profile sets 2 for amp, fp16 and bf16
  bool winograd = false;            ///< make_profile sets it for fp32: see kWinograd in roofline.cpp
  /// For product_time alone: a product whose result has so many elements, or whose inner axis is so long, computes at
  /// half of its speed. From cut products on four GPUs in 16 bits; models/README.md (Products) has the sources.
  double half_area = 250e3;
  double half_depth = 160.0;
  friend auto operator<=>(const Roofline&, const Roofline&) = default;
};

struct LayerTime {
  Seconds forward;
  Seconds backward;
};

/// Where a profile's numbers come from; the output of every command says which it was.
enum class ProfileSource {
  Measured,        ///< layer times measured on this device, precision and batch
  MeasuredScaled,  ///< measured layer times, scaled to another batch, device or to a given step time
  Roofline,        ///< FLOPs and bytes through the device's efficiency curve
  RooflineScaled,  ///< the same, scaled to a measured single-device step time
};
const char* name_of(ProfileSource source);

/// What the sum of a profile's times rests on, whatever its shares come from; time_error.hpp says how far it may be
/// off.
enum class TimeBasis {
  Estimate,    ///< FLOPs, bytes and the data sheet
  OtherBatch,  ///< measured on this device and precision with another batch
  LayerTimes,  ///< measured on this device, precision and batch, layer by layer
  StepTime,    ///< the measured step that the user gave
};

/// Layer times of one model. Immutable once made.
struct Profile {
  std::string model;
  std::string device;
  std::string precision;        ///< fp32, tf32, amp, fp16, bf16 or fp8
  bool fp32_gradients = false;  ///< of weights in half precision: they add up and travel in fp32 (OptimizerState)
  std::int64_t batch = 1;       ///< samples per device and micro-step
  ProfileSource source = ProfileSource::Roofline;
  TimeBasis basis = TimeBasis::Estimate;
  std::string provenance;         ///< one line: which file, paper or formula
  std::vector<LayerTime> layers;  ///< seconds by LayerId: the median of `steps`, or their mean, where they are kept
  /// Several measured steps kept apart, so that variance survives; empty when only a mean is known.
  std::vector<std::vector<LayerTime>> steps;
  /// Coefficient of variation of the compute of a step, besides what `steps` differ by; for asynchronous workers.
  double variation = 0.0;
  std::uint64_t seed = 1;  ///< of what such workers draw
  Seconds update;          ///< applying the optimizer to all variables on the device
  /// Times that a step goes through forward and backward pass, with `batch` samples each, before the update.
  int micro_steps = 1;
  Roofline roofline;             ///< what estimates of the same device and precision go by
  std::vector<bool> recomputed;  ///< by LayerId: whether its forward pass is run again before the backward pass

  [[nodiscard]] Seconds forward() const;   ///< of one micro-step
  [[nodiscard]] Seconds backward() const;  ///< of one micro-step, without what is computed again
  [[nodiscard]] Seconds recompute() const;
  /// All micro-steps.
  [[nodiscard]] Seconds compute() const { return micro_steps * (forward() + recompute() + backward()); }
  /// Compute and update: the single-device step.
  [[nodiscard]] Seconds step() const { return compute() + update; }
  /// Of a micro-step, for activations of so many bytes a sample in 32-bit elements.
  [[nodiscard]] double activation_bytes(double per_sample) const;
  /// The same profile with every time multiplied so that `step()` is `measured`; source becomes *Scaled.
  [[nodiscard]] Profile scaled_to(Seconds measured) const;
};

/// What the user asked for.
struct ProfileRequest {
  std::string device;  ///< device name of the cluster, `V100-SXM2-16GB`
  std::string precision = "fp32";
  std::int64_t batch = 1;  ///< of a micro-step
  int micro_steps = 1;
  Recompute recompute = Recompute::None;
  Roofline roofline;
  std::optional<Seconds> step_time;  ///< measured single-device step time to scale to
  std::string profile = "auto";  ///< `auto`, `roofline`, or the name of a profile or the path of either of its files
  bool mean = false;             ///< Profile::layers of means: for workers who draw from the measured steps
  friend auto operator<=>(const ProfileRequest&, const ProfileRequest&) = default;
};

/// Layer times in order of preference: the profile that the model's file names, a built-in measured profile of the
/// model on this device, one on another device used as relative layer times, FLOPs and bytes through the roofline.
/// @throws InputError for an unknown profile or one that does not fit the model, and without a profile for a model that
/// does not tell the work of its layers.
Profile make_profile(const Model& model, const ProfileRequest& request);

/// FLOPs and bytes through `roofline`; no file is read.
Profile estimate_profile(const Model& model, const Roofline& roofline, std::int64_t batch);

}  // namespace simsync
