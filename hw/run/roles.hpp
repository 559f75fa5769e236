// Who does what: the instances of a Plan's ops divided among processes.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sim/plan/countdown.hpp"
#include "sim/plan/plan.hpp"

namespace simsync {

/// A process of a run: rank r is agent r; the server plan.servers[s] is agent rank_count + s. Agent 0 coordinates.
using AgentId = int;

/// An op of one group, in any iteration.
struct Instance {
  OpId op = 0;
  int group = 0;
  friend auto operator<=>(const Instance&, const Instance&) = default;
};

/// Where things happen. A view of a plan, which must outlive it.
///
/// A transfer ends where its bytes arrive; everything else ends where it was started. A collective is started and
/// ended by each of its ranks for itself, unless its order is decided while it runs (a queue by priority or credit):
/// then agent 0 starts it and tells the others.
class Roles {
public:
  /// @throws PlanError when ranks that share a node talk to servers: then a host would have to stand for them all.
  explicit Roles(const Plan& plan);

  [[nodiscard]] const Plan& plan() const { return *plan_; }
  [[nodiscard]] int agents() const { return plan_->rank_count() + static_cast<int>(plan_->servers.size()); }
  [[nodiscard]] bool is_server(AgentId agent) const { return agent >= plan_->rank_count(); }
  [[nodiscard]] int node_of(AgentId agent) const;

  [[nodiscard]] const Op& op(const Instance& i) const { return plan_->ops[static_cast<std::size_t>(i.op)]; }
  /// Ranks of its group, ascending.
  [[nodiscard]] std::span<const int> ranks_of(const Instance& i) const;
  /// Whether agent 0 decides when a collective starts.
  [[nodiscard]] bool coordinated(const Op& op) const;
  /// Whether every rank of the group starts it for itself.
  [[nodiscard]] bool by_members(const Op& op) const { return op.kind() == OpKind::Collective && !coordinated(op); }
  /// The agent that counts what it waits for and serves its queue; for by_members(), of no meaning.
  [[nodiscard]] AgentId starter(const Instance& i) const;
  /// Where the bytes of a transfer come from and go to; equal ends: nothing is sent.
  [[nodiscard]] AgentId source(const Instance& i) const;
  [[nodiscard]] AgentId sink(const Instance& i) const;
  /// Agents that see it end for themselves: the sink, the starter, or every rank of a collective.
  [[nodiscard]] std::vector<AgentId> enders(const Instance& i) const;

private:
  [[nodiscard]] AgentId at(const End& end, const Instance& i) const;
  [[nodiscard]] AgentId server_at(const Place& place) const;
  [[nodiscard]] AgentId first_rank_on(const Place& place) const;

  const Plan* plan_;
};

/// What one agent does of a plan.
struct Duties {
  /// An instance that this agent starts.
  struct Task {
    Instance instance;
    /// By lag: instances of that many iterations before that must end first.
    std::vector<std::int32_t> waits = {0};
    void wait_for(std::int32_t instances, int lag);
  };
  /// Tasks that wait for one instance; `lag` as in After.
  struct Release {
    std::int32_t task = 0;
    int lag = 0;
  };
  std::vector<Task> tasks;
  [[nodiscard]] Countdown::Waits waits() const;
  /// Position of an instance in the tables below; -1: nothing here cares about it.
  [[nodiscard]] std::int32_t index_of(const Instance& i) const {
    return index[static_cast<std::size_t>(i.op)][static_cast<std::size_t>(i.group)];
  }
  std::vector<std::vector<std::int32_t>> index;  ///< op -> group -> position
  std::vector<std::vector<Release>> releases;    ///< tasks here that wait for it
  std::vector<std::vector<AgentId>> notify;      ///< agents to tell when it ends here
  std::vector<std::int32_t> task_of;             ///< the task that starts it; -1: another agent does
  std::vector<char> ends_here;
  /// What a rank leaves out here that goes on with a newer step (ProgressPolicy::global_step): tasks, instances that
  /// end here and transfers asked for, by rank: up to the end of its step, and after it.
  struct LeftOut {
    std::int64_t until_end = 0;
    std::int64_t after_end = 0;
  };
  std::vector<LeftOut> left_out;
  /// Tasks of this rank that wait for what it leaves out up to the end of its step, and come after it.
  std::vector<Release> next_of_left_out;
  std::int64_t ends = 0;   ///< instances that end here, per iteration
  std::int64_t asked = 0;  ///< transfers that other agents ask this one for, per iteration
};

/// Cost: O(instances of the whole plan, and pairs of which one waits for the other).
Duties duties_of(const Roles& roles, AgentId agent);

}  // namespace simsync
