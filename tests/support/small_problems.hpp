// Models and clusters of a few lines, built in memory.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "models/model.hpp"
#include "platforms/cluster.hpp"
#include "strategies/builders.hpp"

namespace simsync::test {

/// A layer with one variable of `shape`, behind the last layer.
inline VariableId add_tensor(Model& model, const std::string& name, std::vector<std::int64_t> shape,
                             LayerKind kind = LayerKind::Dense, bool sparse = false) {
  Layer layer;
  layer.name = name;
  layer.kind = kind;
  layer.dense_rows = kind == LayerKind::Dense ? 1.0 : 0.0;
  const std::size_t before = model.layer_count();
  const LayerId id = model.add_layer(layer, before == 0 ? std::vector<LayerId>{} : std::vector<LayerId>{before - 1});
  Variable variable;
  variable.name = name + "/weight";
  variable.shape = std::move(shape);
  variable.layer = id;
  variable.sparse = sparse;
  variable.lookups_per_sample = sparse ? 1.0 : 0.0;
  return model.add_variable(std::move(variable));
}

/// A chain of dense layers with the given shapes, named a, b, c, ...
inline Model chain(const std::vector<std::vector<std::int64_t>>& shapes) {
  Model model("chain", 32, "image");
  char name = 'a';
  for (const auto& shape : shapes) add_tensor(model, std::string(1, name++), shape);
  return model;
}

/// `nodes` machines with `gpus` GPUs each, then `cpu_nodes` machines without.
inline Cluster make_cluster(int nodes, int gpus, int cpu_nodes = 0) {
  Cluster cluster;
  cluster.name = "lab";
  DeviceClass device;
  device.name = "GPU";
  device.peak["fp32"] = FlopsPerSecond{1e12};
  cluster.devices["GPU"] = device;
  LinkClass ethernet;
  ethernet.name = "ethernet";
  ethernet.bandwidth = BytesPerSecond{1.25e9};
  cluster.links["ethernet"] = ethernet;
  NodeGroup group;
  group.name = "gpu";
  group.count = nodes;
  group.device = "GPU";
  group.gpus = gpus;
  group.nic_link = "ethernet";
  cluster.groups.push_back(group);
  if (cpu_nodes == 0) return cluster;
  NodeGroup servers;
  servers.name = "cpu";
  servers.count = cpu_nodes;
  servers.nic_link = "ethernet";
  cluster.groups.push_back(servers);
  return cluster;
}

inline Place host(int node) {
  return {node, -1};
}

inline BuildRequest request_for(const Model& model, const Cluster& cluster, int workers,
                                std::map<std::string, std::string> options = {}) {
  return {
      .model = model, .cluster = cluster, .workers = workers, .batch = 32, .options = std::move(options), .seed = 1};
}

}  // namespace simsync::test
