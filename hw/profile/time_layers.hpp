// Measures how long each layer of a model takes on a device.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "hw/profile/backend.hpp"
#include "models/model.hpp"
#include "models/profile.hpp"

namespace simsync {

struct LayerTimingOptions {
  std::int64_t batch = 1;
  int repeats = 20;
  int warm_up = 3;                        ///< steps before the first one that counts
  std::function<void()> on_step = [] {};  ///< called after every step, warm-up and whole steps included
};

struct LayerTimings {
  /// steps[k][layer], every layer timed on its own in step k; negative for a layer of `untimed`.
  std::vector<std::vector<LayerTime>> steps;
  std::vector<Seconds> whole;        ///< the same kernels run as one step without a stop, timed as a whole
  std::vector<std::string> untimed;  ///< layers given in numbers, of which nobody knows the sizes

  [[nodiscard]] Seconds sum_of_layers() const;  ///< median over the steps of the sum over the layers
  [[nodiscard]] Seconds whole_step() const;     ///< median
};

/// Runs steps (forward from the first layer to the last, backward from the last to the first), with a time stamp after
/// every pass, in turns with steps that are timed as a whole. @throws what the backend throws.
LayerTimings time_layers(const Model& model, const LayerTimingOptions& options, Backend& backend);

}  // namespace simsync
