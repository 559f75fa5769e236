// Writes a measured profile in the format that `make_profile` reads.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "models/profile.hpp"

namespace simsync {

/// Layer times as they were measured, with what the manifest says about them.
struct MeasuredProfile {
  std::string device;     ///< as clusters name it
  std::string precision;  ///< fp32, tf32, amp, fp16 or bf16
  std::int64_t batch = 1;
  std::string framework;               ///< `oneDNN 2.6.3, 8 threads`
  std::string source;                  ///< who measured it, when and with what
  std::string note;                    ///< what the reader of the numbers has to know; may be empty
  std::optional<Seconds> update = {};  ///< applying the optimizer to all variables on the device, where it was measured
  /// steps[k][layer]: seconds of step k; a layer with a negative time was not measured and gets no row.
  std::vector<std::vector<LayerTime>> steps;
};

/// The columns of the table.
const std::vector<std::string>& profile_header();

/// Writes the table to `path`, which ends in .csv, and the manifest beside it with the extension .yaml.
/// @throws InputError when `path` has another extension or a file cannot be written.
void save_profile(const std::string& path, const Model& model, const MeasuredProfile& profile);

}  // namespace simsync
