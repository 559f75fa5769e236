#include "hw/run/run_probe.hpp"

#include "base/parse_units.hpp"
#include "strategies/names.hpp"

namespace simsync {

ProbeTimes run_probe(const ProbeRun& run, const Cluster& cluster, LaunchOptions options) {
  options.run.warm_up = run.warm_up;
  options.run.iterations = run.iterations;
  const Measurement measured = launch(plan_of(run.probe, cluster), options);
  if (times_some_ops(run.probe.kind)) return {measured.timed};
  return {run.probe.collective() ? measured.steps : measured.active};
}

const std::vector<std::string>& probe_header() {
  static const std::vector<std::string> kHeader{"kind",   "ranks",      "bytes",      "count",      "algorithm",
                                                "time_s", "time_p10_s", "time_p90_s", "iterations", "compute_s"};
  return kHeader;
}

std::vector<std::string> probe_cells(const Probe& probe, const ProbeTimes& times) {
  return {name_of(probe.kind),
          std::to_string(probe.ranks),
          format_number(probe.bytes),
          std::to_string(probe.count),
          probe.to_server() || probe.kind == ProbeKind::Message ? "" : name_of(probe.algorithm),
          format_number(times.median().value()),
          format_number(quantile_of(times.each, 0.1).value()),
          format_number(quantile_of(times.each, 0.9).value()),
          std::to_string(times.each.size()),
          probe.kind == ProbeKind::Overlap ? format_number(probe.compute.value()) : ""};
}

}  // namespace simsync
