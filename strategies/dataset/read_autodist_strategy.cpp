// AutoDist's messages as strategies of simsync.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "strategies/dataset/autodist_strategy.hpp"
#include "strategies/partition.hpp"
#include "strategies/transport.hpp"

namespace simsync {
namespace {

std::string without_output(const std::string& name) {
  const std::size_t colon = name.rfind(':');
  const bool is_output = colon != std::string::npos && colon + 1 < name.size() &&
                         name.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  return is_output ? name.substr(0, colon) : name;
}

class Reader {
public:
  explicit Reader(const MessageTarget& target) : target_(target) {
    for (VariableId id = 0; id < target.model.variables().size(); ++id) known_[target.model.variable(id).name] = id;
  }

  Strategy read(const StrategyMessage& message) {
    Strategy out;
    out.name = message.id.empty() ? "imported" : message.id;
    out.graph.workers = static_cast<int>(message.replicas.size());
    apply_tensorflow_servers(out.graph);
    check_replicas(message);
    for (const NodeMessage& node : message.nodes) out.variables.push_back(entry_of(node));
    out.graph.serial_collectives = !has_ring_;
    std::sort(out.variables.begin(), out.variables.end(),
              [](const VariableStrategy& a, const VariableStrategy& b) { return a.variable < b.variable; });
    check_complete(out);
    return out;
  }

private:
  [[noreturn]] void refuse(const std::string& message, const std::string& help = {}) const {
    throw InputError(Diagnostic{
        .origin = {target_.file, 0, 0}, .message = message, .key = {}, .source_line = {}, .note = {}, .help = help});
  }

  /// `address:GPU:1`.
  [[nodiscard]] Place place_of(const std::string& device) const {
    const std::size_t last = device.rfind(':');
    const std::size_t before = last == std::string::npos || last == 0 ? last : device.rfind(':', last - 1);
    const auto index = before == std::string::npos ? std::nullopt : parse_integer(device.substr(last + 1));
    const std::string kind = index ? device.substr(before + 1, last - before - 1) : "";
    if (kind != "CPU" && kind != "GPU")
      refuse(fmt::format("device '{}': expected an address, CPU or GPU, and its number, joined by ':'", device));
    const std::string address = device.substr(0, before);
    const auto found = std::find_if(target_.nodes.begin(), target_.nodes.end(),
                                    [&](const ResourceNode& node) { return node.address == address; });
    if (found == target_.nodes.end())
      refuse(fmt::format("device '{}': the resource specification has no node '{}'", device, address));
    return {static_cast<int>(found - target_.nodes.begin()), kind == "CPU" ? -1 : static_cast<int>(*index)};
  }

  void check_replicas(const StrategyMessage& message) const {
    const auto expected = target_.cluster.workers(static_cast<int>(message.replicas.size()));
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (place_of(message.replicas[i]) != expected[i])
        refuse(fmt::format("replica {} is on {}, and cluster '{}' has its worker {} on {}", i, message.replicas[i],
                           target_.cluster.name, i, name_of(expected[i])),
               "the cluster needs as many GPUs in each node as the resource specification");
  }

  [[nodiscard]] VariableId variable_of(const std::string& name) const {
    for (const std::string& text : {name, without_output(name)})
      if (const auto found = known_.find(text); found != known_.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [known, id] : known_) names.push_back(known);
    refuse(fmt::format("variable '{}' is none of model '{}'", name, target_.model.name()),
           did_you_mean(without_output(name), names));
  }

  VariableStrategy entry_of(const NodeMessage& node) {
    VariableStrategy out;
    out.variable = variable_of(node.variable);
    const Variable& variable = target_.model.variable(out.variable);
    if (node.partitioner.empty()) {
      out.shards.push_back({.elements = variable.elements(), .synchronizer = synchronizer_of(node, node, out)});
      return out;
    }
    out.partition_axis = axis_of(node, variable);
    const auto sizes = split_axis(variable, out.partition_axis, static_cast<std::int64_t>(node.parts.size()));
    for (std::size_t k = 0; k < sizes.size(); ++k)
      out.shards.push_back({.elements = sizes[k], .synchronizer = synchronizer_of(node.parts[k], node, out)});
    return out;
  }

  /// The axis that a partitioner such as `1,4` cuts, into as many shards as the node has.
  [[nodiscard]] int axis_of(const NodeMessage& node, const Variable& variable) const {
    std::vector<long long> counts;
    std::istringstream items(node.partitioner);
    for (std::string item; std::getline(items, item, ',');) {
      item.erase(0, item.find_first_not_of(' '));
      counts.push_back(parse_integer(item).value_or(0));
    }
    const auto is_cut = [](long long count) { return count > 1; };
    const auto axis = std::find_if(counts.begin(), counts.end(), is_cut);
    const auto at = static_cast<std::size_t>(axis - counts.begin());
    const bool fits = counts.size() == variable.shape.size() &&
                      std::count_if(counts.begin(), counts.end(), is_cut) == 1 && *axis <= variable.shape[at] &&
                      static_cast<std::size_t>(*axis) == node.parts.size();
    if (!fits)
      refuse(fmt::format("variable '{}': the partitioner '{}' with {} shards does not fit its shape [{}]",
                         node.variable, node.partitioner, node.parts.size(), fmt::join(variable.shape, ", ")));
    return static_cast<int>(at);
  }

  Synchronizer synchronizer_of(const NodeMessage& node, const NodeMessage& whole, VariableStrategy& entry) {
    if (const auto* servers = std::get_if<ServerMessage>(&node.synchronizer))
      return PsSynchronizer{.server = place_of(servers->destination),
                            .local_replication = servers->local_replication,
                            .sync = servers->sync,
                            .staleness = servers->staleness};
    const auto* all_reduce = std::get_if<AllReduceMessage>(&node.synchronizer);
    if (all_reduce == nullptr) refuse(fmt::format("variable '{}' has no synchronizer", whole.variable));
    if (all_reduce->compressor == MessageCompressor::PowerSgd)
      entry.compressor = Compressor::PowerSgd;
    else if (all_reduce->compressor != MessageCompressor::None)
      entry.compressor = Compressor::Cast32;
    const bool is_ring = all_reduce->spec == MessageSpec::Ring;
    has_ring_ = has_ring_ || is_ring;
    return AllReduceSynchronizer{.algorithm = is_ring ? CollectiveAlgorithm::Ring : CollectiveAlgorithm::Auto,
                                 .group = all_reduce->group};
  }

  void check_complete(const Strategy& strategy) const {
    for (std::size_t i = 0; i < target_.model.variables().size(); ++i) {
      const bool is_there = i < strategy.variables.size() && strategy.variables[i].variable == i;
      if (is_there) continue;
      const bool is_twice = i > 0 && i < strategy.variables.size() && strategy.variables[i].variable == i - 1;
      refuse(is_twice ? fmt::format("variable '{}' is there twice", target_.model.variable(i - 1).name)
                      : fmt::format("no entry for variable '{}' of model '{}'", target_.model.variable(i).name,
                                    target_.model.name()));
    }
    if (strategy.variables.size() > target_.model.variables().size())
      refuse(fmt::format("variable '{}' is there twice", target_.model.variables().back().name));
  }

  const MessageTarget& target_;
  std::map<std::string, VariableId> known_;
  bool has_ring_ = false;
};

}  // namespace

Strategy from_message(const StrategyMessage& message, const MessageTarget& target) {
  return Reader(target).read(message);
}

}  // namespace simsync
