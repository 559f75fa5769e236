// How far the compute of a step may be off, by what its layer times rest on.
#pragma once
#include "base/spread.hpp"
#include "models/profile.hpp"

namespace simsync {

/// Numbers of models/time_errors.yaml, which says what each of them was derived from.
struct TimeErrors {
  Spread estimate_fp32;    ///< from the data sheet, in fp32
  Spread estimate_matrix;  ///< from the data sheet, in tf32 and 16 bits, on matrix units where there are any
  Spread other_batch;      ///< layer times of the device, measured with another batch
  Spread layer_times;      ///< layer times of the device and batch, measured one by one
  Spread step_time;        ///< one run against another: whole steps were measured
};

/// The built-in numbers, read once. @throws InputError when the file is missing or wrong.
const TimeErrors& time_errors();
/// The same from text. @throws InputError.
TimeErrors parse_time_errors(const std::string& text, const std::string& file);

/// Of the profile's forward + backward + update.
const Spread& time_error(const Profile& profile);

}  // namespace simsync
