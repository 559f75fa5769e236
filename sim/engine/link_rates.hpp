// How many bytes each link carried when, step by step. Private to sim/engine.
#pragma once
#include <deque>
#include <map>
#include <vector>

#include "sim/timeline/instance_filter.hpp"
#include "sim/timeline/prediction.hpp"

namespace simsync::detail {

/// Counts bytes into intervals, so that its memory does not grow with the number of flows.
class LinkRates {
public:
  /// Counts on the links of nodes that `filter` keeps. `steps`: keeps as many of the last; 0: all.
  LinkRates(int steps, InstanceFilter filter);

  /// Bytes that passed `links` at an even rate from `begin` to `end`.
  void add(const std::vector<int>& links, double bytes, Seconds begin, Seconds end);
  void step_ends(Seconds now);
  /// Of all steps that have ended and are kept. `links` by their numbers.
  [[nodiscard]] std::vector<LinkRate> take(const std::vector<Link>& links) const;

private:
  struct Step {
    double begin = 0.0;
    double end = -1.0;  ///< -1: not yet
    double width = 0.0;
    std::map<int, std::vector<double>> bytes;  ///< by link
  };
  /// Bytes that pass links at an even rate.
  struct Stretch {
    double begin = 0.0;
    double end = 0.0;
    double rate = 0.0;
  };
  void add_to(Step& step, const std::vector<int>& links, const Stretch& what) const;
  static void widen(Step& step);  ///< intervals twice as long

  std::size_t kept_;
  std::size_t intervals_;
  InstanceFilter filter_;
  std::deque<Step> steps_;
};

}  // namespace simsync::detail
