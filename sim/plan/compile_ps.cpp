#include <algorithm>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/reading_order.hpp"
#include "sim/plan/variable_on_servers.hpp"

namespace simsync::detail {
namespace {

bool sums_on_hosts(const PlanWriter& writer) {
  const auto on_host = [](const Shard& shard) {
    const auto* ps = std::get_if<PsSynchronizer>(&shard.synchronizer);
    return ps != nullptr && ps->local_aggregation;
  };
  return std::any_of(writer.strategy.variables.begin(), writer.strategy.variables.end(),
                     [&](const auto& how) { return std::any_of(how.shards.begin(), how.shards.end(), on_host); });
}

/// What the first worker's host knows of all of them.
OpId write_join(PlanWriter& writer, const std::vector<After>& returned, const char* label) {
  Op op;
  op.grouping = kWholeJob;
  op.body = HostWork{.at = {End::Kind::Fixed, {writer.plan.ranks.front().node, -1}}};
  op.after = returned;
  op.reason = {Phase::Start, -1, label};
  return writer.add(std::move(op));
}

/// What a worker's next step waits for besides its own compute.
std::vector<After> write_returned(PlanWriter& writer, const std::vector<VariableOnServers>& all) {
  std::vector<After> returned;
  std::vector<After> own;
  for (const auto& variable : all) {
    returned.insert(returned.end(), variable.returned().begin(), variable.returned().end());
    own.insert(own.end(), variable.summed().begin(), variable.summed().end());
  }
  if (returned.empty()) writer.plan.progress.backups = 0;  // a model without variables: nobody is late
  if (writer.plan.progress.backups == 0) return returned;
  // TensorFlow: a worker whose gradients were taken or dropped takes the token of a step that has ended.
  writer.plan.progress.global_step = write_join(writer, returned, "global step");
  own.push_back({writer.plan.progress.global_step, 0});
  return own;
}

}  // namespace

void write_parameter_servers(PlanWriter& writer) {
  if (sums_on_hosts(writer) && !writer.hosts_alike())
    writer.note("hosts differ in ranks or processors: each is charged what the fullest and slowest takes");
  const bool several = writer.plan.rank_count() > static_cast<int>(writer.plan.nodes.size());
  if (sums_on_hosts(writer) && several && !in_lock_step(writer.strategy))
    writer.note("workers of one host sum their gradients before these leave: they wait for each other in every step");
  std::vector<VariableOnServers> all;
  for (const VariableId id : writer.model.backward_order()) all.emplace_back(writer, id);
  const bool reads_inside_step = writer.strategy.graph.pull_at_step_start;
  const bool ahead = !in_lock_step(writer.strategy);
  for (auto& variable : all) {
    variable.write_push();
    if (reads_inside_step) variable.write_refresh();
  }
  const std::vector<After> returned = write_returned(writer, all);
  OpId start = -1;
  if (ahead && !reads_inside_step)
    throw PlanError(
        "strategy '" + writer.strategy.name +
        "' lets workers run ahead, and reads variables as they are updated: only those that read them at the "
        "start of a step (pull_at_step_start) can run ahead");
  if (reads_inside_step && !returned.empty()) {
    Op op;
    op.grouping = ahead ? kEachRank : kWholeJob;
    HostWork wait;
    if (!ahead) wait.at = {End::Kind::Fixed, {writer.plan.ranks.front().node, -1}};
    op.body = wait;
    op.after = returned;
    op.after.push_back({writer.micro_steps.back().backward.front(), 0});
    // All workers have ended their step: what the fastest ones wait for, so many steps later.
    if (const auto slack = writer.strategy.graph.slack)
      op.after.push_back({write_join(writer, returned, "clock of the slowest worker"), *slack});
    op.random_order = writer.strategy.graph.random_pull_order;
    op.reason = {Phase::Start, -1, "next step"};
    start = writer.add(std::move(op));
    if (ahead) writer.plan.progress.step_end = start;
    // A layer without variables does not go ahead of a step that may be left out.
    if (writer.plan.progress.global_step >= 0) writer.gates[0].push_back(start);
  }
  for (const std::size_t variable : reading_order(writer.strategy, all.size())) all[variable].write_pull(start);
  for (const auto& [server, queue] : writer.server_queue) writer.plan.servers.push_back(server);
}

}  // namespace simsync::detail
