// Nominal hardware: devices, links and how they are wired.
//
// A Cluster is a list of node groups (alike nodes, any number of them) and a network between nodes. It is small
// whatever the number of nodes; a Topology numbers the links of the nodes that take part.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace simsync {

/// How a port serves what passes and what waits in it.
struct PortService {
  /// The most that a control message, or the first byte of a transfer, waits in a port that is the bottleneck of other
  /// transfers: the time that its full queue takes to drain. 0: ports keep no queue.
  Seconds queueing_delay;
  /// The same in a port that is not their bottleneck, where they arrive in bursts.
  Seconds passing_delay;
  /// Fair queues: the quantum of deficit round robin, payload that a port passes of one node, on average, before it
  /// turns to the next. A control message or a first byte waits for one quantum of every other node. So does each
  /// further quantum of a transfer, and its last one, too, which the transfer does not fill. The two delays above then
  /// count for nothing. 0: ports serve in the order of arrival.
  Bytes turn;
  /// A token bucket (tc's tbf, shaped ports of clouds): payload that passes above the rate once the bucket is full. An
  /// idle port fills its bucket at the rate. 0: none.
  Bytes burst;
  Bytes burst_at_once;                ///< of `burst`, what passes in no time before `burst_speed` counts
  std::optional<double> burst_speed;  ///< times the rate, while the bucket lasts; absent: all of it passes at once
  friend bool operator==(const PortService&, const PortService&) = default;
};

/// How fast bytes move over one kind of link. Nominal in a preset; a Calibration replaces what it measured.
struct LinkClass {
  std::string name;               ///< unique in the cluster, such as `ethernet`, `pcie`, `nvlink`
  BytesPerSecond bandwidth{1e9};  ///< one direction
  double efficiency = 1.0;        ///< share of `bandwidth` that payload reaches in long transfers
  /// One way. NIC and GPU-port classes: from port to port, half of it charged at each end; PCIe, switch, socket
  /// and memory classes: charged for every such link crossed. The same holds for `message_cost`.
  Seconds latency;
  /// Most payload per second that one stream (TCP connection, channel) reaches; `efficiency` does not scale it.
  std::optional<BytesPerSecond> per_flow_cap;
  /// NIC classes: what the operating system says of them, which NCCL chooses its algorithm by; none: `bandwidth`.
  std::optional<BytesPerSecond> reported_bandwidth;
  Seconds message_cost;  ///< fixed cost of one message besides latency
  /// Message size at which half of the rate is reached (rate = bandwidth * m / (m + half_size)); 0: no effect.
  Bytes half_size;
  PortService service;
  bool full_duplex = true;  ///< false: both directions share `bandwidth`
  /// Share of its rate that a GPU's own link (port, PCIe) has left while the GPU computes: kernels that move bytes wait
  /// for kernels that compute. 1: computing holds up nothing.
  double rate_beside_compute = 1.0;
  friend bool operator==(const LinkClass&, const LinkClass&) = default;
};

/// A GPU model (or a CPU used as a compute device).
struct DeviceClass {
  std::string name;                            ///< `V100-SXM2-16GB`
  std::map<std::string, FlopsPerSecond> peak;  ///< by precision: fp32, tf32, amp, fp16, bf16
  BytesPerSecond memory_bandwidth{1e11};
  Bytes memory;
  Seconds launch{5e-6};
  std::map<std::string, double> compute_efficiency;  ///< by precision
  std::map<std::string, double>
      unaligned_efficiency;  ///< of products of rows that are no multiple of 16 bytes; as above
  double memory_efficiency = 0.8;
  /// Share of the peak of two bytes an element (bf16, or fp16) that attention in one kernel reaches; none: as large
  /// products do.
  std::optional<double> attention_efficiency;
  Flops half_efficiency{1e9};
  /// Standard deviation of the compute of one step over its mean, from rank to rank and from step to step: ranks in
  /// lock step wait for the slowest of them. 0: all take equally long.
  double compute_variation = 0.0;
  double compute_capability = 0.0;  ///< of NVIDIA GPUs, such as 7.5; 0: none. NCCL chooses by it
  std::string source;               ///< where the numbers come from
  friend bool operator==(const DeviceClass&, const DeviceClass&) = default;
};

/// The host processor, which runs parameter servers and sums gradients.
struct CpuClass {
  int threads = 8;            ///< server threads working at a time
  Seconds per_tensor{30e-6};  ///< fixed cost of handling one tensor on a server: a thread is busy
  /// From a request's arrival until a thread begins with it, if one is free: wake-up and hand-over. All wait at once.
  Seconds dispatch_latency;
  /// The longest that a control message waits behind bytes that its process has handed to the same connection before:
  /// what a transport has begun to write and the kernel's send buffer holds leaves first. 0: it overtakes them.
  Seconds send_ahead;
  /// After so long a thread that sums or updates makes way for one that answers a read: schedulers favor who has used
  /// little. 10 ms was chosen on asynchronous runs of our own testbed (validate/DEVIATIONS.md, D19).
  Seconds time_slice{10e-3};
  BytesPerSecond update_rate{4e9};  ///< gradient bytes applied (sum + optimizer) per second and thread
  BytesPerSecond sum_rate{8e9};     ///< bytes added per second and thread when summing on a host
  /// Bytes that all threads together read and write in memory per second, for the sums and updates that run at a time;
  /// none: never what bounds them.
  std::optional<BytesPerSecond> memory_bandwidth;
  friend bool operator==(const CpuClass&, const CpuClass&) = default;
};

/// How the GPUs of a node reach each other and the host.
struct NodeFabric {
  /// Direct GPU-GPU ports (NVLink mesh or NVSwitch): a per-GPU port of this class; empty: through PCIe.
  /// Not used when `peer_to_peer` is false.
  std::string gpu_link;
  /// Which GPUs the links of a port lead to, where no switch joins them (GpuMesh): `0-1 0-3x2`. A port's bandwidth is
  /// then that of all links of the GPU that has most. Empty: every GPU reaches every other at the rate of its port.
  std::string gpu_mesh;
  std::string pcie_link;        ///< class of each GPU's own PCIe link
  int gpus_per_switch = 0;      ///< GPUs under one PCIe switch sharing its uplink; 0: every GPU has its own root port
  std::string switch_link;      ///< class of the switch uplink; empty: same as pcie_link
  int switches_per_socket = 0;  ///< switches (GPUs when `gpus_per_switch` is 0) under one socket; 0: one socket
  std::string socket_link;      ///< class of the link between sockets
  bool peer_to_peer = true;     ///< false: GPU-GPU traffic is staged in host memory (NCCL "SHM")
  /// Class of host memory, crossed once by all traffic that begins, ends or stops there: its bandwidth is that of
  /// copies, each byte written once and read once. Empty: not a bottleneck.
  std::string memory_link;
  friend bool operator==(const NodeFabric&, const NodeFabric&) = default;
};

/// Alike nodes. A straggler is a group of its own.
struct NodeGroup {
  std::string name;  ///< prefix of node names; node k overall is `node<k>`
  int count = 1;
  std::string device;  ///< DeviceClass of its GPUs; empty: a CPU-only machine (server)
  int gpus = 0;
  NodeFabric fabric;
  std::string nic_link;  ///< class of each NIC; empty: no network (a cluster of one machine)
  int nics = 1;
  /// A job uses the NICs next to its GPUs: ceil(nics k / gpus) of them where k GPUs of a node take part. False: all.
  bool nearest_nics = true;
  bool gpu_direct = false;  ///< NIC reads GPU memory (RDMA) without a stop in host memory
  CpuClass cpu;
  double compute_slowdown = 1.0;  ///< 2.0: layer times double (a straggler)
  double nic_slowdown = 1.0;      ///< 2.0: half the NIC bandwidth
  friend bool operator==(const NodeGroup&, const NodeGroup&) = default;
};

/// Network between the NICs.
struct Network {
  int nodes_per_leaf = 0;         ///< nodes under one leaf switch; 0: one non-blocking switch
  double oversubscription = 1.0;  ///< leaf ports bandwidth over leaf uplink bandwidth
  Seconds switch_latency;         ///< added per switch hop between leaves: twice from leaf to leaf
  /// Most payload per second between two nodes, both directions and all streams together, as where an overlay network
  /// wraps the traffic of a pair into one flow. `efficiency` does not scale it.
  std::optional<BytesPerSecond> pair_bandwidth;
  std::map<std::string, double> background;  ///< share of each link class taken by other traffic
  friend bool operator==(const Network&, const Network&) = default;
};

using DeviceIndex = int;
/// A GPU or a host: `gpu` counts within the node, -1 is the host (its CPU and memory).
struct Place {
  int node = 0;
  DeviceIndex gpu = -1;
  friend auto operator<=>(const Place&, const Place&) = default;
};
/// `node3:gpu1`, `node3:cpu0`.
std::string name_of(const Place& place);

/// One way in which a library moves a collective's bytes, such as NCCL's LL, LL128 and Simple. It takes the place of
/// the fields of CollectiveCosts that have the same names.
struct Protocol {
  Seconds per_step_intra;
  Seconds per_step_inter;
  double efficiency = 1.0;
  /// True: the bytes of a round travel while its fixed costs pass (flags beside the data), so that a round takes the
  /// longer of the two; false: one after the other.
  bool overlap = false;
  friend bool operator==(const Protocol&, const Protocol&) = default;
};

/// What collectives took over what the numbers of the cluster say, in groups of one shape: a library switches between
/// its algorithms where it thinks best, which follows from no cost of theirs.
struct MeasuredRatios {
  std::string primitive = "all-reduce";  ///< `all-reduce`, `all-gather` or `reduce-scatter`
  int nodes = 1;
  int ranks = 2;
  std::vector<std::pair<Bytes, double>> points;  ///< payload, ascending, and measured over predicted time
  friend bool operator==(const MeasuredRatios&, const MeasuredRatios&) = default;
};

inline constexpr int kNewestNccl = 23007;  ///< 2.30.7

/// Collective costs that do not follow from the links; fitted by calibration or taken from the NCCL tables.
struct CollectiveCosts {
  Seconds launch{10e-6};      ///< start of one collective (kernel launch and synchronization)
  Seconds per_step_intra{0};  ///< software cost of one round inside a node, besides link latency
  Seconds per_step_inter{0};  ///< software cost of one round between nodes
  int channels = 1;           ///< streams that a collective opens between two neighbors
  /// Share of compute speed that an overlapping collective takes from the device.
  double interference = 0.0;
  /// Share of link bandwidth that a collective's payload reaches at best (protocol and pipeline bubbles).
  double efficiency = 1.0;
  /// What `auto` means here: `auto` for the choice of NCCL's tuner, or the one algorithm of the library (Gloo: `ring`).
  std::string algorithm = "auto";
  /// Whose tuner chooses, by NCCL's version code: 20708 is 2.7.8.
  int nccl_version = kNewestNccl;
  /// Rate at which a device passes the whole payload once besides the rounds (first read, last write); none: free.
  std::optional<BytesPerSecond> payload_rate;
  /// By name; a collective runs with the one that is fastest for its size. None: one way, described above.
  std::map<std::string, Protocol> protocols;
  /// What the numbers above do not say of collectives that were measured (platforms/measured_ratios.hpp).
  std::vector<MeasuredRatios> measured;
  friend bool operator==(const CollectiveCosts&, const CollectiveCosts&) = default;
};

struct Cluster {
  std::string name;
  std::string description;
  std::vector<std::string> sources;
  std::map<std::string, DeviceClass> devices;
  std::map<std::string, LinkClass> links;
  std::vector<NodeGroup> groups;
  Network network;
  CollectiveCosts collective;
  std::string precision = "fp32";
  std::string file;  ///< where it was read from, for messages

  [[nodiscard]] int node_count() const;
  [[nodiscard]] const NodeGroup& group_of(int node) const;  ///< @throws PlanError when there is no such node
  [[nodiscard]] int gpu_count() const;
  /// The first `workers` GPUs, filled node by node. @throws PlanError when the cluster has fewer.
  [[nodiscard]] std::vector<Place> workers(int workers) const;
  /// Equal content; `file` does not count.
  friend bool operator==(const Cluster& a, const Cluster& b);
};

/// Names that `precision` and the tables of a DeviceClass may use.
const std::vector<std::string>& known_precisions();
inline constexpr int kMaxNodes = 1'000'000;
inline constexpr int kMaxGpusPerNode = 64;

}  // namespace simsync
