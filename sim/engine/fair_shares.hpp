// Max-min fair rates of flows that share links, kept up to date as flows come and go. Private to sim/engine.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace simsync::detail {

/// Flows along one path have one rate. Rates are max-min fair: every flow is held up, by its cap or by a link that is
/// full and on which no flow is faster.
///
/// A path's bottleneck is its cap or such a full link: that holds it up. share() is incremental. It first solves anew
/// for the paths whose bottleneck is a changed link, with the rates of all others as they are. Where that leaves
/// another path without a bottleneck, or faster than a full link's share, it adds that path and solves again, until no
/// such path is left. The others keep their rates. Cost: O(rounds x paths across the links concerned).
class FairShares {
public:
  static constexpr double kUnlimited = std::numeric_limits<double>::infinity();

  void clear();
  /// Numbered from zero. `bandwidth` > 0.
  int add_link(double bandwidth);
  void set_bandwidth(int link, double bandwidth);
  /// Numbered from zero. A link that is named k times carries k times the rate of the path's flows.
  int add_path(const std::vector<int>& links, double cap);

  /// So many flows more along a path (or less).
  void add_flows(int path, int change);
  [[nodiscard]] int flows(int path) const { return paths_[static_cast<std::size_t>(path)].flows; }
  /// Of each flow of a path, as of the last share().
  [[nodiscard]] double rate(int path) const { return paths_[static_cast<std::size_t>(path)].rate; }
  /// The paths across a link that have flows, in no certain order.
  [[nodiscard]] const std::vector<int>& paths_across(int link) const {
    return links_[static_cast<std::size_t>(link)].paths;
  }

  /// Shares the links anew. Returns the paths whose rate has changed, until the next call.
  const std::vector<int>& share();

private:
  static constexpr int kNobody = -2;  ///< Path::held_up_by: no rate yet
  static constexpr int kCap = -1;
  static constexpr double kNone = -1.0;  ///< no rate

  struct Crossing {
    int link = 0;
    std::uint32_t slot = 0;  ///< in Link::paths
    double weight = 1.0;     ///< times that the path crosses it
  };
  struct Path {
    int flows = 0;
    int held_up_by = kNobody;  ///< a link, or kCap
    double rate = 0.0;
    double cap = kUnlimited;
    // While sharing:
    bool taken_in = false;
    bool is_shared = false;  ///< its next rate is known
    int next_held_up_by = kNobody;
    double next_rate = 0.0;
    std::uint32_t first_crossing = 0;  ///< in crossings_
    std::uint32_t crossing_count = 0;
  };
  struct Link {
    double bandwidth = 0.0;
    double load = 0.0;       ///< of all flows across it
    int holds_up = 0;        ///< paths
    double level = 0.0;      ///< their rate, where there are any
    int roundings = 0;       ///< since `load` was summed anew
    std::vector<int> paths;  ///< with flows
    bool has_changed = false;
    // While sharing:
    bool is_met = false;
    double given_up = 0.0;      ///< load of the paths that are taken in, as it was
    int held_up_taken = 0;      ///< of `holds_up`, those that are taken in
    double left = 0.0;          ///< that is not given to anybody
    double takers = 0.0;        ///< flows, by weight, whose next rate is not known
    double fastest = 0.0;       ///< next rate of those taken in
    double next_level = kNone;  ///< next rate of those taken in that it holds up
  };
  struct Share {
    double rate = 0.0;
    int link = 0;
    friend bool operator>(const Share& a, const Share& b) {
      return a.rate != b.rate ? a.rate > b.rate : a.link > b.link;
    }
  };

  [[nodiscard]] Link& link_at(int link) { return links_[static_cast<std::size_t>(link)]; }
  [[nodiscard]] Path& path_at(int path) { return paths_[static_cast<std::size_t>(path)]; }
  [[nodiscard]] std::span<Crossing> crossings_of(const Path& path) {
    return std::span(crossings_).subspan(path.first_crossing, path.crossing_count);
  }
  void note_change(int link);
  void list(int path);
  void unlist(int path);
  void sum_again(Link& link);
  void meet(int link);
  void take_in(int path);
  void fill();
  void prepare_fill();
  [[nodiscard]] std::optional<Share> least_share();
  void give(int path, double rate, int held_up_by);
  bool take_in_more();
  bool take_in_across(int link);
  void commit();

  std::vector<Link> links_;
  std::vector<Path> paths_;
  std::vector<Crossing> crossings_;  ///< path after path
  std::vector<int> changed_;         ///< links
  std::vector<int> met_;             ///< links of the paths that are taken in, and changed ones
  std::vector<int> taken_in_;        ///< paths
  std::vector<int> capped_;          ///< of these, with a cap, the lowest first
  std::vector<Share> shares_;        ///< of links with takers, the least first
  std::size_t next_share_ = 0;       ///< the first of them that counts
  std::vector<Share> raised_;        ///< a heap of those that have grown since
  std::vector<int> with_new_rate_;
};

}  // namespace simsync::detail
