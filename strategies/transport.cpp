#include "strategies/transport.hpp"

namespace simsync {
namespace {

constexpr const char* kServersInNode = "servers_overlap_in_node";
constexpr const char* kServersBetween = "servers_overlap_between_nodes";
constexpr const char* kCollectivesInNode = "collectives_overlap_in_node";
constexpr const char* kCollectivesBetween = "collectives_overlap_between_nodes";
constexpr const char* kParallel = "parallel_host_ops";
constexpr const char* kPerMessage = "rpc_per_message";
constexpr const char* kRate = "rpc_rate";
constexpr const char* kNone = "none";

}  // namespace

Seconds RpcCosts::of(double bytes, int messages) const {
  return messages * per_message + (rate ? Seconds{bytes / rate->value()} : Seconds{0.0});
}

TransportDefaults tensorflow_transport() {
  return {.overlap_in_node = "0", .overlap_between_nodes = "0", .parallel_host_ops = "true"};
}

TransportDefaults caffe_transport() {
  return {.overlap_between_nodes = "0"};
}

std::vector<OptionInfo> server_transport_options(const TransportDefaults& defaults) {
  return {
      {kServersInNode, defaults.overlap_in_node,
       "share of the backward pass beside which gradients move to their host; 0: they wait for its end"},
      {kServersBetween, defaults.overlap_between_nodes,
       "share of the backward pass beside which gradients move between nodes; 0: they wait for its end"},
      {kParallel, defaults.parallel_host_ops,
       "true: all threads of a host share a sum or an update of a large tensor; false: one thread does it"},
      {kPerMessage, "0s", "time that a worker's host takes for each message from and to servers, one after another"},
      {kRate, kNone, "rate at which it copies their payload besides; none: copies cost nothing"}};
}

std::vector<OptionInfo> collective_transport_options() {
  return {{kCollectivesInNode, "1", "share of the backward pass beside which collectives of one node run"},
          {kCollectivesBetween, "1", "share of the backward pass beside which collectives of several nodes run"}};
}

void apply_transport_options(const Options& options, GraphStrategy& graph) {
  const auto share = [&](const char* name, double& into) {
    if (options.has(name)) into = options.number(name, 0.0, 1.0);
  };
  share(kServersInNode, graph.servers_overlap.in_node);
  share(kServersBetween, graph.servers_overlap.between_nodes);
  share(kCollectivesInNode, graph.collectives_overlap.in_node);
  share(kCollectivesBetween, graph.collectives_overlap.between_nodes);
  if (options.has(kParallel)) graph.parallel_host_ops = options.boolean(kParallel);
  if (options.has(kPerMessage)) graph.rpc.per_message = options.seconds(kPerMessage);
  if (options.has(kRate) && options.text(kRate) != kNone) graph.rpc.rate = options.bandwidth(kRate);
}

void apply_tensorflow_servers(GraphStrategy& graph) {
  const Options habits("TensorFlow's servers", server_transport_options(tensorflow_transport()), {});
  apply_transport_options(habits, graph);
  graph.pull_at_step_start = true;
  graph.shared_process = true;
}

}  // namespace simsync
