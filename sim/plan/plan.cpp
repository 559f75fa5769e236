#include "sim/plan/plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"

namespace simsync {

Random draws_of(const Plan& plan, DrawPurpose purpose, int group, int iteration) {
  return Random(stream_seed(plan.draws.seed, {static_cast<std::uint64_t>(purpose), static_cast<std::uint64_t>(group),
                                              static_cast<std::uint64_t>(iteration)}));
}

namespace {

/// Steps in which a rank goes once round an order of its own, with each of the profiled ones equally often: not much
/// fewer than two dozen, because in short ones a slow step would always be made up for soon.
std::size_t block_of(std::size_t profiled) {
  constexpr std::size_t kShortest = 24;
  return std::max<std::size_t>(1, kShortest / profiled) * profiled;
}

/// Which of the profiled steps it is. Every block has the same order, so that as many steps have each equally often
/// wherever they begin.
std::size_t profiled_step(const Plan& plan, std::size_t profiled, int rank, int iteration) {
  const std::size_t block = block_of(profiled);
  const auto k = static_cast<std::size_t>(iteration);
  Random random = draws_of(plan, DrawPurpose::ProfiledSteps, rank, 0);
  std::vector<std::size_t> order(block);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t place = 0; place <= k % block; ++place)
    std::swap(order[place], order[place + random.below(block - place)]);
  return order[k % block] % profiled;
}

}  // namespace

Seconds compute_time(const Plan& plan, const Op& op, int rank, int iteration) {
  const Compute& work = op.compute();
  if (!plan.steps_vary()) return work.duration;
  Random random = draws_of(plan, DrawPurpose::ComputeTime, rank, iteration);
  const Seconds drawn =
      work.samples.empty() ? work.duration : work.samples[profiled_step(plan, work.samples.size(), rank, iteration)];
  const bool apart = iteration == 0 && !plan.has_common_steps();
  const double late = apart ? 1.0 + random.unit() * (plan.rank_count() - 1) : 1.0;
  if (plan.draws.step_variation <= 0.0) return late * drawn;
  // Uniform between 1 - sqrt(3) v and 1 + sqrt(3) v: mean 1, standard deviation v.
  const double reach = std::sqrt(3.0) * plan.draws.step_variation;
  return late * (1.0 + reach * (2.0 * random.unit() - 1.0)) * drawn;
}

int longest_block(const Plan& plan) {
  std::size_t most = 0;
  for (const Op& op : plan.ops)
    if (const auto* work = std::get_if<Compute>(&op.body)) most = std::max(most, work->samples.size());
  return most > 0 ? static_cast<int>(block_of(most)) : 0;
}

std::vector<bool> after_step_end(const Plan& plan) {
  std::vector<std::vector<OpId>> releases(plan.ops.size());
  for (std::size_t id = 0; id < plan.ops.size(); ++id)
    for (const After& after : plan.ops[id].after)
      if (after.lag == 0) releases[static_cast<std::size_t>(after.op)].push_back(static_cast<OpId>(id));
  std::vector<bool> out(plan.ops.size(), false);
  std::vector<OpId> to_visit{plan.progress.step_end};
  while (!to_visit.empty() && plan.progress.step_end >= 0) {
    const OpId op = to_visit.back();
    to_visit.pop_back();
    for (const OpId next : releases[static_cast<std::size_t>(op)]) {
      if (out[static_cast<std::size_t>(next)]) continue;
      out[static_cast<std::size_t>(next)] = true;
      to_visit.push_back(next);
    }
  }
  return out;
}

std::string title_of(const Plan& plan, const ComputePart& part) {
  const std::string phase = name_of(part.phase);
  const auto layer = static_cast<std::size_t>(part.layer);
  return part.layer >= 0 && layer < plan.layers.size() ? phase + " " + plan.layers[layer] : phase;
}

std::string title_of(const Plan& plan, const Op& op) {
  if (const auto* work = std::get_if<Compute>(&op.body); work != nullptr && work->parts.size() > 1)
    return title_of(plan, work->parts.front()) + " ... " + title_of(plan, work->parts.back());
  if (const auto* all = std::get_if<Collective>(&op.body))
    return std::string(name_of(all->primitive)) + " " + op.reason.label;
  if (op.reason.phase == Phase::Start) return op.reason.label;
  return std::string(name_of(op.reason.phase)) + " " + op.reason.label;
}

void Plan::set_ranks(std::vector<Place> places) {
  ranks = std::move(places);
  nodes.clear();
  node_begin.clear();
  std::vector<int> rank_of(ranks.size());
  std::vector<int> node_of(ranks.size());
  std::iota(rank_of.begin(), rank_of.end(), 0);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (nodes.empty() || nodes.back() != ranks[r].node) {
      nodes.push_back(ranks[r].node);
      node_begin.push_back(static_cast<int>(r));
    }
    node_of[r] = static_cast<int>(nodes.size()) - 1;
  }
  node_begin.push_back(rank_count());
  groupings.clear();
  groupings.emplace_back("rank", std::move(rank_of));
  groupings.emplace_back("node", std::move(node_of));
  groupings.emplace_back("job", std::vector<int>(ranks.size(), 0));
}

void check(const Plan& plan) {
  const auto ops = static_cast<OpId>(plan.ops.size());
  std::vector<int> waits(plan.ops.size(), 0);
  std::vector<std::vector<OpId>> releases(plan.ops.size());
  for (OpId id = 0; id < ops; ++id) {
    const Op& op = plan.ops[static_cast<std::size_t>(id)];
    SIMSYNC_ASSERT(op.grouping >= 0 && op.grouping < static_cast<GroupingId>(plan.groupings.size()));
    SIMSYNC_ASSERT(op.queue >= -1 && op.queue < static_cast<QueueId>(plan.queues.size()));
    for (const After& after : op.after) {
      SIMSYNC_ASSERT(after.op >= 0 && after.op < ops && after.lag >= 0);
      SIMSYNC_ASSERT(after.may_miss == 0 || (after.may_miss > 0 && after.may_miss < plan.rank_count()));
      if (after.lag != 0) continue;
      ++waits[static_cast<std::size_t>(id)];
      releases[static_cast<std::size_t>(after.op)].push_back(id);
    }
  }
  std::vector<OpId> ready;
  for (OpId id = 0; id < ops; ++id)
    if (waits[static_cast<std::size_t>(id)] == 0) ready.push_back(id);
  std::size_t done = 0;
  while (!ready.empty()) {
    const OpId id = ready.back();
    ready.pop_back();
    ++done;
    for (const OpId next : releases[static_cast<std::size_t>(id)])
      if (--waits[static_cast<std::size_t>(next)] == 0) ready.push_back(next);
  }
  SIMSYNC_ASSERT(done == plan.ops.size());
}

}  // namespace simsync
