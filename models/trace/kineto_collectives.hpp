// Collectives in traces of PyTorch's profiler.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace simsync::detail {

/// Whether a kernel belongs to a collective.
bool is_collective_kernel(const std::string& name);
/// Whether a range on the host is a collective itself, from its begin to its end: `gloo:all_reduce`, `nccl:broadcast`.
bool is_collective_range(const std::string& name);
/// Whether an operator only hands a collective over: `c10d::allreduce_`, `record_param_comms`.
bool is_collective_call(const std::string& name);

/// Payload of the collective that these arguments of an event describe: the larger of what goes in and what comes out;
/// 0 when they do not tell.
double collective_bytes(const nlohmann::json& arguments);

}  // namespace simsync::detail
