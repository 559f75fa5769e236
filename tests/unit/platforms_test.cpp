#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "platforms/device_name.hpp"
#include "platforms/reader.hpp"
#include "platforms/topology.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

/// A file that is gone after the test.
class TemporaryFile {
public:
  TemporaryFile(const std::string& name, const std::string& text)
      : path_((std::filesystem::temp_directory_path() / name).string()) {
    std::ofstream(path_) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

private:
  std::string path_;
};

/// Payload rate of the narrowest link between two places, in GB/s.
double narrowest(const Topology& topology, Place from, Place to) {
  double rate = topology.path(from, to).stream_cap.value();
  for (const LinkId link : topology.path(from, to).links)
    rate = std::min(rate, topology.links()[static_cast<std::size_t>(link)].bandwidth.value());
  return rate / 1e9;
}

bool mentions(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const std::string& text) { return text.find(part) != std::string::npos; });
}

}  // namespace

TEST_CASE("every preset loads, names its sources and survives a round trip", "[platforms]") {
  const auto names = known_clusters();
  CHECK(names.size() >= 23);
  for (const auto& name : names) {
    INFO(name);
    const auto cluster = find_cluster(name);
    CHECK(cluster.name == name);
    CHECK_FALSE(cluster.description.empty());
    CHECK_FALSE(cluster.sources.empty());
    CHECK(parse_cluster(to_yaml(cluster), "again.yaml") == cluster);
    // Every pair of places of the first two nodes has a way.
    const Topology topology(cluster, std::min(cluster.node_count(), 2));
    for (int node = 0; node < topology.nodes(); ++node) {
      for (int gpu = -1; gpu < cluster.groups[0].gpus; ++gpu) CHECK_NOTHROW(topology.path({0, -1}, {node, gpu}));
    }
  }
}

TEST_CASE("the device catalogue gives a peak, an efficiency and a source for each precision", "[platforms]") {
  const auto devices = device_catalogue();
  CHECK(devices.at("V100-SXM2-16GB").peak.at("amp").value() == Approx(125e12));
  CHECK(devices.at("A100-SXM4-80GB").memory_bandwidth.value() == Approx(2.039e12));
  for (const auto& [name, device] : devices) {
    INFO(name);
    CHECK(device.name == name);
    CHECK_FALSE(device.source.empty());
    for (const auto& [precision, peak] : device.peak) CHECK(device.compute_efficiency.contains(precision));
  }
}

TEST_CASE("a driver's name is told from that of another chip", "[platforms]") {
  for (const auto& [driver, device] : {std::pair{"Tesla V100-SXM2-16GB", "V100-PCIE-32GB"},
                                       {"NVIDIA A100-SXM4-80GB", "A100-PCIE-80GB"},
                                       {"NVIDIA GeForce RTX 2080 Ti", "RTX-2080Ti"},
                                       {"Tesla T4", "T4"},
                                       {"NVIDIA TITAN Xp", "TITAN-Xp"},
                                       {"GeForce GTX TITAN X", "TITAN-X-Maxwell"},
                                       {"GRID K520", "K520"},
                                       {"NVIDIA H100 80GB HBM3", "H100-SXM5-80GB"}})
    CHECK(names_chip(driver, device));
  for (const auto& [driver, device] : {std::pair{"Tesla V100-SXM2-16GB", "T4"},
                                       {"Tesla T4", "V100-SXM2-16GB"},
                                       {"NVIDIA RTX A6000", "RTX-6000"},
                                       {"NVIDIA A100-SXM4-40GB", "A40"}})
    CHECK_FALSE(names_chip(driver, device));
}

TEST_CASE("presets agree with their data sheets", "[platforms]") {
  SECTION("g4dn.12xlarge: 4 T4; one TCP stream of 9.8 Gbit/s = 1.225 GB/s on a 50 Gbit/s NIC") {
    const auto cluster = find_cluster("g4dn.12xlarge");
    CHECK(cluster.groups[0].gpus == 4);
    CHECK(cluster.links.at("ethernet").bandwidth.value() == Approx(6.25e9));
    CHECK(narrowest(Topology(cluster, 2), {0, 0}, {1, 0}) == Approx(1.225));
  }
  SECTION("DGX-1: 6 NVLinks x 25 GB/s per GPU, 4 NICs x 12.5 GB/s") {
    const auto cluster = find_cluster("dgx-1");
    CHECK(cluster.links.at("nvlink2").bandwidth.value() == Approx(150e9));
    CHECK(cluster.groups[0].nics == 4);
    CHECK(narrowest(Topology(cluster, 1), {0, 0}, {0, 7}) == Approx(129.0));  // 150 GB/s x 0.86
    CHECK(find_cluster("dgx-1-1edr").groups[0].nics == 1);
  }
  SECTION("DGX A100: 12 x 25 GB/s, 8 x 25 GB/s; between nodes 8 x 24 GB/s") {
    const auto cluster = find_cluster("dgx-a100");
    const Topology topology(cluster, 2);
    CHECK(cluster.links.at("nvlink3").bandwidth.value() == Approx(300e9));
    const LinkId nic = topology.between_nodes(0, 1).links.front();
    CHECK(topology.links()[static_cast<std::size_t>(nic)].bandwidth.value() == Approx(192e9));
  }
  SECTION("DGX H100: 18 x 25 GB/s, 8 x 50 GB/s") {
    const auto cluster = find_cluster("dgx-h100");
    CHECK(cluster.links.at("nvlink4").bandwidth.value() == Approx(450e9));
    CHECK(cluster.links.at("infiniband").bandwidth.value() * cluster.groups[0].nics == Approx(400e9));
  }
  SECTION("PCIe Gen3 x16: 8 GT/s x 16 x 128/130 / 8 bits = 15.75 GB/s") {
    CHECK(find_cluster("two-nodes").links.at("pcie3").bandwidth.value() ==
          Approx(8e9 * 16 * 128 / 130 / 8).epsilon(1e-3));
  }
  SECTION("HKBU: as many CPU servers as worker nodes, behind them in number") {
    const auto cluster = find_cluster("rtx2080ti-10gbe");
    CHECK(cluster.gpu_count() == 32);
    CHECK(cluster.groups[1].gpus == 0);
    CHECK(cluster.groups[1].count == cluster.groups[0].count);
    CHECK(cluster.group_of(8).name == "server");
  }
  SECTION("P2: 8 GPUs are 4 boards of two") {
    const auto cluster = find_cluster("p2.8xlarge");
    CHECK(cluster.groups[0].gpus / cluster.groups[0].fabric.gpus_per_switch == 4);
  }
}

TEST_CASE("workers fill the cluster node by node", "[platforms]") {
  const auto cluster = find_cluster("two-nodes");
  const auto workers = cluster.workers(3);
  REQUIRE(workers.size() == 3);
  CHECK(name_of(workers[1]) == "node0:gpu1");
  CHECK(name_of(workers[2]) == "node1:gpu0");
  CHECK(name_of({1, -1}) == "node1:cpu0");
  CHECK_THROWS_WITH(cluster.workers(5), "5 workers do not fit: cluster 'two-nodes' has 4 GPUs");
  CHECK_THROWS_AS(cluster.workers(-1), PlanError);
  CHECK_THROWS_AS(cluster.group_of(2), PlanError);
}

TEST_CASE("a cluster grows by its last GPU group", "[platforms]") {
  const auto grown = grown_to(find_cluster("rtx2080ti-10gbe"), 37);
  CHECK(grown.groups[0].count == 10);  // 37 GPUs need ten nodes of four
  CHECK(grown.groups[1].count == 8);   // servers stay
  CHECK(grown_to(find_cluster("two-nodes"), 2) == find_cluster("two-nodes"));
  CHECK_THROWS_WITH(grown_to(find_cluster("a40-pcie4-shm"), 8),
                    "cluster 'a40-pcie4-shm' is one machine without a network: it has 4 GPUs, 8 workers asked for");
  CHECK_THROWS_WITH(grown_to(find_cluster("titanx-40gbe"), 2'000'000),
                    "2000000 workers need 2000000 nodes of cluster 'titanx-40gbe': expected at most 1000000");
}

TEST_CASE("one number is set by its key", "[platforms]") {
  auto cluster = find_cluster("two-nodes");
  set_parameter(cluster, "link.ethernet.per_flow_cap", "10Gbps");
  CHECK(cluster.links.at("ethernet").per_flow_cap->value() == Approx(1.25e9));
  set_parameter(cluster, "link.ethernet.per_flow_cap", "none");
  CHECK_FALSE(cluster.links.at("ethernet").per_flow_cap);
  set_parameter(cluster, "network.background.ethernet", "0.25");
  CHECK(cluster.network.background.at("ethernet") == 0.25);
  set_parameter(cluster, "group.node.cpu.threads", "3");
  CHECK(cluster.groups[0].cpu.threads == 3);
  set_parameter(cluster, "device.T4.peak.fp32", "5TFLOPS");
  CHECK(cluster.devices.at("T4").peak.at("fp32").value() == Approx(5e12));
  set_parameter(cluster, "precision", "amp");
  CHECK(cluster.precision == "amp");

  const auto before = cluster;
  CHECK_THROWS_WITH(set_parameter(cluster, "link.ethernet.bandwith", "1Gbps"),
                    "error: cluster 'two-nodes' has no parameter 'link.ethernet.bandwith'\n"
                    "  help: did you mean 'link.ethernet.bandwidth'?");
  CHECK_THROWS_WITH(set_parameter(cluster, "collective.channels", "0"),
                    "error: collective.channels: 0 is out of range: expected from 1 to 64");
  CHECK_THROWS_WITH(set_parameter(cluster, "precision", "bf16"),
                    "error: precision=bf16 does not fit cluster 'two-nodes': groups[0].device: device 'T4' gives no "
                    "peak for the precision 'bf16'\n"
                    "  help: known precisions of this device: amp, fp16, fp32");
  CHECK_THROWS_AS(set_parameter(cluster, "group.node.count", "1000001"), InputError);
  CHECK(cluster == before);
}

TEST_CASE("every key reads back what it wrote", "[platforms]") {
  const auto original = find_cluster("dgx-a100");
  const auto keys = parameter_keys(original);
  CHECK(std::is_sorted(keys.begin(), keys.end()));
  CHECK(std::find(keys.begin(), keys.end(), "collective.per_step_inter") != keys.end());
  auto cluster = original;
  for (const auto& key : keys) {
    INFO(key);
    set_parameter(cluster, key, parameter_text(original, key));
  }
  CHECK(cluster == original);
}

TEST_CASE("one key sets a number of every group", "[platforms]") {
  auto cluster = find_cluster("two-nodes");
  cluster.groups.push_back(cluster.groups.front());
  cluster.groups.back().name = "other";
  const auto keys = settable_keys(cluster);
  for (const auto& key : parameter_keys(cluster)) {
    INFO(key);
    CHECK(std::find(keys.begin(), keys.end(), key) != keys.end());
  }
  CHECK(std::count(keys.begin(), keys.end(), "group.*.cpu.threads") == 1);
  CHECK(std::count(keys.begin(), keys.end(), "group.*.cpu.thread") == 0);
  set_parameter(cluster, "group.*.cpu.threads", "3");
  CHECK(parameter_text(cluster, "group.node.cpu.threads") == "3");
  CHECK(parameter_text(cluster, "group.other.cpu.threads") == "3");
  CHECK_THROWS_WITH(set_parameter(cluster, "group.*.cpu.threads", "0"),
                    "error: group.*.cpu.threads: 0 is out of range: expected from 1 to 4096");
  CHECK(cluster.groups.back().cpu.threads == 3);
}

TEST_CASE("the example of the README is a cluster", "[platforms]") {
  const std::string page = read_file(std::string(SIMSYNC_TESTS_FOLDER) + "/../platforms/README.md");
  const std::string fence = "```yaml\n";
  const auto begin = page.find(fence) + fence.size();
  const auto cluster = parse_cluster(page.substr(begin, page.find("```", begin) - begin), "README.md");
  CHECK(cluster.node_count() == 6);
  CHECK(cluster.gpu_count() == 32);
  const Topology topology(cluster, 6);
  CHECK(topology.path({0, 0}, {5, -1}).links.size() == 7);  // PCIe, uplink, NIC, pair, two of the leaves, NIC
}

TEST_CASE("odd names and texts survive a round trip", "[platforms]") {
  auto cluster = find_cluster("two-nodes");
  cluster.name = "null";
  cluster.description = "a \"quoted\" \\ text\nwith: two lines # and a tab\t\x01";
  cluster.sources = {"- x", "'", "~"};
  cluster.groups[0].name = "1e3";
  cluster.links.at("ethernet").latency = Seconds{1.0 / 3.0};
  cluster.links.at("ethernet").bandwidth = BytesPerSecond{1e9 / 7.0};
  cluster.links.at("ethernet").half_size = Bytes{1537};
  CHECK(parse_cluster(to_yaml(cluster), "again.yaml") == cluster);
}

TEST_CASE("an AutoDist resource specification becomes a cluster in the file's order", "[platforms]") {
  const TemporaryFile file("simsync_autodist_spec.yml", R"(
nodes:
  - address: 10.0.0.1
    gpus: [0, 1]
    chief: true
    network_bandwidth: 25
  - address: 10.0.0.2
    gpus: [0, 1]
    network_bandwidth: 25
    ssh_config: conf
  - address: 10.0.0.3
    cpus: [0]
    ssh_config: conf
ssh:
  conf: {username: me, key_file: /k, port: 22}
)");
  const auto cluster = import_autodist_resource_spec(file.path(), "T4");
  REQUIRE(cluster.groups.size() == 2);
  CHECK(cluster.groups[0].count == 2);
  CHECK(cluster.groups[0].gpus == 2);
  CHECK(cluster.groups[0].device == "T4");
  CHECK(cluster.links.at(cluster.groups[0].nic_link).bandwidth.value() == Approx(25e9 / 8));
  CHECK(cluster.groups[1].gpus == 0);
  CHECK(cluster.links.at(cluster.groups[1].nic_link).bandwidth.value() == Approx(1e9 / 8));
  CHECK(mentions(cluster.sources, "assumed 1 Gbit/s for 1 of 3 nodes"));
  CHECK(mentions(cluster.sources, "chief: node0 (10.0.0.1)"));
  CHECK(cluster.file == file.path());
  CHECK(parse_cluster(to_yaml(cluster), "again.yaml") == cluster);
}

TEST_CASE("a wrong AutoDist resource specification is told with its place", "[platforms][error]") {
  const auto error = [](const std::string& text, const std::string& device = "T4") {
    const TemporaryFile file("simsync_autodist_bad.yml", text);
    try {
      (void)import_autodist_resource_spec(file.path(), device);
    } catch (const InputError& e) {
      return e.diagnostics().front().message;
    }
    return std::string{"no error"};
  };
  CHECK(error("nodes: [{address: localhost, gpus: [0]}]\n") == "no error");
  CHECK(error("nodes: []\n") == "a resource specification needs at least one node");
  CHECK(error("nodes: [{address: a}, {address: b}]\n") == "exactly one node must have 'chief: true', 0 have it");
  CHECK(error("nodes: [{address: a, chief: true}, {address: a}]\n") == "a second node has the address 'a'");
  CHECK(error("nodes: [{address: localhost, chief: true}, {address: b}]\n") ==
        "'localhost' names this machine only: a node among several needs its own address");
  CHECK(error("nodes: [{address: a, gpus: [0, 0]}]\n") == "index 0 is named twice");
  CHECK(error("nodes: [{address: a, network_bandwidth: fast}]\n") == "expected a number, got 'fast'");
  CHECK(error("nodes: [{address: a, gpu: [0]}]\n") == "unknown key 'gpu'");
  CHECK(error("nodes: [{address: a, gpus: [0]}]\n", "T44") == "unknown device 'T44'");
}
