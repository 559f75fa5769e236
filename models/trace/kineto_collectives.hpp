// Collectives in traces of PyTorch's profiler.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace simsync::detail {

/// Whether a kernel belongs to a collective.
bool is_collective_kernel(std::string_view name);
/// Whether a range on the host is a collective itself, from its begin to its end: `gloo:all_reduce`, `nccl:broadcast`.
bool is_collective_range(std::string_view name);
/// Whether an operator only hands a collective over: `c10d::allreduce_`, `record_param_comms`.
bool is_collective_call(std::string_view name);

/// Payload of the collective that these arguments of an event describe: the larger of what goes in and what comes out;
/// 0 when they do not tell.
double collective_bytes(const nlohmann::json& arguments);

}  // namespace simsync::detail
