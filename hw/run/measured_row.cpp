#include "hw/run/measured_row.hpp"

#include <algorithm>
#include <thread>

#include "base/parse_units.hpp"
#include "sim/problem/row_key.hpp"
#include "sim/problem/single_devices.hpp"

namespace simsync {

const std::vector<std::string>& measured_header() {
  static const std::vector<std::string> kHeader =
      header_with({"step_time_p10_s", "step_time_p90_s", "backend", "checked", "processor_share", "stolen_share",
                   "settings", "step_times_s"});
  return kHeader;
}

double device_slowdown(const Problem& problem, int rank) {
  const Place place = problem.plan.ranks[static_cast<std::size_t>(rank)];
  return problem.cluster.group_of(place.node).compute_slowdown;
}

std::vector<std::string> measured_cells(const PredictRequest& request, const Problem& problem,
                                        const Measurement& measured, const std::string& backend) {
  std::vector<double> slowdowns;
  for (int rank = 0; rank < problem.plan.rank_count(); ++rank) slowdowns.push_back(device_slowdown(problem, rank));
  std::sort(slowdowns.begin(), slowdowns.end());
  const int needed = request.workers - problem.plan.progress.backups;
  const double slowest = slowdowns[static_cast<std::size_t>(needed) - 1];
  const double step = measured.step().value();
  const double compute = slowest * problem.profile.step().value();
  const int batches = problem.strategy.graph.batches() - problem.plan.progress.backups;
  const double samples = static_cast<double>(problem.samples()) * batches;
  std::string all;
  for (const Seconds s : measured.steps) {
    if (!all.empty()) all += ';';
    all += format_number(s.value());
  }
  return {problem.model.name(),
          problem.cluster.name,
          request.strategy,
          mode_of(problem.strategy),
          std::to_string(request.workers),
          std::to_string(problem.samples()),
          format_number(step),
          format_number(samples / step),
          format_number(compute),
          format_number(std::max(0.0, step - compute)),
          format_number(scaling_efficiency(problem, samples / step)),
          format_number(measured.quantile(0.1).value()),
          format_number(measured.quantile(0.9).value()),
          backend + "+grpc",
          std::to_string(measured.checked),
          format_number(measured.processors / std::max(1U, std::thread::hardware_concurrency())),
          format_number(measured.stolen),
          settings_text(request.settings),
          all};
}

}  // namespace simsync
