// How far measured collectives are from what a cluster's numbers say of them, by size.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml.hpp"
#include "platforms/cluster.hpp"

namespace simsync {

/// Measured over predicted time of a collective of `bytes`: between neighboring sizes on a straight line, both on
/// logarithmic axes; beyond them that of the last one. On one node only a group of as many ranks speaks for it; on
/// several, of those with as many ranks on a node the one whose number of nodes is nearest (the smaller of two equally
/// near). 1 when none does.
double measured_ratio(const std::vector<MeasuredRatios>& measured, std::string_view primitive, int nodes, int ranks,
                      double bytes);

/// Reads the list `measured` of a cluster or a calibration (format: platforms/README.md). Findings go to the node.
std::vector<MeasuredRatios> read_measured_ratios(const yaml::Node& node);
/// Text that read_measured_ratios reads back to an equal value, from the key on; empty for none.
std::string measured_ratios_text(const std::vector<MeasuredRatios>& measured, std::size_t indent);

}  // namespace simsync
