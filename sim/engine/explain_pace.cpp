#include "sim/engine/explain_pace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "sim/engine/engine.hpp"
#include "sim/plan/closed_network.hpp"

namespace simsync {
namespace {

/// The least number that at least such a share of the steps does not exceed.
std::size_t quantile(const std::vector<double>& shares, double share) {
  double sum = 0.0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    sum += shares[i];
    if (sum >= share) return i;
  }
  return shares.empty() ? 0 : shares.size() - 1;
}

std::string staleness_text(const std::vector<double>& shares) {
  double mean = 0.0;
  for (std::size_t i = 0; i < shares.size(); ++i) mean += static_cast<double>(i) * shares[i];
  constexpr double kMedian = 0.5;
  constexpr double kNearlyAll = 0.99;
  return fmt::format("  staleness    {:.1f} steps of others on average, half of all at most {}, 99 % at most {}\n",
                     mean, quantile(shares, kMedian), quantile(shares, kNearlyAll));
}

/// Shares of the recorded time in which a server was busy.
struct ServerUse {
  std::string name;
  double in = 0.0;  ///< its NIC
  double out = 0.0;
  double threads = 0.0;
};

std::vector<ServerUse> use_of_servers(const Plan& plan, const Prediction& prediction) {
  double elapsed = 0.0;
  std::map<Place, double> busy;  // seconds of one thread
  std::map<Place, int> threads;
  for (const Span& span : prediction.spans) {
    const Op& op = plan.ops[static_cast<std::size_t>(span.op)];
    elapsed = std::max(elapsed, span.end.value());
    const auto* work = std::get_if<HostWork>(&op.body);
    if (work == nullptr || !work->at.is_server() || op.queue < 0) continue;
    busy[work->at.place] += work->threads * std::min(work->duration, span.end - span.start).value();
    threads[work->at.place] = std::max(1, plan.queues[static_cast<std::size_t>(op.queue)].slots);
  }
  if (elapsed <= 0.0) return {};
  const auto share_of_link = [&](const std::string& name) {
    const auto found = std::find_if(prediction.links.begin(), prediction.links.end(),
                                    [&](const LinkUse& link) { return link.name == name; });
    return found == prediction.links.end() ? 0.0 : found->utilization;
  };
  std::vector<ServerUse> out;
  for (const auto& [server, seconds] : busy) {
    const std::string node = fmt::format("node{}", server.node);
    out.push_back({name_of(server), share_of_link(node + "/nic-in"), share_of_link(node + "/nic-out"),
                   seconds / (elapsed * threads.at(server))});
  }
  return out;
}

std::string servers_text(const Plan& plan, const Prediction& prediction) {
  std::string out;
  for (const ServerUse& server : use_of_servers(plan, prediction))
    out += fmt::format("  {:<13}link in {:.0f} %, out {:.0f} %, threads {:.0f} % busy\n", server.name,
                       100.0 * server.in, 100.0 * server.out, 100.0 * server.threads);
  return out;
}

/// The first worker's, simulated: what of its step overlaps is no part of the closed form.
Seconds step_of_one_alone(Problem problem) {
  problem.strategy.graph.workers = 1;
  problem.options.record = false;
  problem.options.progress = nullptr;
  compile_again(problem);
  return replay(problem.plan, problem.cluster, problem.options).step;
}

std::string closed_form_text(const ClosedNetwork& network, int workers, double simulated, Seconds alone) {
  const double exact = throughput(network, workers).back();
  constexpr double kShown = 0.05;
  const double more = 100.0 * (exact / simulated - 1.0);
  std::string out = fmt::format(
      "  closed form  {:.3g} steps/s, {:+.1f} % of the simulated (mean value analysis: random times of service; "
      "nothing of a step overlaps, so that one alone takes {})\n",
      exact, std::abs(more) < kShown ? 0.0 : more, format_seconds(network.round()));
  const Station* most = network.bottleneck();
  if (most == nullptr) return out;
  return out +
         fmt::format(
             "  saturation   from {:.1f} workers on: one alone takes {}, {} of it {}, so at most {:.3g} steps/s\n",
             saturation(network, alone), format_seconds(alone), format_seconds(most->demand), most->name,
             1.0 / most->demand.value());
}

std::string span_of_steps(const Prediction& prediction) {
  const auto [fastest, slowest] = std::minmax_element(prediction.rank_steps.begin(), prediction.rank_steps.end());
  return fmt::format("from {} to {} a step", format_seconds(*fastest), format_seconds(*slowest));
}

/// Of steps with backup workers.
std::string backup_text(const Plan& plan, const Prediction& prediction) {
  const int workers = plan.rank_count();
  const int needed = workers - plan.progress.backups;
  double own = 0.0;
  for (const Seconds step : prediction.rank_steps) own += prediction.step / step;
  return fmt::format(
             "Backup workers:\n  together     {:.3g} steps/s, each with the first {} of {} gradients of every "
             "variable\n"
             "  workers      each {}, {:.2f} in all while one counts\n"
             "  thrown away  {:.1f} % of the gradients: those of steps that were over\n",
             1.0 / prediction.step.value(), needed, workers, span_of_steps(prediction), own,
             100.0 * prediction.dropped) +
         servers_text(plan, prediction);
}

}  // namespace

PaceLimit pace_limit(const Problem& problem, const Prediction& prediction) {
  double steps = 0.0;  // of a mean worker in the time of one common step
  for (const Seconds step : prediction.rank_steps) steps += prediction.step / step;
  steps /= static_cast<double>(std::max<std::size_t>(1, prediction.rank_steps.size()));
  PaceLimit most{"compute", std::min(1.0, steps * (prediction.compute / prediction.step))};
  const auto consider = [&](const char* name, double busy) {
    if (busy > most.busy) most = {name, busy};
  };
  if (!prediction.links.empty()) consider("links", prediction.links.front().utilization);
  for (const ServerUse& server : use_of_servers(problem.plan, prediction)) {
    consider("network of the servers", std::max(server.in, server.out));
    consider("server CPU", server.threads);
  }
  return most;
}

std::string pace_text(const Problem& problem, const Prediction& prediction) {
  if (problem.plan.progress.backups > 0) return backup_text(problem.plan, prediction);
  const int workers = problem.plan.rank_count();
  const double rate = workers / prediction.step.value();
  std::string out = fmt::format("Asynchronous workers:\n  together     {:.3g} steps/s, each {}\n", rate,
                                span_of_steps(prediction));
  out += staleness_text(prediction.staleness);
  out += servers_text(problem.plan, prediction);
  try {
    const ClosedNetwork network = closed_network(problem.plan, problem.cluster);
    out += closed_form_text(network, workers, rate, step_of_one_alone(problem));
  } catch (const PlanError& e) {
    out += fmt::format("  closed form  none: {}\n", e.what());
  }
  return out;
}

}  // namespace simsync
