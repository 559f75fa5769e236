// Plans of transfers between ranks and one server that are not a training step.
#pragma once
#include <string>
#include <vector>

#include "sim/plan/plan.hpp"

namespace simsync {

/// Their iterations do not overlap: one begins when all of the iteration before has ended, and no message has to travel
/// to say so. Transfers and host work are those of a strategy with one stream per worker and server.
struct ServerExchange {
  std::string name;          ///< of the plan and its ops
  std::vector<Place> ranks;  ///< node by node
  Place server;              ///< none of the ranks is on its node
  int tensors = 1;
  double bytes = 0.0;  ///< of each tensor
};

/// Every rank's host pushes all tensors, until all are received and summed.
Plan push_plan(const Cluster& cluster, const ServerExchange& exchange);
/// Every rank's host reads all tensors, which arrive in order: they share one stream of their worker's connection.
Plan pull_plan(const Cluster& cluster, const ServerExchange& exchange);
/// The first rank's host reads all tensors, with `read` bytes each, one after another (Op::timed), while every other
/// rank's host pushes one more of ServerExchange::bytes.
Plan reads_plan(const Cluster& cluster, const ServerExchange& exchange, double read);
/// Every rank's device sends all tensors to the server, where nothing is done with them.
Plan message_plan(const Cluster& cluster, const ServerExchange& exchange);

}  // namespace simsync
