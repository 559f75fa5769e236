// Why a step takes as long as it does: critical path, busiest links, limits of collectives.
#pragma once
#include <string>
#include <vector>

#include "sim/engine/critical_path.hpp"
#include "sim/engine/what_if.hpp"

namespace simsync {

/// Time of the critical path under one heading.
struct PathShare {
  std::string resource;
  std::string what;  ///< empty where all ops are taken together
  Seconds time;
  Seconds shared;  ///< see PathPiece
};

/// Links that do the same for different nodes: all `nic-out`.
struct LinkLoad {
  std::string role;
  std::string busiest;
  int count = 0;             ///< links of the role that carried anything
  double bytes = 0.0;        ///< over the busiest one in the step
  double utilization = 0.0;  ///< of the busiest one
  double mean_utilization = 0.0;
};

/// What limits a collective of the step.
struct CollectiveShare {
  std::string what;
  std::string algorithm;
  double bytes = 0.0;
  Seconds time;        ///< launch to end
  std::string limit;   ///< the resource that takes the largest part of it
  Seconds limit_time;  ///< that part
};

struct Explanation {
  int iteration = 0;  ///< the one explained, an index into Prediction::steps: the last, or the nearest to their mean
  Seconds step;       ///< its length, to which the path adds up
  bool steady = true;
  bool vary = false;  ///< Plan::steps_vary
  std::vector<PathPiece> path;
  std::vector<PathShare> resources;          ///< longest first; add up to `step`
  std::vector<PathShare> ops;                ///< the same time by op and resource, longest first
  std::vector<LinkLoad> links;               ///< busiest first
  std::vector<CollectiveShare> collectives;  ///< of the step, longest first
};

/// The step that stands for all: the last one, or of those that vary the one nearest to their mean.
int typical_iteration(const Plan& plan, const Prediction& recorded);

/// @throws std::logic_error unless `recorded` is the replay of the problem's plan with ReplayOptions::record.
Explanation explain(const Problem& problem, const Prediction& recorded);

/// A table of at most some forty lines.
std::string to_text(const Explanation& explanation);
/// One line: the answer beside the step that was predicted.
std::string to_text(const WhatIf& answer, Seconds predicted);

}  // namespace simsync
