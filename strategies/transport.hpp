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
  std::string overlap_between_nodes = "1";
  std::string rpc_per_message = "0s";
  std::string rpc_rate = "none";
};

/// gRPC under TensorFlow 1 and 2, between hosts. Sources: strategies/README.md, "What a transport hides".
TransportDefaults tensorflow_grpc();

/// servers_overlap_in_node, servers_overlap_between_nodes, rpc_per_message and rpc_rate.
std::vector<OptionInfo> server_transport_options(const TransportDefaults& defaults = {});
/// collectives_overlap_in_node and collectives_overlap_between_nodes.
std::vector<OptionInfo> collective_transport_options();

/// Sets what these options say, for those that the builder has.
void apply_transport_options(const Options& options, GraphStrategy& graph);

}  // namespace simsync
