// Sums, medians, means and scales of measured layer times.
#pragma once
#include <vector>

#include "models/profile.hpp"

namespace simsync {

/// The middle value, or the mean of the two in the middle. `values` must not be empty.
Seconds median(std::vector<Seconds> values);
/// steps[k][layer] to one time per layer: the medians over the steps, of which there is at least one, in the proportion
/// that lets them add up to the median of what the steps took as a whole.
std::vector<LayerTime> medians(const std::vector<std::vector<LayerTime>>& steps);
/// The same of the means.
std::vector<LayerTime> means(const std::vector<std::vector<LayerTime>>& steps);

namespace detail {

/// Layers that no row covers (negative times) get their estimate, scaled as the covered layers are to theirs.
void fill_gaps(std::vector<LayerTime>& times, const std::vector<LayerTime>& estimate);
/// Turns times measured where the estimates are `there` into times where they are `here`; false: nothing changed.
bool carry_over(std::vector<LayerTime>& times, const std::vector<LayerTime>& there, const std::vector<LayerTime>& here);
/// Multiplies the times of the layers and of every step that is kept.
void multiply(Profile& profile, double factor);

}  // namespace detail
}  // namespace simsync
