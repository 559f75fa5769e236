// Strategies from and to AutoDist's messages.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "strategies/dataset/message.hpp"
#include "strategies/dataset/resource_spec.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

/// A strategy as AutoDist says it, or why it cannot.
struct Expressed {
  std::optional<StrategyMessage> message;
  std::string why_not;
};

/// The format has variables on servers of hosts, read when a step starts, and all-reduces in groups. Everything else
/// that a strategy says must be what TensorFlow does by default; priorities are left out, because nothing looks at
/// them then. Addresses are those of resource_spec_text.
Expressed to_message(const Strategy& strategy, const Model& model, const Cluster& cluster);

/// What a message is read for.
struct MessageTarget {
  const Model& model;
  const Cluster& cluster;
  std::vector<ResourceNode> nodes;  ///< of its resource specification; node i of them is node i of the cluster
  std::string file;                 ///< for messages
};

/// Variables are matched by name, a `:0` behind it or not; each must be there once.
/// @throws InputError for a variable that only one of both has, a partition that does not fit, a device that is not
/// among the nodes, and replicas that are not the first GPUs of the cluster.
Strategy from_message(const StrategyMessage& message, const MessageTarget& target);

}  // namespace simsync
