#include "hw/run/roles.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/error.hpp"

namespace simsync {

Roles::Roles(const Plan& plan) : plan_(&plan) {
  if (plan.servers.empty() || plan.nodes.size() == plan.ranks.size()) return;
  throw PlanError("real runs with parameter servers take one worker per node so far: the plan has " +
                  std::to_string(plan.rank_count()) + " workers on " + std::to_string(plan.nodes.size()) + " nodes");
}

int Roles::node_of(AgentId agent) const {
  if (!is_server(agent)) return plan_->ranks[static_cast<std::size_t>(agent)].node;
  return plan_->servers[static_cast<std::size_t>(agent - plan_->rank_count())].node;
}

std::span<const int> Roles::ranks_of(const Instance& i) const {
  return plan_->grouping(op(i).grouping).ranks(i.group);
}

bool Roles::coordinated(const Op& op) const {
  if (op.kind() != OpKind::Collective || op.queue < 0) return false;
  const Queue& queue = plan_->queues[static_cast<std::size_t>(op.queue)];
  return queue.ordering == Ordering::Priority || queue.credit > 0.0;
}

AgentId Roles::server_at(const Place& place) const {
  const auto found = std::find(plan_->servers.begin(), plan_->servers.end(), place);
  SIMSYNC_ASSERT(found != plan_->servers.end());
  return plan_->rank_count() + static_cast<AgentId>(found - plan_->servers.begin());
}

AgentId Roles::first_rank_on(const Place& place) const {
  const auto node = std::find(plan_->nodes.begin(), plan_->nodes.end(), place.node);
  SIMSYNC_ASSERT(node != plan_->nodes.end());
  return plan_->node_begin[static_cast<std::size_t>(node - plan_->nodes.begin())];
}

AgentId Roles::at(const End& end, const Instance& i) const {
  if (end.is_server()) return server_at(end.place);
  if (end.is_fixed()) return first_rank_on(end.place);
  return ranks_of(i).front();
}

AgentId Roles::starter(const Instance& i) const {
  const std::optional<End> end = op(i).started_at();
  return end ? at(*end, i) : 0;
}

AgentId Roles::source(const Instance& i) const {
  return at(op(i).transfer().from, i);
}

AgentId Roles::sink(const Instance& i) const {
  return at(op(i).transfer().to, i);
}

std::vector<AgentId> Roles::enders(const Instance& i) const {
  const Op& o = op(i);
  if (o.kind() == OpKind::Transfer) return {sink(i)};
  if (o.kind() != OpKind::Collective) return {starter(i)};
  const auto ranks = ranks_of(i);
  return {ranks.begin(), ranks.end()};
}

namespace {

/// Fills the Duties of one agent.
class DutyFinder {
public:
  DutyFinder(const Roles& roles, AgentId agent)
      : roles_(roles), plan_(roles.plan()), agent_(agent), shared_(plan_.groupings), after_end_(after_step_end(plan_)) {
    out_.left_out.resize(static_cast<std::size_t>(plan_.rank_count()));
  }

  Duties run() {
    for (const Op& op : plan_.ops) {
      out_.index.emplace_back(static_cast<std::size_t>(plan_.grouping(op.grouping).count()), -1);
      starts_.emplace_back(static_cast<std::size_t>(plan_.grouping(op.grouping).count()), -1);
    }
    each_instance([this](const Instance& i) { find_task(i); });
    each_instance([this](const Instance& i) {
      for (const After& after : roles_.op(i).after)
        each_related(i, after.op, [&](const Instance& before) { connect(before, i, after.lag); });
    });
    each_instance([this](const Instance& i) { finish(i); });
    return std::move(out_);
  }

private:
  template <class F>
  void each_instance(F visit) const {
    for (std::size_t op = 0; op < plan_.ops.size(); ++op)
      for (int group = 0; group < plan_.grouping(plan_.ops[op].grouping).count(); ++group)
        visit(Instance{static_cast<OpId>(op), group});
  }

  /// Instances of `other` that share a rank with `i`.
  template <class F>
  void each_related(const Instance& i, OpId other, F visit) const {
    const GroupingId grouping = plan_.ops[static_cast<std::size_t>(other)].grouping;
    for (const int group : shared_.with(roles_.op(i).grouping, i.group, grouping)) visit(Instance{other, group});
  }

  [[nodiscard]] bool takes_part(const Instance& i) const {
    return !roles_.is_server(agent_) && plan_.grouping(roles_.op(i).grouping).group_of(agent_) == i.group;
  }

  [[nodiscard]] bool starts(const Instance& i) const {
    return roles_.by_members(roles_.op(i)) ? takes_part(i) : roles_.starter(i) == agent_;
  }

  void find_task(const Instance& i) {
    if (!starts(i)) return;
    starts_[static_cast<std::size_t>(i.op)][static_cast<std::size_t>(i.group)] =
        static_cast<std::int32_t>(out_.tasks.size());
    Duties::Task task{.instance = i};
    for (const After& after : roles_.op(i).after)
      if (after.may_miss > 0) task.wait_for(-after.may_miss, after.lag);
    out_.tasks.push_back(std::move(task));
  }

  std::int32_t position(const Instance& i) {
    std::int32_t& slot = out_.index[static_cast<std::size_t>(i.op)][static_cast<std::size_t>(i.group)];
    if (slot >= 0) return slot;
    slot = static_cast<std::int32_t>(out_.releases.size());
    out_.releases.emplace_back();
    out_.notify.emplace_back();
    out_.task_of.push_back(-1);
    out_.ends_here.push_back(0);
    return slot;
  }

  /// Agents that have to learn that `before` ended because they start `i`.
  [[nodiscard]] std::vector<AgentId> starters(const Instance& before, const Instance& i) const {
    if (!roles_.by_members(roles_.op(i))) return {roles_.starter(i)};
    // A rank of a collective waits for what concerns itself; the collective waits for the others.
    const auto ranks = roles_.ranks_of(i);
    const auto others = roles_.ranks_of(before);
    std::vector<AgentId> all;
    std::set_intersection(ranks.begin(), ranks.end(), others.begin(), others.end(), std::back_inserter(all));
    return all;
  }

  /// The agent that tells `other` of the end of `before`: itself when it sees it.
  [[nodiscard]] static AgentId teller(const std::vector<AgentId>& enders, AgentId other) {
    return std::find(enders.begin(), enders.end(), other) != enders.end() ? other : enders.front();
  }

  void connect(const Instance& before, const Instance& i, int lag) {
    const auto enders = roles_.enders(before);
    for (const AgentId other : starters(before, i)) {
      const AgentId from = teller(enders, other);
      if (other == agent_) {
        const std::int32_t task = starts_[static_cast<std::size_t>(i.op)][static_cast<std::size_t>(i.group)];
        out_.tasks[static_cast<std::size_t>(task)].wait_for(1, lag);
        out_.releases[static_cast<std::size_t>(position(before))].push_back({task, lag});
        if (is_left_out_before(before, i, lag)) out_.next_of_left_out.push_back({task, lag});
      }
      if (from == agent_ && other != agent_) tell(before, other);
    }
  }

  [[nodiscard]] bool comes_after_end(const Instance& i) const { return after_end_[static_cast<std::size_t>(i.op)]; }

  /// Whether `i`, of the same rank, would wait for `before` in vain where the rank leaves that out.
  [[nodiscard]] bool is_left_out_before(const Instance& before, const Instance& i, int lag) const {
    const bool of_rank = roles_.op(before).grouping == kEachRank && roles_.op(i).grouping == kEachRank;
    return of_rank && before.op != plan_.progress.step_end && !comes_after_end(before) &&
           (lag > 0 || comes_after_end(i));
  }

  void count_left_out(const Instance& i, std::int64_t parts) {
    if (roles_.op(i).grouping != kEachRank) return;
    auto& rank = out_.left_out[static_cast<std::size_t>(i.group)];
    (comes_after_end(i) ? rank.after_end : rank.until_end) += parts;
  }

  void tell(const Instance& i, AgentId other) {
    auto& list = out_.notify[static_cast<std::size_t>(position(i))];
    if (std::find(list.begin(), list.end(), other) == list.end()) list.push_back(other);
  }

  void finish(const Instance& i) {
    const std::int32_t task = starts_[static_cast<std::size_t>(i.op)][static_cast<std::size_t>(i.group)];
    if (task >= 0) out_.task_of[static_cast<std::size_t>(position(i))] = task;
    const Op& op = roles_.op(i);
    const bool sent = op.kind() == OpKind::Transfer && roles_.source(i) != roles_.sink(i);
    const bool asked = sent && roles_.source(i) == agent_ && roles_.starter(i) != agent_;
    const auto enders = roles_.enders(i);
    const bool ends = std::find(enders.begin(), enders.end(), agent_) != enders.end();
    if (asked) ++out_.asked;
    count_left_out(i, (task >= 0 ? 1 : 0) + (asked ? 1 : 0) + (ends ? 1 : 0));
    if (!ends) return;
    out_.ends_here[static_cast<std::size_t>(position(i))] = 1;
    ++out_.ends;
    // Who started a transfer from its queue may serve the next one.
    if (op.kind() == OpKind::Transfer && op.queue >= 0 && roles_.starter(i) != agent_) tell(i, roles_.starter(i));
    // Servers learn what a rank leaves out from the iteration in which its step ends.
    if (i.op != plan_.progress.step_end || plan_.progress.global_step < 0) return;
    for (AgentId server = plan_.rank_count(); server < roles_.agents(); ++server) tell(i, server);
  }

  const Roles& roles_;
  const Plan& plan_;
  AgentId agent_;
  SharedRanks shared_;
  std::vector<bool> after_end_;  ///< by op
  Duties out_;
  std::vector<std::vector<std::int32_t>> starts_;  ///< op -> group -> task
};

}  // namespace

void Duties::Task::wait_for(std::int32_t instances, int lag) {
  if (static_cast<int>(waits.size()) <= lag) waits.resize(static_cast<std::size_t>(lag) + 1, 0);
  waits[static_cast<std::size_t>(lag)] += instances;
}

Countdown::Waits Duties::waits() const {
  Countdown::Waits out{{0, std::vector<std::int32_t>(tasks.size(), 0)}};
  for (std::size_t task = 0; task < tasks.size(); ++task)
    for (std::size_t lag = 0; lag < tasks[task].waits.size(); ++lag) {
      auto& waits = out[static_cast<int>(lag)];
      waits.resize(tasks.size(), 0);
      waits[task] = tasks[task].waits[lag];
    }
  return out;
}

Duties duties_of(const Roles& roles, AgentId agent) {
  return DutyFinder(roles, agent).run();
}

}  // namespace simsync
