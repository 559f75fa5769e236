#include "strategies/dataset/message.hpp"
#include "strategy.pb.h"

namespace simsync {
namespace {

void write(const NodeMessage& node, archive::Node& to) {
  to.set_variable(node.variable);
  to.set_partitioner(node.partitioner);
  if (const auto* servers = std::get_if<ServerMessage>(&node.synchronizer)) {
    archive::Servers& out = *to.mutable_servers();
    out.set_destination(servers->destination);
    out.set_local_replication(servers->local_replication);
    out.set_sync(servers->sync);
    out.set_staleness(servers->staleness);
  } else if (const auto* all_reduce = std::get_if<AllReduceMessage>(&node.synchronizer)) {
    archive::AllReduce& out = *to.mutable_all_reduce();
    out.set_spec(static_cast<int>(all_reduce->spec));
    out.set_compressor(static_cast<int>(all_reduce->compressor));
    out.set_group(all_reduce->group);
  }
  for (const NodeMessage& part : node.parts) write(part, *to.add_parts());
}

bool read(const archive::Node& from, NodeMessage& to) {
  to.variable = from.variable();
  to.partitioner = from.partitioner();
  if (from.has_servers()) {
    const archive::Servers& servers = from.servers();
    to.synchronizer = ServerMessage{.destination = servers.destination(),
                                    .local_replication = servers.local_replication(),
                                    .sync = servers.sync(),
                                    .staleness = servers.staleness()};
  } else if (from.has_all_reduce()) {
    const archive::AllReduce& all_reduce = from.all_reduce();
    if (all_reduce.spec() < 0 || all_reduce.spec() > static_cast<int>(MessageSpec::Ring)) return false;
    if (all_reduce.compressor() < 0 || all_reduce.compressor() > static_cast<int>(MessageCompressor::PowerSgd))
      return false;
    to.synchronizer = AllReduceMessage{.spec = static_cast<MessageSpec>(all_reduce.spec()),
                                       .compressor = static_cast<MessageCompressor>(all_reduce.compressor()),
                                       .group = all_reduce.group()};
  }
  for (const archive::Node& part : from.parts())
    if (!read(part, to.parts.emplace_back())) return false;
  return true;
}

}  // namespace

void simsync_message_to_bytes(const StrategyMessage& message, std::string& out) {
  archive::Strategy to;
  to.set_id(message.id);
  to.set_path(message.path);
  for (const NodeMessage& node : message.nodes) write(node, *to.add_nodes());
  for (const std::string& replica : message.replicas) to.mutable_graph()->add_replicas(replica);
  to.SerializeToString(&out);
}

bool simsync_parse_message(const std::string& bytes, StrategyMessage& out) {
  archive::Strategy from;
  if (!from.ParseFromString(bytes)) return false;
  out.id = from.id();
  out.path = from.path();
  out.replicas.assign(from.graph().replicas().begin(), from.graph().replicas().end());
  for (const archive::Node& node : from.nodes())
    if (!read(node, out.nodes.emplace_back())) return false;
  // Any text is a message of unknown fields.
  return !out.nodes.empty() && !out.replicas.empty();
}

}  // namespace simsync
