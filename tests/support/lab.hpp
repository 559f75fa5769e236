// Problems of round numbers whose step time can be derived on paper: nothing costs anything unless a test says so.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "models/profile.hpp"
#include "platforms/cluster.hpp"
#include "strategies/strategy.hpp"

namespace simsync::test {

inline constexpr double kNothing = 1e15;  ///< a rate at which bytes take no time

/// Links of a lab cluster: between nodes and between the GPUs of a node, full duplex, latency one way.
struct LabLinks {
  double nic = 1e9;
  double nic_latency = 0.0;
  double port = 1e9;
  double port_latency = 0.0;
};

/// `nodes` machines with `gpus` GPUs each on one switch, then `servers` machines without GPUs.
inline Cluster lab_cluster(int nodes, int gpus, const LabLinks& wires = {}, int servers = 0) {
  Cluster cluster;
  cluster.name = "lab";
  DeviceClass device;
  device.name = "GPU";
  device.memory_bandwidth = BytesPerSecond{kNothing};
  device.launch = Seconds{0.0};
  device.peak["fp32"] = FlopsPerSecond{kNothing};
  cluster.devices["GPU"] = device;
  const auto link = [&](const char* name, double rate, double latency) {
    LinkClass out;
    out.name = name;
    out.bandwidth = BytesPerSecond{rate};
    out.latency = Seconds{latency};
    cluster.links[name] = out;
  };
  link("nic", wires.nic, wires.nic_latency);
  link("port", wires.port, wires.port_latency);
  link("pcie", 1e13, 0.0);
  NodeGroup group;
  group.name = "gpu";
  group.count = nodes;
  group.device = "GPU";
  group.gpus = gpus;
  group.fabric.gpu_link = "port";
  group.fabric.pcie_link = "pcie";
  group.nic_link = "nic";
  group.gpu_direct = true;
  group.cpu = {.threads = 64,
               .per_tensor = Seconds{0.0},
               .update_rate = BytesPerSecond{kNothing},
               .sum_rate = BytesPerSecond{kNothing}};
  cluster.groups.push_back(group);
  if (servers > 0) {
    NodeGroup cpus;
    cpus.name = "cpu";
    cpus.count = servers;
    cpus.nic_link = "nic";
    cpus.cpu = group.cpu;
    cluster.groups.push_back(cpus);
  }
  cluster.collective.launch = Seconds{0.0};
  return cluster;
}

/// An embedding of 1000 rows of `columns` numbers, of which a sample looks up 3 rows.
inline Model sparse_table(std::int64_t columns, std::int64_t batch) {
  Model model("table", batch, "sample");
  Layer layer;
  layer.name = "embedding";
  layer.kind = LayerKind::Embedding;
  Variable rows;
  rows.name = "embedding/weight";
  rows.shape = {1000, columns};
  rows.layer = model.add_layer(layer, {});
  rows.sparse = true;
  rows.lookups_per_sample = 3.0;
  model.add_variable(rows);
  return model;
}

/// A layer of a lab model: one tensor (none when it has no bytes) and its times.
struct LabLayer {
  double bytes = 0.0;
  double forward = 0.0;
  double backward = 0.0;
};

/// A chain of layers with their profile, first layer first.
struct LabModel {
  Model model{"lab", 1, "sample"};
  Profile profile;

  LabModel(std::initializer_list<LabLayer> layers) : LabModel(std::vector<LabLayer>(layers)) {}
  explicit LabModel(const std::vector<LabLayer>& layers) {
    for (const LabLayer& wanted : layers) {
      const std::string name = "layer" + std::to_string(model.layer_count());
      Layer layer;
      layer.name = name;
      layer.kind = LayerKind::Dense;
      layer.dense_rows = 1.0;
      const LayerId before = model.layer_count();
      const LayerId id =
          model.add_layer(layer, before == 0 ? std::vector<LayerId>{} : std::vector<LayerId>{before - 1});
      profile.layers.push_back({Seconds{wanted.forward}, Seconds{wanted.backward}});
      if (wanted.bytes <= 0.0) continue;
      Variable variable;
      variable.name = name + "/weight";
      variable.shape = {static_cast<std::int64_t>(wanted.bytes / 4.0)};
      variable.layer = id;
      model.add_variable(std::move(variable));
    }
    profile.precision = "fp32";
  }
};

/// Every variable on one shard by `synchronizer`, nothing fused.
inline Strategy lab_strategy(const Model& model, int workers, const Synchronizer& synchronizer) {
  Strategy strategy;
  strategy.name = "lab";
  strategy.graph.workers = workers;
  strategy.graph.fusion.kind = FusionKind::None;
  for (VariableId id = 0; id < model.variables().size(); ++id) {
    VariableStrategy how;
    how.variable = id;
    how.shards = {{.elements = model.variable(id).elements(), .synchronizer = synchronizer}};
    strategy.variables.push_back(std::move(how));
  }
  return strategy;
}

inline Strategy all_reduced(const Model& model, int workers,
                            CollectiveAlgorithm algorithm = CollectiveAlgorithm::Ring) {
  return lab_strategy(model, workers, AllReduceSynchronizer{.algorithm = algorithm});
}

/// Whole variables on one server, pushed and pulled by every worker on its own.
inline Strategy on_server(const Model& model, int workers, Place server) {
  PsSynchronizer ps;
  ps.server = server;
  ps.local_aggregation = false;
  return lab_strategy(model, workers, ps);
}

}  // namespace simsync::test
