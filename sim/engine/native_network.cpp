// Max-min fair sharing without SimGrid.
//
// Flows along one path always have the same rate. So a path counts the bytes that each of its flows has been served
// since the path was idle, and a flow ends when that count reaches what it was at its start plus the flow's bytes: a
// change of rate touches paths, not flows.
#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "sim/engine/fair_shares.hpp"
#include "sim/engine/network_events.hpp"
#include "sim/engine/next_ends.hpp"

namespace simsync {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class NativeNetwork final : public detail::NetworkEvents {
public:
  void begin(const std::vector<BytesPerSecond>& bandwidths) override;
  int add_link(BytesPerSecond bandwidth) override;
  void set_bandwidth(int link, BytesPerSecond bandwidth) override { shares_.set_bandwidth(link, bandwidth.value()); }
  int add_path(const std::vector<int>& links, BytesPerSecond cap) override;
  void visit_flows(int link, const std::function<void(int, double)>& visit) const override;
  [[nodiscard]] std::size_t flows_across(int link) const override { return flows_[static_cast<std::size_t>(link)]; }
  void run(Handler handler, std::function<void()> instant_over) override;
  [[nodiscard]] Seconds now() const override { return Seconds{now_}; }

private:
  /// A flow under way.
  struct Flow {
    double target = 0.0;  ///< Path::served at its end
    std::int64_t number = 0;
    FlowNetwork::Token token = 0;
    friend bool operator>(const Flow& a, const Flow& b) {
      return a.target != b.target ? a.target > b.target : a.number > b.number;
    }
  };
  struct Path {
    std::vector<int> links;  ///< each once
    double rate = 0.0;       ///< of each flow
    double served = 0.0;     ///< bytes of each flow, until `since`
    double since = 0.0;
    std::vector<Flow> flows;  ///< a heap: the one that ends first is in front
  };

  [[nodiscard]] Path& path_at(int path) { return paths_[static_cast<std::size_t>(path)]; }
  [[nodiscard]] double clock() const override { return now_; }
  void wake_at(double /*date*/) override {}
  void launch(const Start& flow) override;
  void forget(const End& end) override;
  void settle(Path& path) const;
  void collect_ended();
  void schedule(int path);

  double now_ = 0.0;
  detail::FairShares shares_;
  detail::NextEnds ends_;
  std::vector<Path> paths_;
  std::vector<std::size_t> flows_;        ///< by link: under way or not told yet
  std::vector<std::vector<int>> untold_;  ///< by link: paths with flows that have ended and are not told yet
};

void NativeNetwork::begin(const std::vector<BytesPerSecond>& bandwidths) {
  clear_events();
  now_ = 0.0;
  shares_.clear();
  ends_.clear();
  paths_.clear();
  flows_.clear();
  untold_.clear();
  for (const BytesPerSecond bandwidth : bandwidths) add_link(bandwidth);
}

int NativeNetwork::add_link(BytesPerSecond bandwidth) {
  flows_.push_back(0);
  untold_.emplace_back();
  return shares_.add_link(bandwidth.value());
}

int NativeNetwork::add_path(const std::vector<int>& links, BytesPerSecond cap) {
  std::vector<int> crossed = links;
  std::sort(crossed.begin(), crossed.end());
  crossed.erase(std::unique(crossed.begin(), crossed.end()), crossed.end());
  paths_.push_back({.links = std::move(crossed)});
  return shares_.add_path(links, cap.value());
}

void NativeNetwork::launch(const Start& flow) {
  Path& path = path_at(flow.path);
  settle(path);
  if (path.flows.empty()) path.served = path.rate = 0.0;
  path.flows.push_back({path.served + flow.bytes, flow.number, flow.token});
  std::push_heap(path.flows.begin(), path.flows.end(), std::greater<>());
  for (const int link : path.links) ++flows_[static_cast<std::size_t>(link)];
  shares_.add_flows(flow.path, +1);
  schedule(flow.path);
}

/// Counts what its flows have been served until now.
void NativeNetwork::settle(Path& path) const {
  if (!path.flows.empty()) path.served += path.rate * (now_ - path.since);
  path.since = now_;
}

void NativeNetwork::visit_flows(int link, const std::function<void(int, double)>& visit) const {
  for (const int number : shares_.paths_across(link)) {
    const Path& path = paths_[static_cast<std::size_t>(number)];
    const double served = path.served + path.rate * (now_ - path.since);
    for (const Flow& flow : path.flows) visit(number, std::max(0.0, flow.target - served));
  }
  for (const int number : untold_[static_cast<std::size_t>(link)]) visit(number, 0.0);
}

void NativeNetwork::run(Handler handler, std::function<void()> instant_over) {
  begin_events(std::move(handler), std::move(instant_over));
  for (;;) {
    for (const int number : shares_.share()) {
      Path& path = path_at(number);
      settle(path);
      path.rate = shares_.rate(number);
      schedule(number);
    }
    const double next = std::min(ends_.empty() ? kNever : ends_.date(), next_delay());
    if (next == kNever) break;
    now_ = std::max(now_, next);
    collect_ended();
    happen();
  }
  SIMSYNC_ASSERT(ends_.empty());  // else a flow would have no rate
  end_events();
}

/// Takes the flows that end now from their paths.
void NativeNetwork::collect_ended() {
  while (!ends_.empty() && ends_.date() <= now_ + kSameInstant) {
    const int number = ends_.first();
    Path& path = path_at(number);
    settle(path);
    // The first has ended, whatever rounding says; others with it, if they would within the instant.
    path.served = std::max(path.served, path.flows.front().target);
    int ended = 0;
    while (!path.flows.empty() && path.flows.front().target <= path.served + path.rate * kSameInstant) {
      std::pop_heap(path.flows.begin(), path.flows.end(), std::greater<>());
      note_end({path.flows.back().number, number, path.flows.back().token});
      path.flows.pop_back();
      ++ended;
      for (const int link : path.links) untold_[static_cast<std::size_t>(link)].push_back(number);
    }
    shares_.add_flows(number, -ended);
    if (path.flows.empty()) {
      ends_.remove(number);
    } else {
      schedule(number);
    }
  }
}

void NativeNetwork::forget(const End& end) {
  for (const int link : path_at(end.flow).links) {
    --flows_[static_cast<std::size_t>(link)];
    auto& untold = untold_[static_cast<std::size_t>(link)];
    *std::find(untold.begin(), untold.end(), end.flow) = untold.back();
    untold.pop_back();
  }
}

/// When its next flow ends.
void NativeNetwork::schedule(int number) {
  Path& path = path_at(number);
  const double left = std::max(0.0, path.flows.front().target - path.served);
  ends_.set(number, path.since + left / path.rate);
}

}  // namespace

std::unique_ptr<FlowNetwork> native_network() {
  return std::make_unique<NativeNetwork>();
}

}  // namespace simsync
