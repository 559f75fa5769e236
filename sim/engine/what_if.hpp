// How the step would change if something cost nothing: the same strategy, compiled and replayed again.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/engine/predict.hpp"

namespace simsync {

/// A rate that is free is this many times its own: far from mattering, near enough for the arithmetic of max-min.
inline constexpr double kFree = 1e6;

// Each returns the problem with one thing free and its plan compiled again from the same strategy, so that what
// depends on times (fusion by cycle or cost, algorithm `auto`) is decided for the new times.

/// Layers, the optimizer on the device and the device's memory take no time.
Problem with_free_compute(const Problem& problem);
/// No latency, message cost or message size effect of any link, no launch and per-round cost of collectives, no cost
/// per operation of the framework.
Problem with_free_latency(const Problem& problem);
/// NICs, leaf uplinks and pairs of nodes of unlimited rate; a connection keeps its cap.
Problem with_free_links_between_nodes(const Problem& problem);
/// Connections between nodes without a cap (LinkClass::per_flow_cap); links keep their rate.
Problem with_free_connections(const Problem& problem);
/// Both of them.
Problem with_free_network(const Problem& problem);
/// PCIe, GPU ports, switches, sockets and host memory of unlimited rate.
Problem with_free_node_links(const Problem& problem);
/// Hosts sum, update and serve in no time.
Problem with_free_host_cpu(const Problem& problem);

struct WhatIf {
  std::string what;             ///< `compute`, kFreeLinks, ...
  std::optional<Seconds> step;  ///< if it were free; nothing when that takes more than what_if_budget to simulate
};

/// What with_free_links_between_nodes frees.
inline constexpr const char* kFreeLinks = "bandwidth between nodes";
/// What with_free_connections frees.
inline constexpr const char* kFreeConnections = "rate cap of connections";
/// What with_free_network frees, where connections have a cap: without one it is the same as kFreeLinks.
inline constexpr const char* kFreeNetwork = "both of these";

/// How many answers what_if gives for this problem.
std::size_t what_if_count(const Problem& problem);

/// Work (Prediction::work) that one of the answers may take: half as much again as the prediction itself, and what
/// takes some seconds in any case. So an explanation costs at most some eleven predictions, or half a minute.
std::int64_t what_if_budget(const Prediction& predicted);

/// All of the above, replayed, each handed over when it is known. `predicted` is the replay of the problem itself.
/// Cost: one compilation and one replay each, which gives up beyond what_if_budget: with one thing free, many more
/// flows may be on their way at a time.
void what_if(const Problem& problem, const Prediction& predicted, const std::function<void(const WhatIf&)>& answer);

}  // namespace simsync
