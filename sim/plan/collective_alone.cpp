#include "sim/plan/collective_alone.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "sim/plan/alike_nodes.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/routed_collective.hpp"

namespace simsync {
namespace {

using detail::RoutedHop;
using detail::RoutedSchedule;

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
  Run(const Topology& topology, const RoutedSchedule& schedule, double payload)
      : schedule_(schedule), payload_(payload), rates_(topology, schedule), start_up_(schedule.hops.size()) {
    for (std::size_t line = 0; line < schedule.pipelines.size(); ++line) {
      const std::vector<Seconds> start_up = schedule.start_up(static_cast<int>(line), payload);
      for (std::size_t i = 0; i < start_up.size(); ++i)
        start_up_[static_cast<std::size_t>(schedule.members[line][i])] = start_up[i].value();
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
    const double bytes = hop.bytes * payload_ + hop.rounds * hop.half;
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
  double payload_;
  FairRates rates_;
  std::vector<double> start_up_;  ///< by hop
  std::vector<int> blocked_;      ///< by hop: hops of earlier stages that it waits for
  std::priority_queue<Start, std::vector<Start>, std::greater<>> starts_;
  std::vector<Flow> flows_;
  double now_ = 0.0;
  bool changed_ = false;
};

}  // namespace

struct CollectiveAlone::Network {
  Network(const Cluster& cluster, const Plan& plan, std::vector<int> nodes, bool represents)
      : chosen(std::move(nodes)), folded(represents), topology(cluster, numbers(plan), gpus_in_use(plan.ranks)) {}

  std::vector<int> chosen;  ///< groups of kEachNode
  bool folded;
  Topology topology;
  PipelineFills fills;
  std::map<detail::ScheduleKey, RoutedSchedule> schedules;

private:
  [[nodiscard]] std::vector<int> numbers(const Plan& plan) const {
    std::vector<int> out;
    for (const int node : chosen) out.push_back(plan.nodes[static_cast<std::size_t>(node)]);
    return out;
  }
};

CollectiveAlone::CollectiveAlone(Cluster cluster, const std::vector<Place>& ranks) : cluster_(std::move(cluster)) {
  plan_.set_ranks(ranks);
}

CollectiveAlone::~CollectiveAlone() = default;

CollectiveAlone::Network& CollectiveAlone::network_for(const CollectiveKind& kind) {
  const bool fold = plan_.nodes.size() > 2 && detail::nodes_differ(plan_, cluster_).empty() &&
                    detail::ranks_differ(kind, plan_.grouping(kWholeJob).ranks(0), plan_, cluster_).empty();
  std::unique_ptr<Network>& network = fold ? folded_ : whole_;
  if (network) return *network;
  std::vector<int> nodes;
  for (std::size_t i = 0; i < (fold ? 1 : plan_.nodes.size()); ++i) nodes.push_back(static_cast<int>(i));
  network = std::make_unique<Network>(cluster_, plan_, std::move(nodes), fold);
  return *network;
}

double CollectiveAlone::run(const Question& question) {
  const auto& [primitive, algorithm, protocol, bytes] = question;
  Network& network = network_for({primitive, algorithm});
  const CollectiveKind kind{primitive, algorithm};
  const detail::ScheduleKey key{
      .kind = kind, .protocol = protocol, .chunks = pipeline_chunks(kind, group_shape(plan_), bytes)};
  auto known = network.schedules.find(key);
  if (known == network.schedules.end()) {
    const detail::RouteContext context{plan_,          cluster_,       network.topology,
                                       network.chosen, network.folded, [](const auto&, auto) { return 0; },
                                       network.fills};
    known = network.schedules.emplace(key, detail::route(context, key)).first;
  }
  return Run(network.topology, known->second, bytes).time();
}

Seconds CollectiveAlone::time(CollectivePrimitive primitive, CollectiveAlgorithm algorithm, const std::string& protocol,
                              double bytes) {
  if (plan_.rank_count() < 2) return Seconds{0.0};
  const auto [known, fresh] = known_.try_emplace({primitive, algorithm, protocol, bytes}, 0.0);
  if (fresh) known->second = run(known->first);
  const CollectiveCosts& costs = cluster_.collective;
  const double ratio = is_own(costs, algorithm) ? ratio_of(costs, primitive, group_shape(plan_), bytes) : 1.0;
  return Seconds{ratio * known->second} + (ratio - 1.0) * collective_setup(costs, bytes);
}

}  // namespace simsync
