// Rings in a mesh of GPUs, found from its links.
#include "platforms/gpu_mesh.hpp"

#include <numeric>
#include <stdexcept>
#include <vector>

#include "platforms/topology.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"

using namespace simsync;

namespace {

/// GPUs 0 to 3 among each other, 4 to 7 likewise, and each with its counterpart in the other half: six links a GPU.
const char* const kDgx1v = "0-1 0-2 0-3x2 0-4x2 1-2x2 1-3 1-5x2 2-3x2 2-6 3-7 4-5 4-6 4-7x2 5-6x2 5-7 6-7x2";

std::vector<int> first(int gpus) {
  std::vector<int> out(static_cast<std::size_t>(gpus));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

/// A node of eight GPUs with ports of 150 GB/s in six links, or without a mesh.
Cluster node_of_eight(const std::string& mesh) {
  Cluster cluster = test::lab_cluster(1, 8, {.port = 150e9});
  cluster.groups.front().fabric.gpu_mesh = mesh;
  return cluster;
}

std::string refusal(const std::string& text) {
  try {
    GpuMesh mesh(text);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("rings of a mesh share no link", "[platforms][mesh]") {
  const GpuMesh mesh(kDgx1v);
  CHECK(mesh.links(0, 3) == 2);
  CHECK(mesh.links(3, 0) == 2);
  CHECK(mesh.links(0, 5) == 0);
  CHECK(mesh.most_links() == 6);
  // Two GPUs: a ring is one link, there and back.
  CHECK(mesh.rings({0, 1}) == 1);
  CHECK(mesh.rings({0, 3}) == 2);
  CHECK(mesh.rings({0, 5}) == 0);
  // 0, 1, 2 have links 0-1, 0-2 and twice 1-2: one triangle, in both directions.
  CHECK(mesh.rings({0, 1, 2}) == 2);
  // 0 to 3: 0-1-2-3 and 0-2-1-3 take 0-1, 1-2, 2-3, 3-0 and 0-2, 2-1, 1-3, 3-0. Left is 2-3, no ring.
  CHECK(mesh.rings(first(4)) == 4);
  // 4 reaches none of 1, 2 and 3: no way comes in and goes out again.
  CHECK(mesh.rings(first(5)) == 0);
  // All 8: 24 links in ways of 8 links are 3 at most, one for each two of a GPU's 6 links: 6 rings.
  CHECK(mesh.rings(first(8)) == 6);
  // One link between any two: of 3 GPUs one triangle; of 4 GPUs one way of 4 links, which leaves the two diagonals.
  CHECK(GpuMesh("0-1 0-2 1-2").rings(first(3)) == 2);
  CHECK(GpuMesh("0-1 0-2 0-3 1-2 1-3 2-3").rings(first(4)) == 2);
}

TEST_CASE("rings of a mesh are found whatever the order of the GPUs", "[platforms][mesh]") {
  // The other half of the machine is the mirror image of the first.
  const GpuMesh mesh(kDgx1v);
  CHECK(mesh.rings({4, 5, 6, 7}) == mesh.rings({0, 1, 2, 3}));
  CHECK(mesh.rings({3, 1, 0, 2}) == mesh.rings({0, 1, 2, 3}));
}

TEST_CASE("a mesh that cannot be read is refused with what is wrong", "[platforms][mesh]") {
  CHECK(refusal("0-1 0:2") == "'0:2' is no pair of GPUs: expected such as 0-1 or 0-3x2");
  CHECK(refusal("0-1x") == "'0-1x' is no pair of GPUs: expected such as 0-1 or 0-3x2");
  CHECK(refusal("0-1x0") == "'0-1x0' is no pair of GPUs: expected such as 0-1 or 0-3x2");
  CHECK(refusal("2-2") == "'2-2' is no pair of GPUs: expected such as 0-1 or 0-3x2");
  CHECK(refusal("0-8") == "'0-8': GPUs of a mesh are 0 to 7");
  CHECK(refusal("0-1 1-0x2") == "'1-0x2' is named twice");
}

TEST_CASE("in a mesh a group runs at the rate of its rings, two GPUs at that of their links", "[platforms][topology]") {
  const Topology topology(node_of_eight(kDgx1v), 1);
  const auto ring = [&](const std::vector<int>& gpus) {
    return topology.ring_path({0, gpus[0]}, {0, gpus[1]}, gpus).stream_cap.value();
  };
  // A port's 150 GB/s are six links of 25.
  CHECK_THAT(ring({0, 1}), WithinRel(25e9, 1e-12));
  CHECK_THAT(ring({0, 3}), WithinRel(50e9, 1e-12));
  CHECK_THAT(ring(first(4)), WithinRel(100e9, 1e-12));
  CHECK_THAT(ring(first(8)), WithinRel(150e9, 1e-12));
  CHECK_THAT(topology.path({0, 0}, {0, 4}).stream_cap.value(), WithinRel(50e9, 1e-12));
  // Where no link or no ring is, traffic takes PCIe.
  const auto names = [&](const Path& path) {
    std::vector<std::string> out;
    for (const LinkId id : path.links) out.push_back(topology.links()[static_cast<std::size_t>(id)].name);
    return out;
  };
  CHECK(names(topology.path({0, 0}, {0, 5})) == std::vector<std::string>{"node0/gpu0/pcie-out", "node0/gpu5/pcie-in"});
  CHECK(names(topology.ring_path({0, 0}, {0, 1}, first(5))) ==
        std::vector<std::string>{"node0/gpu0/pcie-out", "node0/gpu1/pcie-in"});
  const Topology switched(node_of_eight(""), 1);
  CHECK(switched.ring_path({0, 0}, {0, 5}, {0, 5}).stream_cap == switched.path({0, 0}, {0, 5}).stream_cap);
}

TEST_CASE("a mesh has as many links as a GPU has, and its search ends", "[platforms]") {
  CHECK(refusal("0-1x19") == "'0-1x19': a GPU has at most 18 links");
  CHECK(refusal("0-1x18 0-2") == "a GPU of the mesh has 19 links, more than 18");
  // Irregular, with more sets of cycles than anybody can try. GPU 4 has eight links: four cycles at most, eight rings.
  const GpuMesh mesh(
      "0-1x4 0-2x3 0-3x3 0-5x4 0-7x3 1-4x1 1-5x2 1-6x3 1-7x4 2-3x3 2-4x2 2-5x2 2-6x4 2-7x1 3-5x1 3-6x4 3-7x2 4-5x1 "
      "4-7x4 5-6x2 5-7x3 6-7x1");
  CHECK(mesh.rings(first(8)) > 0);
  CHECK(mesh.rings(first(8)) <= 8);
}
