// What a collective takes when nothing else is under way, with every link that its hops share.
#pragma once
#include <compare>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/plan/collectives.hpp"
#include "sim/plan/plan.hpp"

namespace simsync {

/// Runs the hops of a schedule as flows that share links max-min fairly, each after its start-up time and its earlier
/// stage: the `fluid` of a replay, without the simulator. Unlike collective_time it knows which hops of an algorithm
/// meet on a PCIe uplink, a socket link or host memory. Where nodes are interchangeable one of them is run.
class CollectiveAlone {
public:
  /// `ranks` lie node by node. Keeps copies.
  CollectiveAlone(Cluster cluster, const std::vector<Place>& ranks);
  ~CollectiveAlone();

  [[nodiscard]] const std::vector<Place>& ranks() const { return plan_.ranks; }

  /// What the hops of a collective take in a replay, from the first start-up to the last end: flows of whole bytes, and
  /// all times `ratio` (Collective::ratio). 0 with one rank. Remembers what it was asked. Cost: some milliseconds for
  /// 128 ranks.
  [[nodiscard]] Seconds on_links(const CollectiveKind& kind, const std::string& protocol, double bytes, double ratio);
  /// What replaying collective_plan takes, less collective_setup; a measured ratio (CollectiveCosts::measured) counts.
  [[nodiscard]] Seconds time(CollectivePrimitive primitive, CollectiveAlgorithm algorithm, const std::string& protocol,
                             double bytes);

private:
  struct Network;  ///< the nodes that are run, their links, schedules over them
  struct Question {
    CollectiveKind kind;
    std::string protocol;
    double bytes = 0.0;
    double ratio = 1.0;
    bool whole_bytes = false;  ///< hops send no fractions of bytes
    friend auto operator<=>(const Question&, const Question&) = default;
  };

  [[nodiscard]] Network& network_for(const CollectiveKind& kind);
  [[nodiscard]] double known(const Question& question);
  [[nodiscard]] double run(const Question& question);

  Cluster cluster_;
  Plan plan_;
  std::unique_ptr<Network> whole_;
  std::unique_ptr<Network> folded_;
  std::map<Question, double> known_;
};

}  // namespace simsync
