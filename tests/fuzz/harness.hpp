// What every fuzz target shares: it may throw the errors of wrong input, and nothing else.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "models/reader.hpp"
#include "platforms/reader.hpp"

namespace simsync::fuzz {

/// Longer inputs only cost time.
inline constexpr std::size_t kLongest = 16384;

/// Runs `read` on the input as text. Any exception but InputError and PlanError is a bug and gets out.
template <class Read>
int run(const std::uint8_t* data, std::size_t size, Read read) {
  if (size > kLongest) return 0;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    read(text);
  } catch (const InputError& e) {
    for (const auto& diagnostic : e.diagnostics()) (void)diagnostic.text();
  } catch (const PlanError&) {
    return 0;
  }
  return 0;
}

/// A model of three layers with a sparse table.
inline const Model& small_model() {
  static const Model kModel = parse_model(
      "schema: simsync/model/v1\nname: small\nbatch: 2\nsample: row\ninput: [4]\nlayers:\n"
      "  - {embedding: table, rows: 100, dim: 8}\n  - {flatten: all}\n  - {dense: fc1, out: 10}\n  - {dense: fc2, out: "
      "3}\n",
      "model");
  return kModel;
}

/// Two nodes of two GPUs and a host without.
inline const Cluster& small_cluster() {
  static const Cluster kCluster = parse_cluster(
      "schema: simsync/cluster/v1\nname: lab\nlinks:\n  pcie: {bandwidth: 12GB/s}\n  net: {bandwidth: 10Gbps, latency: "
      "20us}\n"
      "devices:\n  X: {peak: {fp32: 1TFLOPS}, memory_bandwidth: 100GB/s}\ngroups:\n"
      "  - {name: node, count: 2, device: X, gpus: 2, fabric: {pcie_link: pcie}, nic_link: net}\n"
      "  - {name: server, count: 1, nic_link: net}\n",
      "cluster");
  return kCluster;
}

}  // namespace simsync::fuzz

extern "C" int SIMSYNC_FUZZ_TARGET(const std::uint8_t* data, std::size_t size);
