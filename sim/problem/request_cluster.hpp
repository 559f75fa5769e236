// The cluster of a question: settings, placement, growth and a straggler applied to what the file describes.
// Private to sim/problem.
#pragma once
#include <string>
#include <vector>

#include "sim/problem/request_settings.hpp"

namespace simsync::detail {

/// `notes` gets a line when more nodes take part than the file lists.
/// @throws InputError for a setting that does not fit; PlanError when the workers do not.
Cluster cluster_of(const PredictRequest& request, Cluster cluster, const Settings& settings,
                   std::vector<std::string>& notes);

/// What `device` can do at `precision`. @throws InputError when it has no peak rate for it.
Roofline roofline_of(const DeviceClass& device, const std::string& precision);

/// A step of a device of the cluster alone, by its roofline: device, precision and batch of `asked` count.
Seconds estimated_step(const Cluster& cluster, const Model& model, const ProfileRequest& asked);
/// Layer times are those of `first`; nodes with another device compute slower or faster by what its roofline says.
void relate_devices(Cluster& cluster, const Model& model, const ProfileRequest& first);

}  // namespace simsync::detail
