// The numbers that NCCL's tuner goes by: times in us, bandwidths in GB/s. Each table names the release and the file
// that it was read from, and in `first` the release from which on it is used. Private to sim/plan.
#pragma once
#include <array>
#include <limits>

namespace simsync::detail::nccl {

/// Rows and columns of all tables below.
inline constexpr int kTree = 0;
inline constexpr int kRing = 1;
inline constexpr int kProtocols = 3;  // LL, LL128, Simple
using ByProtocol = std::array<double, kProtocols>;
using ByAlgorithm = std::array<ByProtocol, 2>;

/// On one node, on two, on more.
using ByNodes = std::array<double, 3>;
/// Compute capability below 8, below 9, below 10, from 10 on.
using ByGeneration = std::array<ByNodes, 4>;
constexpr ByGeneration same(double value) {
  const ByNodes row{value, value, value};
  return {row, row, row, row};
}
inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// What src/graph/tuning.cc of one release goes by.
struct Tables {
  int first;  ///< NCCL_VERSION from which on this table holds
  ByAlgorithm base_latency;
  ByAlgorithm nvlink_latency;
  ByAlgorithm pcie_latency;
  ByAlgorithm network_latency;
  double ll_inside = 1.0;         ///< latency of LL inside nodes, where there are several, so many times
  double network_overhead = 0.0;  ///< least latency of a ring's hop where there are several nodes, on Intel CPUs
  double simple_overheads = 0.0;  ///< ... with Simple so many times
  bool alone_as_tree = false;     ///< with one GPU per node a ring's network latency is the tree's
  /// Hops between nodes in a ring all-reduce of N nodes: 2 N of them, else 2 (N - 1); or all hops.
  enum class FarHops { All, TwiceNodes, TwiceOthers } far_hops = FarHops::TwiceOthers;
  // Bus bandwidths as shares of the graph's, and their limits: per channel, and over all channels.
  double ring_ll;
  double ring_ll128;
  double ring_ll128_alone;  ///< with one GPU per node
  double tree;
  double tree_ll;
  double tree_ll128_one_node;
  double tree_ll128;
  double tree_alone = 1.0;
  double most_bus_80 = kNoLimit;      ///< of GPUs of compute capability 8
  double most_ring_ll128 = kNoLimit;  ///< over all channels
  ByNodes most_tree = {kNoLimit, kNoLimit, kNoLimit};
  ByGeneration most_ll = same(kNoLimit);  ///< on one node by the GPUs' generation; else the first row, for Intel CPUs
  ByGeneration ring_channel_ll128 = same(kNoLimit);
  ByGeneration tree_channel_ll128 = same(kNoLimit);
  ByGeneration tree_channel = same(kNoLimit);
  // Ring, Simple, several nodes: its latency so many times from so many bytes per channel and rank, or per rank, on.
  double plateau = 1.0;
  double plateau_before_80 = 1.0;
  double plateau_per_channel = 0.0;
  double plateau_per_rank = 0.0;
  /// Of the tree's bandwidth by the payload's power of two from 64 B on; beyond the end 1.
  std::array<std::array<double, 23>, kProtocols> correction;
};

// Where tables agree.
inline constexpr ByGeneration kMostLl{
    {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}};
inline constexpr ByGeneration kTreeChannel{
    {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}};
/// treeCorrectionFactor since 2.10.
inline constexpr std::array<std::array<double, 23>, kProtocols> kCorrection{{
    {1.0, 1.0, 1.0, 1.0, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1.0, 1.0, 1.0, 1.0},
    {1.0, 1.0, 1.0, 1.0, 1.0, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1.0, 1.0},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9},
}};

/// NCCL 2.30.7: https://github.com/NVIDIA/nccl/blob/v2.30.7-1/src/graph/tuning.cc, ncclTunerConstantsDefaults,
/// ncclTopoTuneModel, ncclTopoGetAlgoTime and treeCorrectionFactor. 2.23 to 2.29 have the same latencies and shares;
/// 2.18 to 2.22 have other latencies of the tree's Simple (4, 6 and 14 us, then 28), which are left out.
inline constexpr Tables kVersion230{
    .first = 21800,
    .base_latency = {{{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}}},
    .nvlink_latency = {{{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}}},
    .pcie_latency = {{{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}}},
    .network_latency = {{{5.0, 8.5, 14.0}, {2.7, 4.0, 14.0}}},
    .network_overhead = 1.0,
    .simple_overheads = 3.0,
    .alone_as_tree = true,
    .ring_ll = 0.5,
    .ring_ll128 = 0.92,
    .ring_ll128_alone = 0.92,
    .tree = 0.92,
    .tree_ll = 1.0 / 3.8,
    .tree_ll128_one_node = 7.0 / 9.0,
    .tree_ll128 = 120.0 / 128.0,
    .tree_alone = 0.85,
    .most_ll = kMostLl,
    .ring_channel_ll128 = {{{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 36.7}, {40.0, 40.0, 40.0}}},
    .tree_channel_ll128 = {{{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}},
    .tree_channel = kTreeChannel,
    .plateau = 1.4,
    .plateau_before_80 = 1.9,
    .plateau_per_channel = 64.0,
    .correction = kCorrection};

/// NCCL 2.14.3 (PyTorch 1.13): https://github.com/NVIDIA/nccl/blob/v2.14.3-1/src/graph/tuning.cc. 2.8 to 2.17 differ
/// from it in a latency or a limit each. Rows of generations that it does not know are 2.30's.
inline constexpr Tables kVersion214{.first = 20800,
                                    .base_latency = {{{4.4, 4.4, 0.0}, {3.6, 10.0, 8.4}}},
                                    .nvlink_latency = {{{0.52, 1.25, 28.0}, {0.47, 1.9, 3.4}}},
                                    .pcie_latency = {{{1.0, 1.9, 28.0}, {1.0, 2.5, 5.7}}},
                                    .network_latency = {{{5.0, 8.5, 28.0}, {2.7, 4.0, 9.6}}},
                                    .ll_inside = 1.8,
                                    .far_hops = Tables::FarHops::TwiceNodes,
                                    .ring_ll = 0.25,
                                    .ring_ll128 = 0.92,
                                    .ring_ll128_alone = 0.7,
                                    .tree = 0.92,
                                    .tree_ll = 1.0 / 3.8,
                                    .tree_ll128_one_node = 7.0 / 9.0,
                                    .tree_ll128 = 120.0 / 128.0,
                                    .most_bus_80 = 235.0,
                                    .most_ll = kMostLl,
                                    .ring_channel_ll128 = same(20.0),
                                    .tree_channel_ll128 = same(20.0),
                                    .tree_channel = kTreeChannel,
                                    .plateau = 1.9,
                                    .plateau_before_80 = 1.9,
                                    .plateau_per_rank = 4096.0,
                                    .correction = kCorrection};

/// NCCL 2.7.8 (PyTorch 1.7 to 1.9, TensorFlow 2.4): https://github.com/NVIDIA/nccl/blob/v2.7.8-1/src/graph/tuning.cc.
inline constexpr Tables kVersion207{
    .first = 20700,
    .base_latency = {{{4.4, 4.4, 0.0}, {3.6, 10.0, 8.4}}},
    .nvlink_latency = {{{0.52, 1.2, 28.0}, {0.47, 1.9, 3.4}}},
    .pcie_latency = {{{1.0, 1.9, 28.0}, {1.0, 2.5, 5.7}}},
    .network_latency = {{{5.0, 8.5, 50.0}, {2.7, 4.0, 9.6}}},
    .ll_inside = 1.8,
    .ring_ll = 0.25,
    .ring_ll128 = 0.92,
    .ring_ll128_alone = 0.7,
    .tree = 0.9,
    .tree_ll = 1.0 / 3.8,
    .tree_ll128_one_node = 7.0 / 9.0,
    .tree_ll128 = 0.915,
    .most_bus_80 = 235.0,
    .most_tree = {110.0, 110.0, 80.0},
    .ring_channel_ll128 = same(16.7),
    .tree_channel_ll128 = same(16.7 * 7.0 / 9.0),
    .plateau = 1.9,
    .plateau_before_80 = 1.9,
    .plateau_per_rank = 4096.0,
    .correction = {{
        {1.0, 1.0, 1.0, 1.0, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1.0, 1.0, 1.0, 1.0},
        {1.0, 1.0, 1.0, 1.0, 1.0, .9, .8, .8, .8, .7, .6, .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, 1.0, 1.0},
        {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .5, .5, .6, .6, .7, .8, .9, 1.0},
    }}};

/// NCCL 2.6.4: https://github.com/NVIDIA/nccl/blob/v2.6.4-1/src/graph/tuning.cc. 2.5 has 90 and 70 for `most_tree`.
inline constexpr Tables kVersion206{
    .first = 20500,
    .base_latency = {{{4.4, 4.4, 0.0}, {3.6, 3.6, 8.4}}},
    .nvlink_latency = {{{0.5, 1.9, 28.0}, {0.4, 2.5, 5.7}}},
    .pcie_latency = {{{1.0, 1.9, 28.0}, {1.0, 2.5, 5.7}}},
    .network_latency = {{{5.0, 7.5, 50.0}, {0.9, 2.5, 6.6}}},
    .far_hops = Tables::FarHops::All,
    .ring_ll = 0.25,
    .ring_ll128 = 120.0 / 128.0,
    .ring_ll128_alone = 120.0 / 128.0,
    .tree = 0.9,
    .tree_ll = 1.0 / 3.0,
    .tree_ll128_one_node = 7.0 / 9.0,
    .tree_ll128 = 7.0 / 9.0,
    .most_ring_ll128 = 100.0,
    .most_tree = {110.0, 110.0, 80.0},
    .correction = {{
        {1.0, 1.0, 1.0, 1.0, .9, .8, .7, .7, .7, .7, .6, .5, .5, .5, .6, .7, .8, .9, .9, 1.0, 1.0, 1.0, 1.0},
        {1.0, 1.0, 1.0, 1.0, 1.0, .9, .8, .8, .8, .8, .7, .7, .7, .6, .6, .7, .7, .8, .8, .9, .9, 1.0, 1.0},
        {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .5, .5, .6, .6, .7, .8, .9, 1.0},
    }}};

/// The newest first.
inline constexpr std::array kTables{&kVersion230, &kVersion214, &kVersion207, &kVersion206};

/// NCCL 2.4.7: https://github.com/NVIDIA/nccl/blob/v2.4.7-1/src/init.cc, ncclTreeThreshold: the size up to which it
/// takes the tree is where these times are equal.
struct Threshold {
  double ring_rate = 5.0;              ///< GB/s; with NVLink for each channel
  double tree_share = 2.0 / 3.0;       ///< of the ring's rate
  double tree_share_nvlink = 0.75;     ///< twice as much on two nodes
  double ring_latency = 6.0;           ///< for each of R - 1 hops
  double tree_latency_inside = 4.0;    ///< for each of R/N - 1 hops
  double tree_latency_between = 15.0;  ///< for each of log2 N hops
};
inline constexpr Threshold kVersion204;

/// NCCL's version code (NCCL_VERSION) of the first release with trees.
inline constexpr int kFirstTree = 20400;

// What the search in the topology goes by, as NCCL 2.30.7 has it, for all releases.
//
// https://github.com/NVIDIA/nccl/blob/v2.30.7-1/src/graph/search.cc, speedArrayIntra and others: bandwidths per channel
// that it tries, by generation, on one node and between nodes.
inline constexpr std::array kSpeedsIntra{40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0};
inline constexpr std::array kSpeedsInter{48.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0,
                                         7.0,  6.0,  5.0,  4.0,  3.0,  2.4,  1.2,  0.24, 0.12};
inline constexpr std::array kSpeedsIntra90{60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0};
inline constexpr std::array kSpeedsInter90{48.0, 45.0, 42.0, 40.0, 30.0, 24.0, 22.0, 20.0, 17.5,
                                           15.0, 12.0, 6.0,  3.0,  2.4,  1.2,  0.24, 0.12};
inline constexpr std::array kSpeedsIntra100{90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0};
inline constexpr std::array kSpeedsInter100{96.0, 86.0, 80.0, 48.0, 45.1, 42.0, 40.0, 30.0, 24.0, 22.0,
                                            20.0, 17.5, 15.0, 12.0, 6.0,  3.0,  2.4,  1.2,  0.24, 0.12};
/// https://github.com/NVIDIA/nccl/blob/v2.30.7-1/src/graph/topo.h, of a link's nominal rate: 20 of 25 up to compute
/// capability 8, 20.6 of 25, 40.1 of 50.
inline constexpr std::array kNvlinkShare{0.8, 0.8, 0.824, 0.802};
/// topo.h: 12 GB/s for PCIe Gen3 x16, whose nominal rate is 15.75.
inline constexpr double kPcieShare = 12.0 / 15.75;
/// A smaller bandwidth than so much of what was found is not tried.
inline constexpr double kLeastOfFound = 0.49;
/// followPath: traffic between GPUs through an Intel CPU counts so many times on PCIe.
inline constexpr double kThroughCpu = 6.0 / 5.0;
/// ncclTopoDupChannels: channels from this bandwidth on are split in two.
inline constexpr double kSplitFrom = 25.0;

}  // namespace simsync::detail::nccl
