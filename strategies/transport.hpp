// What a framework's transport hides and costs, as options that builders share. The numbers are habits of the
// framework, apart from those of links (platforms) and of server processors.
#pragma once
#include <string>
#include <vector>

#include "strategies/graph_strategy.hpp"
#include "strategies/options.hpp"

namespace simsync {

/// Defaults of one transport, as a user would write them.
struct TransportDefaults {
  std::string overlap_in_node = "1";
  std::string overlap_between_nodes = "1";
  std::string parallel_host_ops = "false";
};

/// TensorFlow's servers hide nothing, in a node and between nodes; Caffe's (Poseidon) hide nothing between nodes.
/// Evidence: validate/README.md, "What a transport hides".
TransportDefaults tensorflow_transport();
TransportDefaults caffe_transport();

/// servers_overlap_in_node, servers_overlap_between_nodes, parallel_host_ops, rpc_per_message and rpc_rate.
std::vector<OptionInfo> server_transport_options(const TransportDefaults& defaults = {});
/// collectives_overlap_in_node and collectives_overlap_between_nodes.
std::vector<OptionInfo> collective_transport_options();

/// Sets what these options say, for those that the builder has.
void apply_transport_options(const Options& options, GraphStrategy& graph);
/// What TensorFlow's servers do by default: variables are read when a step starts.
void apply_tensorflow_servers(GraphStrategy& graph);

}  // namespace simsync
