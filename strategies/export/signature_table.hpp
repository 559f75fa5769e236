// A strategy as a table of SBP signatures: how every tensor of every layer lies on the mesh of ranks.
#pragma once
#include <string>

#include "strategies/strategy.hpp"

namespace simsync {

/// CSV with the columns stage, chunk, layer, kind, tensor, name, dp_replicate, dp_shard and tp: for each layer, in the
/// order of stages and their chunks, one row for its input, each weight, each weight's gradient as the optimizer reads
/// it, and its output. `name` is the variable's. The last three are the mesh axes of a stage: groups of replicas, the
/// replicas of a group, which share out what is sharded, and tensor-parallel ranks; empty where the axis has one rank.
/// Axis 0 of an activation is its tokens, those of all samples, axis 1 its features. Axes of weights are those of the
/// variable, but for dp_shard: there S(0) is a share of its elements in order. An output may be a partial sum, which is
/// converted where it is read.
/// @throws PlanError for parameter servers and sufficient factors, which no layout over ranks describes, and for layers
/// that cannot be split.
std::string signature_table(const Strategy& strategy, const Model& model);

}  // namespace simsync
