// Max-min fair sharing without SimGrid.
//
// Flows along one path always have the same rate. So a path counts the bytes that each of its flows has been served
// since the path was idle, and a flow ends when that count reaches what it was at its start plus the flow's bytes: a
// change of rate touches paths, not flows. When flows start or end, only the links that they are connected with (by
// flows under way) are shared again.
#include <algorithm>
#include <boost/heap/d_ary_heap.hpp>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "sim/engine/network_events.hpp"

namespace simsync {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class NativeNetwork final : public detail::NetworkEvents {
public:
  void begin(const std::vector<BytesPerSecond>& bandwidths) override;
  int add_link(BytesPerSecond bandwidth) override;
  void set_bandwidth(int link, BytesPerSecond bandwidth) override;
  int add_path(const std::vector<int>& links, BytesPerSecond cap) override;
  void visit_flows(int link, const std::function<void(int, double)>& visit) const override;
  [[nodiscard]] std::size_t flows_across(int link) const override { return link_at(link).flows; }
  void run(Handler handler, std::function<void()> instant_over) override;
  [[nodiscard]] Seconds now() const override { return Seconds{now_}; }

private:
  /// A flow under way.
  struct Flow {
    double target = 0.0;  ///< Path::served at its end
    std::int64_t number = 0;
    FlowNetwork::Token token = 0;
    friend bool operator>(const Flow& a, const Flow& b) {
      return std::pair(a.target, a.number) > std::pair(b.target, b.number);
    }
  };
  struct Ending {
    double date = kNever;
    int path = 0;
    friend bool operator<(const Ending& a, const Ending& b) {  // the heap's top is the greatest
      return std::pair(a.date, a.path) > std::pair(b.date, b.path);
    }
  };
  using Endings = boost::heap::d_ary_heap<Ending, boost::heap::arity<4>, boost::heap::mutable_<true>>;
  struct Path {
    std::vector<int> links;
    double cap = kNever;
    double rate = 0.0;    ///< of each flow
    double served = 0.0;  ///< bytes of each flow, until `since`
    double since = 0.0;
    std::vector<Flow> flows{};  ///< a heap: the one that ends first is in front
    Endings::handle_type ending{};
    int ended = 0;           ///< flows whose end is not told yet
    bool is_listed = false;  ///< in Link::paths
    bool is_shared = false;  ///< its rate is known (while sharing)
    int round = 0;           ///< of sharing that has met it last
  };
  struct Link {
    double bandwidth = 0.0;
    std::vector<int> paths{};  ///< across it, with flows under way or not told yet
    std::size_t flows = 0;     ///< visit_flows
    // While sharing:
    double left = 0.0;
    std::int64_t takers = 0;  ///< flows whose rate is not known
    int round = 0;
  };
  struct Share {
    double rate = 0.0;
    int link = 0;
    friend bool operator>(const Share& a, const Share& b) {
      return std::pair(a.rate, a.link) > std::pair(b.rate, b.link);
    }
  };

  [[nodiscard]] Link& link_at(int link) { return links_.at(static_cast<std::size_t>(link)); }
  [[nodiscard]] const Link& link_at(int link) const { return links_.at(static_cast<std::size_t>(link)); }
  [[nodiscard]] Path& path_at(int path) { return paths_.at(static_cast<std::size_t>(path)); }
  [[nodiscard]] double clock() const override { return now_; }
  void wake_at(double /*date*/) override {}
  void launch(const Start& flow) override;
  void forget(const End& end) override;
  void settle(Path& path) const;
  void collect_ended();
  void share();
  void meet_connected();
  void fill();
  void give(int path, double rate);
  void schedule(int path);

  double now_ = 0.0;
  std::vector<Link> links_;
  std::vector<Path> paths_;
  Endings endings_;
  // Sharing; they keep their memory.
  int round_ = 0;
  std::vector<int> changed_;  ///< links whose flows or bandwidth are others than when they were shared
  std::vector<int> met_links_;
  std::vector<int> met_paths_;
  std::vector<Share> shares_;
};

void NativeNetwork::begin(const std::vector<BytesPerSecond>& bandwidths) {
  clear_events();
  now_ = 0.0;
  links_.clear();
  paths_.clear();
  endings_.clear();
  changed_.clear();
  for (const BytesPerSecond bandwidth : bandwidths) add_link(bandwidth);
}

int NativeNetwork::add_link(BytesPerSecond bandwidth) {
  SIMSYNC_ASSERT(bandwidth.value() > 0.0);
  links_.push_back({.bandwidth = bandwidth.value()});
  return static_cast<int>(links_.size()) - 1;
}

void NativeNetwork::set_bandwidth(int link, BytesPerSecond bandwidth) {
  SIMSYNC_ASSERT(bandwidth.value() > 0.0);
  link_at(link).bandwidth = bandwidth.value();
  changed_.push_back(link);
}

int NativeNetwork::add_path(const std::vector<int>& links, BytesPerSecond cap) {
  SIMSYNC_ASSERT(!links.empty());
  paths_.push_back({.links = links, .cap = cap.value()});
  return static_cast<int>(paths_.size()) - 1;
}

void NativeNetwork::launch(const Start& flow) {
  Path& path = path_at(flow.path);
  settle(path);
  if (path.flows.empty()) {
    path.served = path.rate = 0.0;
    path.ending = endings_.push({kNever, flow.path});
  }
  for (const int id : path.links) {
    Link& link = link_at(id);
    ++link.flows;
    if (!path.is_listed) link.paths.push_back(flow.path);
    changed_.push_back(id);
  }
  path.is_listed = true;
  path.flows.push_back({path.served + flow.bytes, flow.number, flow.token});
  std::push_heap(path.flows.begin(), path.flows.end(), std::greater<>());
  schedule(flow.path);
}

/// Counts what its flows have been served until now.
void NativeNetwork::settle(Path& path) const {
  if (!path.flows.empty()) path.served += path.rate * (now_ - path.since);
  path.since = now_;
}

void NativeNetwork::visit_flows(int id, const std::function<void(int, double)>& visit) const {
  for (const int number : link_at(id).paths) {
    const Path& path = paths_[static_cast<std::size_t>(number)];
    const double served = path.served + path.rate * (now_ - path.since);
    for (const Flow& flow : path.flows) visit(number, std::max(0.0, flow.target - served));
    for (int i = 0; i < path.ended; ++i) visit(number, 0.0);
  }
}

void NativeNetwork::run(Handler handler, std::function<void()> instant_over) {
  begin_events(std::move(handler), std::move(instant_over));
  for (;;) {
    share();
    const double next = std::min(endings_.empty() ? kNever : endings_.top().date, next_delay());
    if (next == kNever) break;
    now_ = std::max(now_, next);
    collect_ended();
    happen();
  }
  SIMSYNC_ASSERT(endings_.empty());  // else a flow would have no rate
  end_events();
}

/// Takes the flows that end now from their paths.
void NativeNetwork::collect_ended() {
  while (!endings_.empty() && endings_.top().date <= now_ + kSameInstant) {
    const int number = endings_.top().path;
    Path& path = path_at(number);
    settle(path);
    // The first has ended, whatever rounding says; others with it, if they would within the instant.
    path.served = std::max(path.served, path.flows.front().target);
    while (!path.flows.empty() && path.flows.front().target <= path.served + path.rate * kSameInstant) {
      std::pop_heap(path.flows.begin(), path.flows.end(), std::greater<>());
      note_end({path.flows.back().number, number, path.flows.back().token});
      path.flows.pop_back();
      ++path.ended;
    }
    changed_.insert(changed_.end(), path.links.begin(), path.links.end());
    if (path.flows.empty()) {
      endings_.erase(path.ending);
    } else {
      schedule(number);
    }
  }
}

void NativeNetwork::forget(const End& end) {
  Path& path = path_at(end.flow);
  const bool is_over = --path.ended == 0 && path.flows.empty();
  for (const int id : path.links) {
    Link& link = link_at(id);
    --link.flows;
    if (!is_over) continue;
    *std::find(link.paths.begin(), link.paths.end(), end.flow) = link.paths.back();
    link.paths.pop_back();
  }
  if (is_over) path.is_listed = false;
}

/// Shares anew the links that are connected with one that changed.
void NativeNetwork::share() {
  if (changed_.empty()) return;
  ++round_;
  meet_connected();
  fill();
  changed_.clear();
}

void NativeNetwork::meet_connected() {
  met_links_.clear();
  met_paths_.clear();
  const auto meet = [&](int id) {
    Link& link = link_at(id);
    if (link.round == round_) return;
    link.round = round_;
    link.left = link.bandwidth;
    link.takers = 0;
    met_links_.push_back(id);
  };
  for (const int id : changed_) meet(id);
  for (std::size_t i = 0; i < met_links_.size(); ++i) {
    for (const int number : links_[static_cast<std::size_t>(met_links_[i])].paths) {
      Path& path = path_at(number);
      if (path.round == round_ || path.flows.empty()) continue;
      path.round = round_;
      path.is_shared = false;
      met_paths_.push_back(number);
      for (const int id : path.links) {
        meet(id);
        link_at(id).takers += static_cast<std::int64_t>(path.flows.size());
      }
    }
  }
}

/// Progressive filling: the least share of all links is the rate of the flows across that link, or the least cap below
/// it that of its path; what they take is gone from the other links, whose shares can only grow by that.
void NativeNetwork::fill() {
  shares_.clear();
  for (const int id : met_links_) {
    const Link& link = link_at(id);
    if (link.takers > 0) shares_.push_back({link.left / static_cast<double>(link.takers), id});
  }
  std::make_heap(shares_.begin(), shares_.end(), std::greater<>());
  std::sort(met_paths_.begin(), met_paths_.end(), [&](int a, int b) {
    return std::pair(paths_[static_cast<std::size_t>(a)].cap, a) <
           std::pair(paths_[static_cast<std::size_t>(b)].cap, b);
  });
  auto capped = met_paths_.begin();
  while (!shares_.empty()) {
    std::pop_heap(shares_.begin(), shares_.end(), std::greater<>());
    const Share least = shares_.back();
    shares_.pop_back();
    const Link& link = link_at(least.link);
    if (link.takers == 0) continue;
    const double present = link.left / static_cast<double>(link.takers);
    while (capped != met_paths_.end() && path_at(*capped).is_shared) ++capped;
    const bool by_cap = capped != met_paths_.end() && path_at(*capped).cap <= least.rate;
    if (by_cap) give(*capped, path_at(*capped).cap);
    if (by_cap || present > least.rate) {
      if (link.takers > 0) {
        shares_.push_back({by_cap ? least.rate : present, least.link});
        std::push_heap(shares_.begin(), shares_.end(), std::greater<>());
      }
      continue;
    }
    for (const int number : link.paths)
      if (path_at(number).round == round_ && !path_at(number).is_shared) give(number, least.rate);
  }
}

void NativeNetwork::give(int number, double rate) {
  Path& path = path_at(number);
  path.is_shared = true;
  const auto flows = static_cast<std::int64_t>(path.flows.size());
  for (const int id : path.links) {
    Link& link = link_at(id);
    link.takers -= flows;
    link.left = std::max(0.0, link.left - rate * static_cast<double>(flows));
  }
  if (rate == path.rate && (*path.ending).date != kNever) return;
  settle(path);
  path.rate = rate;
  schedule(number);
}

/// When its next flow ends.
void NativeNetwork::schedule(int number) {
  Path& path = path_at(number);
  const double left = std::max(0.0, path.flows.front().target - path.served);
  endings_.update(path.ending, {path.since + left / path.rate, number});
}

}  // namespace

std::unique_ptr<FlowNetwork> native_network() {
  return std::make_unique<NativeNetwork>();
}

}  // namespace simsync
