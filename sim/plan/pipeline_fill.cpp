#include "sim/plan/pipeline_fill.hpp"

#include <algorithm>
#include <limits>
#include <queue>

namespace simsync {
namespace {

constexpr double kSame = 1e-9;  ///< messages that end this close to each other, as a share of one, end together

/// A hop between two ports, running.
struct Stage {
  std::size_t out = 0;
  std::size_t in = 0;
  MessageCost cost;
  std::vector<std::size_t> needs;
  std::vector<std::size_t> unblocks;
  int sent = 0;
  int arrived = 0;
  bool busy = false;
  double left = 0.0;  ///< of the message under way, in seconds of the whole link
  double share = 0.0;
};

class MessageRun {
public:
  MessageRun(const CollectiveSchedule& schedule, const GroupShape& group, const MessageCost& intra,
             const MessageCost& inter, int rounds)
      : rounds_(rounds), stages_(schedule.hops.size()) {
    // Ports of ranks come first, then those of nodes; out and in alternate.
    const auto ranks = static_cast<std::size_t>(group.ranks());
    ports_.resize(2 * (ranks + static_cast<std::size_t>(group.nodes())));
    for (std::size_t id = 0; id < stages_.size(); ++id) {
      const Hop& hop = schedule.hops[id];
      Stage& stage = stages_[id];
      const auto from = static_cast<std::size_t>(group.node_of(hop.from));
      const auto to = static_cast<std::size_t>(group.node_of(hop.to));
      const bool inside = from == to;
      stage.cost = inside ? intra : inter;
      stage.out = 2 * (inside ? static_cast<std::size_t>(hop.from) : ranks + from);
      stage.in = 2 * (inside ? static_cast<std::size_t>(hop.to) : ranks + to) + 1;
      for (const int need : hop.needs) {
        stage.needs.push_back(static_cast<std::size_t>(need));
        stages_[static_cast<std::size_t>(need)].unblocks.push_back(id);
      }
    }
  }

  /// Seconds that the busiest port, or the slowest hop, is busy with one message of each of its hops.
  [[nodiscard]] double period() const {
    std::vector<double> load(ports_.size(), 0.0);
    double most = 0.0;
    for (const Stage& stage : stages_) {
      for (const std::size_t port : {stage.out, stage.in}) most = std::max(most, load[port] += stage.cost.link);
      most = std::max(most, stage.cost.alone);
    }
    return most;
  }

  /// Seconds until the last message has arrived.
  double run() {
    for (std::size_t id = 0; id < stages_.size(); ++id) try_next(id);
    while (!active_.empty() || !arrivals_.empty()) {
      share_ports();
      pass(next_event());
      end_messages();
      deliver();
    }
    return now_;
  }

private:
  struct Port {
    double left = 1.0;
    int flows = 0;
    [[nodiscard]] double level() const { return left / flows; }
  };
  using Arrival = std::pair<double, std::size_t>;

  void try_next(std::size_t id) {
    Stage& stage = stages_[id];
    if (stage.busy || stage.sent == rounds_) return;
    for (const std::size_t need : stage.needs)
      if (stages_[need].arrived <= stage.sent) return;
    stage.busy = true;
    stage.left = stage.cost.link;
    active_.push_back(id);
    changed_ = true;
  }

  [[nodiscard]] double level(const Stage& stage) const {
    return std::min({ports_[stage.out].level(), ports_[stage.in].level(), stage.cost.link / stage.cost.alone});
  }

  /// Max-min fair: the smallest level of all holds for its messages, and the others share what they leave.
  void share_ports() {
    if (!changed_) return;
    changed_ = false;
    std::fill(ports_.begin(), ports_.end(), Port{});
    for (const std::size_t id : active_) {
      ++ports_[stages_[id].out].flows;
      ++ports_[stages_[id].in].flows;
    }
    std::vector<std::size_t> open = active_;
    while (!open.empty()) {
      double lowest = std::numeric_limits<double>::infinity();
      for (const std::size_t id : open) lowest = std::min(lowest, stages_[id].share = level(stages_[id]));
      const auto held = [&](std::size_t id) { return stages_[id].share <= lowest * (1.0 + kSame); };
      const auto rest = std::stable_partition(open.begin(), open.end(), [&](std::size_t id) { return !held(id); });
      for (auto id = rest; id != open.end(); ++id) {
        Stage& stage = stages_[*id];
        stage.share = lowest;
        for (const std::size_t port : {stage.out, stage.in}) {
          ports_[port].left -= lowest;
          --ports_[port].flows;
        }
      }
      open.erase(rest, open.end());
    }
  }

  [[nodiscard]] double next_event() const {
    double next = arrivals_.empty() ? std::numeric_limits<double>::infinity() : arrivals_.top().first - now_;
    for (const std::size_t id : active_) next = std::min(next, stages_[id].left / stages_[id].share);
    return std::max(0.0, next);
  }

  void pass(double seconds) {
    now_ += seconds;
    for (const std::size_t id : active_) stages_[id].left -= seconds * stages_[id].share;
  }

  void end_messages() {
    const auto ended = std::stable_partition(active_.begin(), active_.end(), [&](std::size_t id) {
      return stages_[id].left > kSame * stages_[id].cost.link;
    });
    const std::vector<std::size_t> done(ended, active_.end());
    active_.erase(ended, active_.end());
    changed_ = changed_ || !done.empty();
    for (const std::size_t id : done) {
      stages_[id].busy = false;
      ++stages_[id].sent;
      arrivals_.emplace(now_ + stages_[id].cost.latency, id);
    }
    for (const std::size_t id : done) try_next(id);
  }

  void deliver() {
    while (!arrivals_.empty() && arrivals_.top().first <= now_ * (1.0 + 1e-12)) {
      const std::size_t id = arrivals_.top().second;
      arrivals_.pop();
      ++stages_[id].arrived;
      for (const std::size_t next : stages_[id].unblocks) try_next(next);
    }
  }

  int rounds_;
  double now_ = 0.0;
  bool changed_ = false;
  std::vector<Stage> stages_;
  std::vector<Port> ports_;
  std::vector<std::size_t> active_;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
};

/// As many nodes as have at most 128 ranks, by halving: a tree loses its upper levels and keeps its shape.
GroupShape cut(const GroupShape& group) {
  constexpr int kMostRanks = 128;
  std::size_t nodes = group.node_begin.size() - 1;
  while (nodes > 1 && group.node_begin[nodes] > kMostRanks) nodes = (nodes + 1) / 2;
  return {{group.node_begin.begin(), group.node_begin.begin() + static_cast<std::ptrdiff_t>(nodes) + 1}};
}

double first_message(const Pipeline& line, const MessageCost& intra, const MessageCost& inter) {
  return line.fill_intra * (intra.latency + intra.alone) + line.fill_inter * inter.latency +
         line.fill_shared * inter.alone;
}

/// A hop that costs nothing at all still takes its turn.
MessageCost at_least_something(MessageCost cost) {
  constexpr double kLeast = 1e-15;
  cost.link = std::max(cost.link, kLeast);
  cost.alone = std::max(cost.alone, cost.link);
  return cost;
}

}  // namespace

PipelineFill::PipelineFill(const CollectiveKind& kind, const GroupShape& group, int chunks, const Pipeline& whole)
    : group_(cut(group)), schedule_(schedule_of(kind, group_, chunks)), whole_(whole) {
  // Once the traffic of both directions has met everywhere, and before it parts again, the busiest port never rests:
  // more messages add nothing but its work.
  const Pipeline& line = schedule_.pipelines.front();
  const int transient = 2 * (line.fill_intra + line.fill_inter) + 8;
  rounds_ = std::min(chunks, transient);
}

const PipelineFill& PipelineFills::of(const CollectiveKind& kind, const GroupShape& group, int chunks,
                                      const Pipeline& whole) {
  const auto key = std::make_tuple(kind, group.node_begin, chunks);
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(key, PipelineFill(kind, group, chunks, whole)).first->second;
}

Seconds PipelineFill::time(const MessageCost& intra, const MessageCost& inter) const {
  const auto [known, fresh] = known_.try_emplace({intra, inter});
  if (fresh) known->second = time_anew(intra, inter);
  return known->second;
}

Seconds PipelineFill::time_anew(const MessageCost& intra, const MessageCost& inter) const {
  const MessageCost inside = at_least_something(intra);
  const MessageCost between = at_least_something(inter);
  MessageRun run(schedule_, group_, inside, between, rounds_);
  const double beyond = run.run() - rounds_ * run.period();
  const double longer =
      first_message(whole_, inside, between) - first_message(schedule_.pipelines.front(), inside, between);
  return Seconds{std::max(0.0, beyond) + std::max(0.0, longer)};
}

}  // namespace simsync
