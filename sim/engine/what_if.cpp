#include "sim/engine/what_if.hpp"

#include <algorithm>
#include <vector>

#include "sim/engine/critical_path.hpp"

namespace simsync {
namespace {

/// What of a link class is free.
struct Freed {
  bool bandwidth = true;
  bool cap = true;
};

/// The class that `name` stands for, with bandwidth to spare, or without a cap of a connection; under a name of its
/// own, because the same class may also serve where it is to stay as it is.
void free_class(Cluster& cluster, std::string& name, Freed freed) {
  if (name.empty()) return;
  LinkClass link = cluster.links.at(name);
  link.name = name + " (free)";
  if (freed.bandwidth) link.bandwidth *= kFree;
  if (freed.cap) link.per_flow_cap.reset();
  name = link.name;
  cluster.links[link.name] = std::move(link);
}

Problem with_free_nics(const Problem& problem, Freed freed) {
  Problem out = problem;
  for (NodeGroup& group : out.cluster.groups) free_class(out.cluster, group.nic_link, freed);
  if (freed.bandwidth) out.cluster.network.pair_bandwidth.reset();
  compile_again(out);
  return out;
}

bool caps_connections(const Cluster& cluster) {
  return std::any_of(cluster.groups.begin(), cluster.groups.end(), [&](const NodeGroup& group) {
    return !group.nic_link.empty() && cluster.links.at(group.nic_link).per_flow_cap;
  });
}

struct Question {
  const char* what;
  Problem (*without)(const Problem&);
};

std::vector<Question> questions(const Problem& problem) {
  std::vector<Question> out{{kLatency, with_free_latency}, {kFreeLinks, with_free_links_between_nodes}};
  if (caps_connections(problem.cluster)) {
    out.push_back({kFreeConnections, with_free_connections});
    out.push_back({kFreeNetwork, with_free_network});
  }
  out.insert(out.end(), {{"bandwidth inside nodes", with_free_node_links},
                         {"host CPUs", with_free_host_cpu},
                         {"compute", with_free_compute}});
  return out;
}

}  // namespace

Problem with_free_compute(const Problem& problem) {
  Problem out = problem;
  for (LayerTime& layer : out.profile.layers) layer = {};
  out.profile.steps.clear();
  out.profile.variation = 0.0;
  out.profile.update = Seconds{0.0};
  for (auto& [name, device] : out.cluster.devices) {
    device.memory_bandwidth *= kFree;
    device.launch = Seconds{0.0};
    for (auto& [precision, peak] : device.peak) peak *= kFree;
  }
  compile_again(out);
  return out;
}

Problem with_free_latency(const Problem& problem) {
  Problem out = problem;
  for (auto& [name, link] : out.cluster.links) {
    link.latency = Seconds{0.0};
    link.message_cost = Seconds{0.0};
    link.half_size = {};
    link.service.queueing_delay = link.service.passing_delay = Seconds{0.0};
    link.service.turn = {};
  }
  for (NodeGroup& group : out.cluster.groups) group.cpu.send_ahead = Seconds{0.0};
  out.cluster.network.switch_latency = Seconds{0.0};
  out.cluster.collective.launch = Seconds{0.0};
  out.cluster.collective.per_step_intra = Seconds{0.0};
  out.cluster.collective.per_step_inter = Seconds{0.0};
  for (auto& [name, protocol] : out.cluster.collective.protocols)
    protocol.per_step_intra = protocol.per_step_inter = Seconds{0.0};
  out.strategy.graph.per_operation_cost = Seconds{0.0};
  compile_again(out);
  return out;
}

Problem with_free_links_between_nodes(const Problem& problem) {
  return with_free_nics(problem, {.bandwidth = true, .cap = false});
}

Problem with_free_connections(const Problem& problem) {
  return with_free_nics(problem, {.bandwidth = false, .cap = true});
}

Problem with_free_network(const Problem& problem) {
  return with_free_nics(problem, {});
}

Problem with_free_node_links(const Problem& problem) {
  Problem out = problem;
  for (NodeGroup& group : out.cluster.groups)
    for (std::string NodeFabric::*name : {&NodeFabric::gpu_link, &NodeFabric::pcie_link, &NodeFabric::switch_link,
                                          &NodeFabric::socket_link, &NodeFabric::memory_link})
      free_class(out.cluster, group.fabric.*name, {});
  compile_again(out);
  return out;
}

Problem with_free_host_cpu(const Problem& problem) {
  Problem out = problem;
  for (NodeGroup& group : out.cluster.groups) {
    group.cpu.per_tensor = group.cpu.dispatch_latency = Seconds{0.0};
    group.cpu.update_rate *= kFree;
    group.cpu.memory_bandwidth.reset();
    group.cpu.sum_rate *= kFree;
  }
  compile_again(out);
  return out;
}

std::size_t what_if_count(const Problem& problem) {
  return questions(problem).size();
}

std::int64_t what_if_budget(const Prediction& predicted) {
  constexpr std::int64_t kSomeSeconds = 200'000'000;  // two to six, in units of FlowNetwork::work
  return std::max(kSomeSeconds, predicted.work + predicted.work / 2);
}

void what_if(const Problem& problem, const Prediction& predicted, const std::function<void(const WhatIf&)>& answer) {
  for (const Question& question : questions(problem)) {
    const Problem changed = question.without(problem);
    ReplayOptions options = changed.options;
    options.record = false;
    options.most_work = what_if_budget(predicted);
    options.steps_per_worker = predicted.steps_per_worker;
    const Prediction replayed = replay(changed.plan, changed.cluster, options);
    answer({question.what, replayed.finished ? std::optional(replayed.step) : std::nullopt});
  }
}

}  // namespace simsync
