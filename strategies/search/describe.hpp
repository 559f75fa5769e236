// A strategy in words: what it does with which variables, and what real frameworks are told to do the same.
#pragma once
#include <string>
#include <vector>

#include "strategies/strategy.hpp"

namespace simsync {

/// A line for everything that is synchronized alike, most bytes first: `12 variables (dense, 74 % of the bytes): on 3
/// servers, cut into 2 to 40 shards`; then one for the graph level.
std::vector<std::string> describe(const Strategy& strategy, const Model& model);

/// What PyTorch DDP, Horovod, ByteScheduler, BytePS or NCCL are told to do the same, as they take it: `torch
/// DistributedDataParallel: bucket_cap_mb=25`. Empty where none of them can.
std::vector<std::string> framework_settings(const Strategy& strategy, const Model& model);

}  // namespace simsync
