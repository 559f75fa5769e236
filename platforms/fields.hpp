// The fields of a cluster file, once: the reader, the writer and set_parameter walk these tables.
//
// A visitor has need(key, value, range) for mandatory fields, may(key, value, range) for the others,
// table(key, map, range, names) for a mapping from known names to values, part(key, struct), and
// named(key, map) for structs under names of the user's own.
#pragma once
#include <string>
#include <vector>

#include "base/yaml.hpp"
#include "platforms/cluster.hpp"

namespace simsync::fields {

// Limits keep every product and sum of the program far from overflow; real hardware is well inside.
inline constexpr yaml::Range kRate{1.0, 1e15};         // bytes per second
inline constexpr yaml::Range kTime{0.0, 60.0};         // seconds
inline constexpr yaml::Range kSlice{1e-6, 60.0};       // seconds
inline constexpr yaml::Range kSize{0.0, 0x1p50};       // bytes
inline constexpr yaml::Range kComputeRate{1e6, 1e18};  // operations per second
inline constexpr yaml::Range kWork{0.0, 1e18};         // operations
inline constexpr yaml::Range kShare{1e-3, 1.0};        // of a nominal rate
inline constexpr yaml::Range kTaken{0.0, 0.99};        // by somebody else
inline constexpr yaml::Range kSpeedUp{1.0, 1e4};
inline constexpr yaml::Range kSlowdown{0.01, 1e4};
inline constexpr yaml::Range kOversubscription{0.01, 1e4};
inline constexpr yaml::Range kNcclVersion{20000.0, 29999.0};  // its version code
inline constexpr yaml::Range kCapability{0.0, 99.0};
inline constexpr yaml::Range kNodes{1.0, kMaxNodes};
inline constexpr yaml::Range kNodesOrNone{0.0, kMaxNodes};
inline constexpr yaml::Range kGpus{0.0, kMaxGpusPerNode};
inline constexpr yaml::Range kFew{1.0, 64.0};  // NICs, channels
inline constexpr yaml::Range kThreads{1.0, 4096.0};
inline constexpr yaml::Range kNone{};

template <class V>
void visit(V& v, LinkClass& link) {
  v.need("bandwidth", link.bandwidth, kRate);
  v.may("efficiency", link.efficiency, kShare);
  v.may("latency", link.latency, kTime);
  v.may("per_flow_cap", link.per_flow_cap, kRate);
  v.may("reported_bandwidth", link.reported_bandwidth, kRate);
  v.may("message_cost", link.message_cost, kTime);
  v.may("half_size", link.half_size, kSize);
  v.may("queueing_delay", link.service.queueing_delay, kTime);
  v.may("passing_delay", link.service.passing_delay, kTime);
  v.may("turn", link.service.turn, kSize);
  v.may("burst", link.service.burst, kSize);
  v.may("burst_at_once", link.service.burst_at_once, kSize);
  v.may("burst_speed", link.service.burst_speed, kSpeedUp);
  v.may("full_duplex", link.full_duplex, kNone);
  v.may("rate_beside_compute", link.rate_beside_compute, kShare);
}

template <class V>
void visit(V& v, DeviceClass& device) {
  v.table("peak", device.peak, kComputeRate, known_precisions());
  v.need("memory_bandwidth", device.memory_bandwidth, kRate);
  v.may("memory", device.memory, kSize);
  v.may("launch", device.launch, kTime);
  v.table("compute_efficiency", device.compute_efficiency, kShare, known_precisions());
  v.table("unaligned_efficiency", device.unaligned_efficiency, kShare, known_precisions());
  v.may("memory_efficiency", device.memory_efficiency, kShare);
  v.may("attention_efficiency", device.attention_efficiency, kShare);
  v.may("half_efficiency", device.half_efficiency, kWork);
  v.may("compute_variation", device.compute_variation, kTaken);
  v.may("compute_capability", device.compute_capability, kCapability);
}

template <class V>
void visit(V& v, CpuClass& cpu) {
  v.may("threads", cpu.threads, kThreads);
  v.may("per_tensor", cpu.per_tensor, kTime);
  v.may("dispatch_latency", cpu.dispatch_latency, kTime);
  v.may("send_ahead", cpu.send_ahead, kTime);
  v.may("time_slice", cpu.time_slice, kSlice);
  v.may("update_rate", cpu.update_rate, kRate);
  v.may("sum_rate", cpu.sum_rate, kRate);
  v.may("memory_bandwidth", cpu.memory_bandwidth, kRate);
}

template <class V>
void visit(V& v, NodeFabric& fabric) {
  v.may("gpu_link", fabric.gpu_link, kNone);
  v.text("gpu_mesh", fabric.gpu_mesh);
  v.may("pcie_link", fabric.pcie_link, kNone);
  v.may("gpus_per_switch", fabric.gpus_per_switch, kGpus);
  v.may("switch_link", fabric.switch_link, kNone);
  v.may("switches_per_socket", fabric.switches_per_socket, kGpus);
  v.may("socket_link", fabric.socket_link, kNone);
  v.may("peer_to_peer", fabric.peer_to_peer, kNone);
  v.may("memory_link", fabric.memory_link, kNone);
}

template <class V>
void visit(V& v, NodeGroup& group) {
  v.need("name", group.name, kNone);
  v.may("count", group.count, kNodes);
  v.may("device", group.device, kNone);
  v.may("gpus", group.gpus, kGpus);
  v.part("fabric", group.fabric);
  v.may("nic_link", group.nic_link, kNone);
  v.may("nics", group.nics, kFew);
  v.may("nearest_nics", group.nearest_nics, kNone);
  v.may("gpu_direct", group.gpu_direct, kNone);
  v.part("cpu", group.cpu);
  v.may("compute_slowdown", group.compute_slowdown, kSlowdown);
  v.may("nic_slowdown", group.nic_slowdown, kSlowdown);
}

template <class V>
void visit(V& v, Network& network, const std::vector<std::string>& links) {
  v.may("nodes_per_leaf", network.nodes_per_leaf, kNodesOrNone);
  v.may("oversubscription", network.oversubscription, kOversubscription);
  v.may("switch_latency", network.switch_latency, kTime);
  v.may("pair_bandwidth", network.pair_bandwidth, kRate);
  v.table("background", network.background, kTaken, links);
}

template <class V>
void visit(V& v, Protocol& protocol) {
  v.may("per_step_intra", protocol.per_step_intra, kTime);
  v.may("per_step_inter", protocol.per_step_inter, kTime);
  v.may("efficiency", protocol.efficiency, kShare);
  v.may("overlap", protocol.overlap, kNone);
}

template <class V>
void visit(V& v, CollectiveCosts& costs) {
  v.may("launch", costs.launch, kTime);
  v.may("per_step_intra", costs.per_step_intra, kTime);
  v.may("per_step_inter", costs.per_step_inter, kTime);
  v.may("channels", costs.channels, kFew);
  v.may("interference", costs.interference, kTaken);
  v.may("efficiency", costs.efficiency, kShare);
  v.may("algorithm", costs.algorithm, kNone);
  v.may("nccl_version", costs.nccl_version, kNcclVersion);
  v.may("payload_rate", costs.payload_rate, kRate);
  v.named("protocols", costs.protocols);
}

}  // namespace simsync::fields
