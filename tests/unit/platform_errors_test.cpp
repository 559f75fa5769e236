// Every kind of mistake in a cluster file, with the whole text that the user sees.
#include "base/error.hpp"
#include "platforms/reader.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

constexpr const char* kGood = R"(schema: simsync/cluster/v1
name: small
links:
  pcie: {bandwidth: 12GB/s}
  ethernet: {bandwidth: 10Gbps, latency: 20us}
groups:
  - name: node
    count: 2
    device: T4
    gpus: 2
    fabric: {pcie_link: pcie}
    nic_link: ethernet
)";

/// The good file with its first `from` replaced by `to`; an empty `from` appends.
std::string edited(const std::string& from, const std::string& to) {
  std::string text = kGood;
  if (from.empty()) return text + to;
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  try {
    (void)parse_cluster(text, "c.yaml");
  } catch (const InputError& e) {
    return e.what();
  }
  return "no error";
}

struct Case {
  const char* what;
  const char* from;
  const char* to;
  const char* expected;
};

const Case kCases[] = {
    {"another schema", "cluster/v1", "cluster/v2",
     R"(c.yaml:1:9: error: 'simsync/cluster/v2' is not one of simsync/cluster/v1
    1 | schema: simsync/cluster/v2
      |         ^
  key:  schema
  help: did you mean 'simsync/cluster/v1'?)"},
    {"a bandwidth without a unit", "10Gbps", "10",
     R"(c.yaml:5:25: error: expected a bandwidth with its unit, such as 10Gbps or 12.5GB/s, got '10'
    5 |   ethernet: {bandwidth: 10, latency: 20us}
      |                         ^
  key:  links.ethernet.bandwidth)"},
    {"a negative bandwidth", "10Gbps", "-10Gbps",
     R"(c.yaml:5:25: error: -10Gbps is out of range: expected from 1B/s to 1000TB/s
    5 |   ethernet: {bandwidth: -10Gbps, latency: 20us}
      |                         ^
  key:  links.ethernet.bandwidth)"},
    {"a number that is not finite", "20us}", "20us, efficiency: nan}",
     R"(c.yaml:5:60: error: expected a number, got 'nan'
    5 |   ethernet: {bandwidth: 10Gbps, latency: 20us, efficiency: nan}
      |                                                            ^
  key:  links.ethernet.efficiency)"},
    {"an efficiency above 1", "20us}", "20us, efficiency: 1.5}",
     R"(c.yaml:5:60: error: 1.5 is out of range: expected from 0.001 to 1
    5 |   ethernet: {bandwidth: 10Gbps, latency: 20us, efficiency: 1.5}
      |                                                            ^
  key:  links.ethernet.efficiency)"},
    {"an unknown key", "latency: 20us", "latncy: 20us",
     R"(c.yaml:5:33: error: unknown key 'latncy'
    5 |   ethernet: {bandwidth: 10Gbps, latncy: 20us}
      |                                 ^
  key:  links.ethernet.latncy
  help: did you mean 'latency'?)"},
    {"an unknown link", "nic_link: ethernet", "nic_link: ethernt",
     R"(c.yaml:12:15: error: unknown link 'ethernt'
   12 |     nic_link: ethernt
      |               ^
  key:  groups[0].nic_link
  help: did you mean 'ethernet'?)"},
    {"an unknown device", "device: T4", "device: T40",
     R"(c.yaml:9:13: error: unknown device 'T40'
    9 |     device: T40
      |             ^
  key:  groups[0].device
  help: did you mean 'A40'?)"},
    {"GPUs without their model", "    device: T4\n", "",
     R"(c.yaml:7:5: error: missing key 'device': which GPU are the 2?
    7 |   - name: node
      |     ^
  key:  groups[0])"},
    {"a model without a number of GPUs", "    gpus: 2\n", "",
     R"(c.yaml:7:5: error: missing key 'gpus': how many T4 are in a node?
    7 |   - name: node
      |     ^
  key:  groups[0])"},
    {"GPUs without a PCIe link", "    fabric: {pcie_link: pcie}\n", "",
     R"(c.yaml:7:5: error: missing key 'fabric.pcie_link': GPUs reach their host through it
    7 |   - name: node
      |     ^
  key:  groups[0])"},
    {"several nodes without a network", "    nic_link: ethernet\n", "",
     R"(c.yaml:7:5: error: missing key 'nic_link': only a cluster of one machine has no network
    7 |   - name: node
      |     ^
  key:  groups[0])"},
    {"too many GPUs in a node", "gpus: 2", "gpus: 65",
     R"(c.yaml:10:11: error: 65 is out of range: expected from 0 to 64
   10 |     gpus: 65
      |           ^
  key:  groups[0].gpus)"},
    {"too many nodes", "count: 2", "count: 1000001",
     R"(c.yaml:8:12: error: 1000001 is out of range: expected from 1 to 1000000
    8 |     count: 1000001
      |            ^
  key:  groups[0].count)"},
    {"sockets without a link between them", "{pcie_link: pcie}", "{pcie_link: pcie, switches_per_socket: 1}",
     R"(c.yaml:11:13: error: missing key 'socket_link': 'switches_per_socket' makes several sockets
   11 |     fabric: {pcie_link: pcie, switches_per_socket: 1}
      |             ^
  key:  groups[0].fabric)"},
    {"a pair of GPUs that is none", "{pcie_link: pcie}", "{gpu_link: pcie, gpu_mesh: 0-1 0:1, pcie_link: pcie}",
     R"(c.yaml:11:40: error: '0:1' is no pair of GPUs: expected such as 0-1 or 0-3x2
   11 |     fabric: {gpu_link: pcie, gpu_mesh: 0-1 0:1, pcie_link: pcie}
      |                                        ^
  key:  groups[0].fabric.gpu_mesh)"},
    {"a mesh of links that nothing describes", "{pcie_link: pcie}", "{gpu_mesh: 0-1, pcie_link: pcie}",
     R"(c.yaml:11:24: error: missing key 'gpu_link': which class are the links of the mesh?
   11 |     fabric: {gpu_mesh: 0-1, pcie_link: pcie}
      |                        ^
  key:  groups[0].fabric.gpu_mesh)"},
    {"a duplicate key", "    count: 2\n", "    count: 2\n    count: 3\n",
     R"(c.yaml:9:5: error: duplicate key 'count'
    9 |     count: 3
      |     ^
  key:  groups[0])"},
    {"no groups",
     "groups:\n  - name: node\n    count: 2\n    device: T4\n    gpus: 2\n    fabric: {pcie_link: pcie}\n    nic_link: "
     "ethernet\n",
     "groups: []\n",
     R"(c.yaml:6:9: error: a cluster needs at least one group of nodes
    6 | groups: []
      |         ^
  key:  groups)"},
    {"two groups of one name", "", "  - {name: node, nic_link: ethernet}\n",
     R"(c.yaml:13:12: error: a second group is called 'node'
   13 |   - {name: node, nic_link: ethernet}
      |            ^
  key:  groups[1].name)"},
    {"a precision that the device lacks", "name: small\n", "name: small\nprecision: bf16\n",
     R"(c.yaml:10:13: error: device 'T4' gives no peak for the precision 'bf16'
   10 |     device: T4
      |             ^
  key:  groups[0].device
  help: known precisions of this device: amp, fp16, fp32)"},
    {"an unknown precision", "name: small\n", "name: small\nprecision: float32\n",
     R"(c.yaml:3:12: error: 'float32' is not one of amp, bf16, fp16, fp32, fp64, fp8, int8, tf32
    3 | precision: float32
      |            ^
  key:  precision)"},
    {"background on an unknown link", "", "network: {background: {ethernt: 0.1}}\n",
     R"(c.yaml:13:24: error: unknown key 'ethernt'
   13 | network: {background: {ethernt: 0.1}}
      |                        ^
  key:  network.background.ethernt
  help: did you mean 'ethernet'?)"},
    {"a name with other characters", "name: small", "name: small cluster",
     R"(c.yaml:2:7: error: expected a name of letters, digits and ._+- (at most 64), got 'small cluster'
    2 | name: small cluster
      |       ^
  key:  name)"},
    {"a device without a peak", "links:\n", "devices:\n  X: {memory_bandwidth: 1GB/s}\nlinks:\n",
     R"(c.yaml:4:6: error: missing key 'peak': compute rates by precision
    4 |   X: {memory_bandwidth: 1GB/s}
      |      ^
  key:  devices.X)"},
    {"a truth value in other words", "20us}", "20us, full_duplex: yes}",
     R"(c.yaml:5:61: error: expected true or false, got 'yes'
    5 |   ethernet: {bandwidth: 10Gbps, latency: 20us, full_duplex: yes}
      |                                                             ^
  key:  links.ethernet.full_duplex)"},
    {"text that is not YAML", "{bandwidth: 12GB/s}", "{bandwidth: 12GB/s",
     R"(c.yaml:5:11: error: not valid YAML: end of map flow not found
    5 |   ethernet: {bandwidth: 10Gbps, latency: 20us}
      |           ^)"},
    {"a list where a mapping belongs", "fabric: {pcie_link: pcie}", "fabric: [pcie]",
     R"(c.yaml:11:13: error: expected a mapping, got a list
   11 |     fabric: [pcie]
      |             ^
  key:  groups[0].fabric)"},
    {"a latency beyond reason", "20us", "2h",
     R"(c.yaml:5:42: error: expected a time with its unit, such as 10us or 1.5ms, got '2h'
    5 |   ethernet: {bandwidth: 10Gbps, latency: 2h}
      |                                          ^
  key:  links.ethernet.latency)"},
    {"a size that is no whole number of bytes", "20us}", "20us, half_size: 0.5B}",
     R"(c.yaml:5:59: error: expected a size with its unit, such as 25MiB or 512B, got '0.5B'
    5 |   ethernet: {bandwidth: 10Gbps, latency: 20us, half_size: 0.5B}
      |                                                           ^
  key:  links.ethernet.half_size)"},
};

}  // namespace

TEST_CASE("a wrong cluster file is told with place, line and help", "[platforms][error]") {
  REQUIRE(error_of(kGood) == "no error");
  for (const auto& wrong : kCases) {
    INFO(wrong.what);
    CHECK(error_of(edited(wrong.from, wrong.to)) == wrong.expected);
  }
}

TEST_CASE("several mistakes are told together", "[platforms][error]") {
  std::string text = edited("count: 2", "count: 0");
  text.replace(text.find("20us"), 4, "fast");
  try {
    (void)parse_cluster(text, "c.yaml");
    FAIL("expected an error");
  } catch (const InputError& e) {
    REQUIRE(e.diagnostics().size() == 2);
    CHECK(e.diagnostics()[0].message == "expected a time with its unit, such as 10us or 1.5ms, got 'fast'");
    CHECK(e.diagnostics()[1].message == "0 is out of range: expected from 1 to 1000000");
  }
}

TEST_CASE("an unknown cluster name is told with the closest one", "[platforms][error]") {
  CHECK_THROWS_WITH(find_cluster("g4dn.12xlarg"),
                    "error: unknown cluster 'g4dn.12xlarg'\n  help: did you mean 'g4dn.12xlarge'?");
}
