#include "platforms/topology.hpp"

#include "base/error.hpp"
#include "platforms/reader.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

/// Round numbers: PCIe 10 GB/s and 1 us, uplink 8 GB/s and 2 us, socket 6 GB/s and 3 us, NIC 2 x 5 GB/s and 10 us.
Cluster tree(const std::string& group_keys, const std::string& fabric_keys, const std::string& rest = {}) {
  return parse_cluster(
      "schema: simsync/cluster/v1\n"
      "name: tree\n"
      "devices: {G: {peak: {fp32: 1TFLOPS}, memory_bandwidth: 100GB/s}}\n"
      "links:\n"
      "  pcie: {bandwidth: 10GB/s, latency: 1us, message_cost: 1us, half_size: 1KiB}\n"
      "  uplink: {bandwidth: 16GB/s, efficiency: 0.5, latency: 2us}\n"
      "  qpi: {bandwidth: 6GB/s, latency: 3us, half_size: 2KiB}\n"
      "  nvlink: {bandwidth: 150GB/s, efficiency: 0.8, latency: 1us, per_flow_cap: 25GB/s}\n"
      "  memory: {bandwidth: 40GB/s, latency: 0.5us}\n"
      "  shared: {bandwidth: 1GB/s, latency: 4us, full_duplex: false}\n"
      "  nic: {bandwidth: 5GB/s, latency: 10us, message_cost: 4us, half_size: 64KiB}\n"
      "groups:\n"
      "  - {name: node, count: 4, device: G, gpus: 8, nic_link: nic, " +
          group_keys + " fabric: {pcie_link: pcie, gpus_per_switch: 2, switch_link: uplink, " +
          "switches_per_socket: 2, socket_link: qpi" + fabric_keys + "}}\n" + rest,
      "tree.yaml");
}

std::vector<std::string> names(const Topology& topology, const Path& path) {
  std::vector<std::string> out;
  for (const LinkId link : path.links) out.push_back(topology.links().at(static_cast<std::size_t>(link)).name);
  return out;
}

double rate(const Topology& topology, const std::string& name) {
  for (const auto& link : topology.links()) {
    if (link.name == name) return link.bandwidth.value();
  }
  FAIL("no link " << name);
  return 0.0;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a pair of nodes shares one link for both directions", "[platforms][topology]") {
  const Topology topology(tree("", "", "network: {pair_bandwidth: 2GB/s}\n"), {0, 2, 3});
  const auto shared = [&](int from, int to) { return names(topology, topology.between_nodes(from, to)).at(1); };
  CHECK(shared(0, 2) == "node0-node2/pair");
  CHECK(shared(2, 0) == "node0-node2/pair");
  CHECK(shared(0, 3) == "node0-node3/pair");
  CHECK(shared(3, 2) == "node2-node3/pair");
  CHECK(names(topology, topology.path({2, -1}, {3, -1})) == Names{"node2/nic-out", "node2-node3/pair", "node3/nic-in"});
  CHECK(rate(topology, "node2-node3/pair") == Approx(2e9));
  CHECK(names(topology, topology.path({2, 0}, {2, 1})).size() == 2);
}

TEST_CASE("paths on a PCIe tree of two sockets with two switches of two GPUs", "[platforms][topology]") {
  const Topology topology(tree("", ""), 1);

  SECTION("same switch: the GPUs' own links") {
    const auto path = topology.path({0, 0}, {0, 1});
    CHECK(names(topology, path) == Names{"node0/gpu0/pcie-out", "node0/gpu1/pcie-in"});
    CHECK(path.latency.value() == Approx(2e-6));
    CHECK(path.message_cost.value() == Approx(2e-6));
    CHECK(path.half_size.count == 1024);
    CHECK(path.stream_cap.value() == std::numeric_limits<double>::infinity());
  }
  SECTION("other switch: also both uplinks") {
    const auto path = topology.path({0, 1}, {0, 2});
    CHECK(names(topology, path) ==
          Names{"node0/gpu1/pcie-out", "node0/switch0/uplink-out", "node0/switch1/uplink-in", "node0/gpu2/pcie-in"});
    CHECK(path.latency.value() == Approx(6e-6));
  }
  SECTION("other socket: also the socket link") {
    const auto path = topology.path({0, 7}, {0, 0});
    CHECK(names(topology, path) == Names{"node0/gpu7/pcie-out", "node0/switch3/uplink-out", "node0/socket1/link-out",
                                         "node0/switch0/uplink-in", "node0/gpu0/pcie-in"});
    CHECK(path.latency.value() == Approx(9e-6));
    CHECK(path.half_size.count == 2048);
  }
  SECTION("GPU and host") {
    CHECK(names(topology, topology.path({0, 2}, {0, -1})) == Names{"node0/gpu2/pcie-out", "node0/switch1/uplink-out"});
    CHECK(names(topology, topology.path({0, -1}, {0, 2})) == Names{"node0/switch1/uplink-in", "node0/gpu2/pcie-in"});
  }
  SECTION("a place and itself share a memory") {
    CHECK(topology.path({0, 3}, {0, 3}).links.empty());
    CHECK(topology.path({0, -1}, {0, -1}).links.empty());
  }
  SECTION("payload rates are nominal rates times efficiency") {
    CHECK(rate(topology, "node0/switch2/uplink-in") == Approx(8e9));
    CHECK(rate(topology, "node0/socket0/link-out") == Approx(6e9));
  }
}

TEST_CASE("without switches every GPU has its own root port", "[platforms][topology]") {
  auto cluster = tree("", "");
  cluster.groups[0].fabric.gpus_per_switch = 0;
  cluster.groups[0].fabric.switches_per_socket = 4;  // now counts GPUs
  const Topology topology(cluster, 1);
  CHECK(names(topology, topology.path({0, 0}, {0, 3})) == Names{"node0/gpu0/pcie-out", "node0/gpu3/pcie-in"});
  CHECK(names(topology, topology.path({0, 3}, {0, 4})) ==
        Names{"node0/gpu3/pcie-out", "node0/socket0/link-out", "node0/gpu4/pcie-in"});
}

TEST_CASE("NVSwitch: one port out, one port in, one latency for the hop", "[platforms][topology]") {
  const Topology topology(tree("", ", gpu_link: nvlink"), 1);
  const auto path = topology.path({0, 0}, {0, 7});
  CHECK(names(topology, path) == Names{"node0/gpu0/port-out", "node0/gpu7/port-in"});
  CHECK(path.latency.value() == Approx(1e-6));
  CHECK(path.stream_cap.value() == Approx(25e9));  // measured payload: efficiency does not scale it
  CHECK(rate(topology, "node0/gpu0/port-out") == Approx(120e9));
  // The host stays behind PCIe.
  CHECK(names(topology, topology.path({0, 7}, {0, -1})) == Names{"node0/gpu7/pcie-out", "node0/switch3/uplink-out"});
}

TEST_CASE("without peer-to-peer GPUs meet in host memory", "[platforms][topology]") {
  const Topology topology(tree("", ", gpu_link: nvlink, peer_to_peer: false, memory_link: memory"), 1);
  CHECK(names(topology, topology.path({0, 0}, {0, 1})) == Names{"node0/gpu0/pcie-out", "node0/switch0/uplink-out",
                                                                "node0/memory", "node0/switch0/uplink-in",
                                                                "node0/gpu1/pcie-in"});
  CHECK(names(topology, topology.path({0, 0}, {0, 7})) == Names{"node0/gpu0/pcie-out", "node0/switch0/uplink-out",
                                                                "node0/socket0/link-out", "node0/memory",
                                                                "node0/switch3/uplink-in", "node0/gpu7/pcie-in"});
}

TEST_CASE("between nodes: host memory without GPUDirect, the switch's own NIC with it", "[platforms][topology]") {
  SECTION("staged") {
    const Topology topology(tree("", ", memory_link: memory"), 2);
    const auto path = topology.path({0, 0}, {1, 3});
    CHECK(names(topology, path) == Names{"node0/gpu0/pcie-out", "node0/switch0/uplink-out", "node0/memory",
                                         "node0/nic-out", "node1/nic-in", "node1/memory", "node1/switch1/uplink-in",
                                         "node1/gpu3/pcie-in"});
    // 2 x (PCIe 1 + uplink 2 + memory 0.5) + one hop between NICs of 10 us
    CHECK(path.latency.value() == Approx(17e-6));
    CHECK(path.message_cost.value() == Approx(6e-6));
    CHECK(path.half_size.count == 65536);
    CHECK(names(topology, topology.path({0, -1}, {1, -1})) ==
          Names{"node0/memory", "node0/nic-out", "node1/nic-in", "node1/memory"});
  }
  SECTION("GPUDirect with fewer NICs than switches crosses the uplink") {
    const Topology topology(tree("gpu_direct: true,", ", memory_link: memory"), 2);
    CHECK(names(topology, topology.path({0, 0}, {1, 3})) == Names{"node0/gpu0/pcie-out", "node0/switch0/uplink-out",
                                                                  "node0/nic-out", "node1/nic-in",
                                                                  "node1/switch1/uplink-in", "node1/gpu3/pcie-in"});
  }
  SECTION("GPUDirect with a NIC under each switch does not") {
    const Topology topology(tree("gpu_direct: true, nics: 4,", ""), 2);
    const auto path = topology.path({0, 0}, {1, 3});
    CHECK(names(topology, path) == Names{"node0/gpu0/pcie-out", "node0/nic0/rail-out", "node0/nic-out", "node1/nic-in",
                                         "node1/nic1/rail-in", "node1/gpu3/pcie-in"});
    CHECK(rate(topology, "node0/nic-out") == Approx(20e9));  // four NICs together
    CHECK(rate(topology, "node0/nic0/rail-out") == Approx(5e9));
    CHECK(path.stream_cap.value() == Approx(5e9));  // one stream uses one NIC
  }
}

TEST_CASE("NICs go with the GPUs that take part", "[platforms][topology]") {
  // ceil(nics k / gpus) of them, 5 GB/s each, for k of 8 GPUs.
  const auto rate_with = [&](const std::string& keys, int gpus) {
    return rate(Topology(tree("gpu_direct: true, " + keys, ""), {0, 1}, {{0, gpus}}), "node0/nic-out");
  };
  SECTION("a NIC for each GPU") {
    for (const int gpus : {1, 2, 4, 8}) CHECK(rate_with("nics: 8,", gpus) == Approx(gpus * 5e9));
  }
  SECTION("several GPUs share a NIC") {
    CHECK(rate_with("nics: 2,", 1) == Approx(5e9));
    CHECK(rate_with("nics: 2,", 4) == Approx(5e9));
    CHECK(rate_with("nics: 2,", 5) == Approx(10e9));
    CHECK(rate_with("nics: 2,", 8) == Approx(10e9));
  }
  SECTION("several NICs for each GPU") {
    CHECK(rate_with("nics: 16,", 1) == Approx(10e9));
    CHECK(rate_with("nics: 16,", 3) == Approx(30e9));
  }
  SECTION("all of them where the cluster says so, or no GPU of the node takes part") {
    CHECK(rate_with("nics: 8, nearest_nics: false,", 1) == Approx(40e9));
    const Topology topology(tree("nics: 8,", ""), {0, 1}, gpus_in_use({{0, 3}, {0, 5}, {1, -1}}));
    CHECK(rate(topology, "node0/nic-out") == Approx(10e9));
    CHECK(rate(topology, "node1/nic-out") == Approx(40e9));
    CHECK(topology.nics(0) == 2);
    CHECK(topology.nics(1) == 8);
  }
  SECTION("a stream has no more than one") {
    const Topology topology(tree("nics: 8,", ""), {0, 1}, {{0, 2}, {1, 2}});
    CHECK(topology.path({0, -1}, {1, -1}).stream_cap.value() == Approx(5e9));
  }
}

TEST_CASE("what a GPU sends crosses the rail of its NIC", "[platforms][topology]") {
  const auto rail = [](const std::string& keys, int gpu) {
    const Topology topology(tree("gpu_direct: true, " + keys, ""), 2);
    for (const std::string& name : names(topology, topology.path({0, gpu}, {1, gpu})))
      if (name.ends_with("rail-out")) return name + " " + std::to_string(std::lround(rate(topology, name) / 1e9));
    return std::string("none");
  };
  // 8 GPUs, NICs of 5 GB/s. Of 4 NICs GPUs 0 and 1 have the first, 2 and 3 the second.
  CHECK(rail("nics: 4,", 1) == "node0/nic0/rail-out 5");
  CHECK(rail("nics: 4,", 2) == "node0/nic1/rail-out 5");
  CHECK(rail("nics: 8,", 7) == "node0/nic7/rail-out 5");
  // 16 NICs are two for each GPU.
  CHECK(rail("nics: 16,", 7) == "node0/nic7/rail-out 10");
  CHECK(rail("nics: 1,", 7) == "none");
  CHECK(rail("nics: 8, nearest_nics: false,", 7) == "none");
}

TEST_CASE("the way between nodes for all GPUs together has no single GPU's link", "[platforms][topology]") {
  const Topology topology(tree("gpu_direct: true, nics: 4,", ""), 2);
  const auto path = topology.between_nodes(0, 1);
  CHECK(names(topology, path) == Names{"node0/nic-out", "node1/nic-in"});
  CHECK(path.latency.value() == Approx(topology.path({0, 0}, {1, 0}).latency.value()));
  CHECK(path.stream_cap.value() == Approx(5e9));
  CHECK(names(topology, topology.between_nodes(1, 1)) == Names{"node1/nic-out", "node1/nic-in"});
}

TEST_CASE("the way of a representative leaves its node and comes back", "[platforms][topology]") {
  const Topology topology(tree("gpu_direct: true, nics: 4,", ""), 1);
  const auto path = topology.network_path({0, 0}, {0, 3});
  CHECK(names(topology, path) == Names{"node0/gpu0/pcie-out", "node0/nic0/rail-out", "node0/nic-out", "node0/nic-in",
                                       "node0/nic1/rail-in", "node0/gpu3/pcie-in"});
  CHECK(path.latency.value() == Approx(12e-6));  // PCIe 1 + NIC to NIC 10 + PCIe 1
}

TEST_CASE("half-duplex NICs share one link for both directions", "[platforms][topology]") {
  auto cluster = tree("", "");
  cluster.groups[0].nic_link = "shared";
  const Topology topology(cluster, 2);
  const auto there = topology.path({0, -1}, {1, -1});
  const auto back = topology.path({1, -1}, {0, -1});
  CHECK(names(topology, there) == Names{"node0/nic", "node1/nic"});
  CHECK(names(topology, back) == Names{"node1/nic", "node0/nic"});
}

TEST_CASE("an oversubscribed leaf: uplinks of all its NICs over the ratio", "[platforms][topology]") {
  const Topology topology(
      tree("nics: 2,", "", "network: {nodes_per_leaf: 2, oversubscription: 4, switch_latency: 1us}\n"), 4);
  CHECK(names(topology, topology.path({0, -1}, {1, -1})) == Names{"node0/nic-out", "node1/nic-in"});
  const auto path = topology.path({1, -1}, {2, -1});
  CHECK(names(topology, path) == Names{"node1/nic-out", "leaf0/up", "leaf1/down", "node2/nic-in"});
  CHECK(path.latency.value() == Approx(12e-6));      // 10 + two more switch hops
  CHECK(rate(topology, "leaf0/up") == Approx(5e9));  // 2 nodes x 2 NICs x 5 GB/s / 4
  CHECK(rate(topology, "leaf1/down") == Approx(5e9));
}

TEST_CASE("background traffic takes its share of a link class", "[platforms][topology]") {
  const Topology topology(tree("", "", "network: {background: {nic: 0.25}}\n"), 1);
  CHECK(rate(topology, "node0/nic-out") == Approx(3.75e9));
  CHECK(rate(topology, "node0/gpu0/pcie-out") == Approx(10e9));
}

TEST_CASE("a straggler is a group of one node", "[platforms][topology]") {
  auto cluster = tree("", "");
  NodeGroup slow = cluster.groups[0];
  slow.name = "slow";
  slow.count = 1;
  slow.nic_slowdown = 2.0;
  slow.compute_slowdown = 1.5;
  cluster.groups.push_back(slow);
  const Topology topology(cluster, 5);
  CHECK(rate(topology, "node3/nic-out") == Approx(5e9));
  CHECK(rate(topology, "node4/nic-out") == Approx(2.5e9));
  CHECK(cluster.group_of(3).compute_slowdown == 1.0);
  CHECK(cluster.group_of(4).compute_slowdown == 1.5);
  CHECK(name_of(cluster.workers(33).back()) == "node4:gpu0");
}

TEST_CASE("servers without GPUs have NICs only", "[platforms][topology]") {
  const auto cluster = find_cluster("gce-k80");
  const Topology topology(cluster, cluster.node_count());
  const auto path = topology.path({0, 0}, {8, -1});
  CHECK(names(topology, path) == Names{"node0/gpu0/pcie-out", "node0/nic-out", "node8/nic-in"});
  CHECK_THROWS_WITH(topology.path({0, 0}, {8, 0}), "there is no node8:gpu0: the nodes of group 'server' have 0 GPUs");
}

TEST_CASE("chosen nodes keep their numbers and their paths", "[platforms][topology]") {
  const auto cluster = grown_to(tree("", "", "network: {nodes_per_leaf: 2}\n"), 16384);
  REQUIRE(cluster.node_count() == 2048);
  const Topology all(cluster, 2048);
  const Topology few(cluster, std::vector<int>{2047, 0, 1});
  CHECK(few.nodes() == 3);
  const auto path = few.path({1, 2}, {2047, 5});
  CHECK(names(few, path) == names(all, all.path({1, 2}, {2047, 5})));
  CHECK(rate(few, "leaf1023/up") == rate(all, "leaf1023/up"));
  CHECK_THROWS_WITH(few.path({0, 0}, {5, 0}), "node5 of cluster 'tree' takes no part");
}

TEST_CASE("what does not exist is a plan error", "[platforms][topology]") {
  const auto cluster = tree("", "");
  CHECK_THROWS_WITH(Topology(cluster, 5), "cluster 'tree' has 4 nodes, 5 asked for");
  CHECK_THROWS_WITH(Topology(cluster, std::vector<int>{1, 1}), "node1 is named twice");
  CHECK_THROWS_WITH(Topology(cluster, std::vector<int>{-1}), "there is no node-1: cluster 'tree' has 4 nodes");
  const Topology topology(cluster, 1);
  CHECK_THROWS_AS(topology.path({0, 8}, {0, 0}), PlanError);
  CHECK_THROWS_AS(topology.path({0, -2}, {0, 0}), PlanError);
  CHECK_THROWS_AS(topology.path({-1, 0}, {0, 0}), PlanError);
  auto broken = cluster;
  broken.links.erase("qpi");
  CHECK_THROWS_WITH(Topology(broken, 1),
                    "group 'node' uses the link class 'qpi', which cluster 'tree' does not describe");
}
