#include "sim/plan/time_alone.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

namespace simsync::detail {
namespace {

constexpr double kSame = 1e-9;  ///< relative difference of rates and times that counts as none

struct Flow {
  int hop = 0;
  double left = 0.0;  ///< bytes
  double rate = 0.0;
};

/// Max-min fair rates: the narrowest links and caps are filled first.
class FairRates {
public:
  FairRates(const Topology& topology, const RoutedSchedule& schedule)
      : topology_(topology), hops_(schedule.hops), room_(topology.links().size()), users_(topology.links().size()) {}

  void set(std::vector<Flow>& flows) {
    begin(flows);
    std::vector<Flow*> open;
    for (Flow& flow : flows) open.push_back(&flow);
    while (!open.empty()) {
      const double level = narrowest(open);
      const auto stays_open = [&](const Flow* flow) { return !held(*flow, level); };
      const auto filled = std::stable_partition(open.begin(), open.end(), stays_open);
      for (auto flow = filled; flow != open.end(); ++flow) fill(**flow, level);
      open.erase(filled, open.end());
    }
  }

private:
  [[nodiscard]] const RoutedHop& hop_of(const Flow& flow) const { return hops_[static_cast<std::size_t>(flow.hop)]; }
  [[nodiscard]] double share(LinkId link) const {
    const auto i = static_cast<std::size_t>(link);
    return room_[i] / users_[i];
  }
  void begin(const std::vector<Flow>& flows) {
    used_.clear();
    std::fill(users_.begin(), users_.end(), 0);
    for (const Flow& flow : flows) {
      for (const LinkId link : hop_of(flow).links) {
        const auto i = static_cast<std::size_t>(link);
        if (users_[i]++ == 0) used_.push_back(link);
        room_[i] = topology_.links()[i].bandwidth.value();
      }
    }
  }
  [[nodiscard]] double narrowest(const std::vector<Flow*>& open) const {
    double out = std::numeric_limits<double>::infinity();
    for (const LinkId link : used_)
      if (users_[static_cast<std::size_t>(link)] > 0) out = std::min(out, share(link));
    for (const Flow* flow : open) out = std::min(out, hop_of(*flow).cap.value());
    return out;
  }
  /// Whether a flow gets no more than this.
  [[nodiscard]] bool held(const Flow& flow, double level) const {
    const RoutedHop& hop = hop_of(flow);
    const double most = level * (1.0 + kSame);
    return hop.cap.value() <= most ||
           std::any_of(hop.links.begin(), hop.links.end(), [&](LinkId link) { return share(link) <= most; });
  }
  void fill(Flow& flow, double level) {
    flow.rate = level;
    for (const LinkId link : hop_of(flow).links) {
      const auto i = static_cast<std::size_t>(link);
      room_[i] = std::max(0.0, room_[i] - level);
      --users_[i];
    }
  }

  const Topology& topology_;
  const std::vector<RoutedHop>& hops_;
  std::vector<double> room_;  ///< by link
  std::vector<int> users_;    ///< by link: flows whose rate is not known yet
  std::vector<LinkId> used_;
};

/// One collective from its first start-up to its last hop's end.
class Run {
public:
  Run(const Topology& topology, const RoutedSchedule& schedule, const Sent& sent)
      : schedule_(schedule), sent_(sent), rates_(topology, schedule), start_up_(schedule.hops.size()) {
    for (std::size_t line = 0; line < schedule.pipelines.size(); ++line) {
      const std::vector<Seconds> start_up = schedule.start_up(static_cast<int>(line), sent.payload);
      for (std::size_t i = 0; i < start_up.size(); ++i)
        start_up_[static_cast<std::size_t>(schedule.members[line][i])] = sent.ratio * start_up[i].value();
    }
    for (const RoutedHop& hop : schedule.hops) blocked_.push_back(static_cast<int>(hop.after.size()));
  }

  double time() {
    for (std::size_t hop = 0; hop < blocked_.size(); ++hop)
      if (blocked_[hop] == 0) start_later(static_cast<int>(hop));
    while (!flows_.empty() || !starts_.empty()) {
      if (changed_) rates_.set(flows_);
      changed_ = false;
      advance();
      end_flows();
      while (!starts_.empty() && starts_.top().first <= now_ * (1.0 + kSame)) {
        const int hop = starts_.top().second;
        starts_.pop();
        start(hop);
      }
    }
    return now_;
  }

private:
  using Start = std::pair<double, int>;  ///< when, and which hop

  [[nodiscard]] const RoutedHop& hop_at(int hop) const { return schedule_.hops[static_cast<std::size_t>(hop)]; }
  void start_later(int hop) { starts_.emplace(now_ + start_up_[static_cast<std::size_t>(hop)], hop); }
  void start(int id) {
    const RoutedHop& hop = hop_at(id);
    double bytes = sent_.ratio * (hop.bytes * sent_.payload + hop.rounds * hop.half);
    if (sent_.whole_bytes) bytes = std::round(bytes);
    if (hop.path < 0 || bytes <= 0.0) return hop_ended(id);
    flows_.push_back({id, bytes, 0.0});
    changed_ = true;
  }
  /// To the next start or end.
  void advance() {
    double next = starts_.empty() ? std::numeric_limits<double>::infinity() : starts_.top().first;
    for (const Flow& flow : flows_) next = std::min(next, now_ + flow.left / flow.rate);
    for (Flow& flow : flows_) flow.left -= (next - now_) * flow.rate;
    now_ = next;
  }
  void end_flows() {
    const auto goes_on = [&](const Flow& flow) { return flow.left > kSame * now_ * flow.rate; };
    const auto ended = std::stable_partition(flows_.begin(), flows_.end(), goes_on);
    if (ended == flows_.end()) return;
    const std::vector<Flow> over(ended, flows_.end());
    flows_.erase(ended, flows_.end());
    changed_ = true;
    for (const Flow& flow : over) hop_ended(flow.hop);
  }
  void hop_ended(int id) {
    for (const int next : hop_at(id).unblocks_after)
      if (--blocked_[static_cast<std::size_t>(next)] == 0) start_later(next);
  }

  const RoutedSchedule& schedule_;
  Sent sent_;
  FairRates rates_;
  std::vector<double> start_up_;  ///< by hop
  std::vector<int> blocked_;      ///< by hop: hops of earlier stages that it waits for
  std::priority_queue<Start, std::vector<Start>, std::greater<>> starts_;
  std::vector<Flow> flows_;
  double now_ = 0.0;
  bool changed_ = false;
};

}  // namespace

double time_alone(const Topology& topology, const RoutedSchedule& schedule, const Sent& sent) {
  return Run(topology, schedule, sent).time();
}

}  // namespace simsync::detail
