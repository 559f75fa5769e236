#include "cli/layout_report.hpp"

#include <fmt/format.h>

#include "base/csv.hpp"
#include "strategies/names.hpp"

namespace simsync {

std::optional<double> model_flops_utilization(const LayoutQuestion& question, const std::string& precision,
                                              Seconds step) {
  const Cluster& cluster = question.cluster();
  double peak = 0.0;
  for (const Place& worker : cluster.workers(question.task().workers)) {
    const DeviceClass& device = cluster.devices.at(cluster.group_of(worker.node).device);
    const auto rate = device.peak.find(precision);
    if (rate == device.peak.end()) return std::nullopt;
    peak += rate->second.value();
  }
  double flops = 0.0;
  for (LayerId id = 0; id < question.model().layer_count(); ++id) {
    const Layer& layer = question.model().layer(id);
    flops += layer.forward_flops.value() + layer.backward_flops.value();
  }
  return static_cast<double>(question.task().samples) * flops / (peak * step.value());
}

LayoutFamily family_of(const Layout& layout) {
  if (layout.ranks() == 1) return LayoutFamily::Data;
  if (layout.pipeline == 1) return LayoutFamily::Tensor;
  return layout.tensor == 1 ? LayoutFamily::Pipeline : LayoutFamily::Hybrid;
}

const char* name_of(LayoutFamily family) {
  switch (family) {
    case LayoutFamily::Data:
      return "neither";
    case LayoutFamily::Tensor:
      return "tensor";
    case LayoutFamily::Pipeline:
      return "pipeline";
    case LayoutFamily::Hybrid:
      break;
  }
  return "both";
}

std::vector<EvaluatedLayout> best_of_families(const LayoutSearchResult& result) {
  std::vector<EvaluatedLayout> out;
  for (const LayoutFamily family :
       {LayoutFamily::Data, LayoutFamily::Tensor, LayoutFamily::Pipeline, LayoutFamily::Hybrid})
    for (const EvaluatedLayout& one : result.evaluated) {
      if (family_of(one.layout) != family) continue;
      out.push_back(one);
      break;
    }
  return out;
}

const EvaluatedLayout* best_by_rule(const LayoutSearchResult& result) {
  for (const EvaluatedLayout& one : result.evaluated)
    if (one.cost.fits() && one.layout.splits.empty()) return &one;
  return nullptr;
}

std::string layout_csv_header() {
  return csv_row({"model",       "cluster",   "workers",       "samples",      "tensor",     "pipeline",
                  "replicas",    "schedule",  "chunks",        "stage_blocks", "sequence",   "micro_batch",
                  "micro_steps", "recompute", "zero",          "splits",       "estimate_s", "replay_s",
                  "solver",      "fits",      "missing_bytes", "experts",      "context"});
}

std::string layout_csv_row(const LayoutQuestion& question, const ShownLayout& layout) {
  const auto& [one, cost] = layout.found;
  const LayoutTask& task = question.task();
  const auto number = [](auto value) { return fmt::format("{}", value); };
  return csv_row({question.model().name(),
                  question.cluster().name,
                  number(task.workers),
                  number(task.samples),
                  number(one.tensor),
                  number(one.pipeline),
                  number(task.replicas(one)),
                  name_of(one.schedule),
                  number(one.chunks),
                  name_of(one.blocks),
                  one.sequence ? "true" : "false",
                  number(one.micro_batch),
                  number(task.micro_steps(one)),
                  name_of(one.recompute),
                  number(one.zero),
                  text_of(one.splits),
                  fmt::format("{:.9g}", cost.step.value()),
                  layout.replayed ? fmt::format("{:.9g}", layout.replayed->value()) : "",
                  layout.solver,
                  cost.fits() ? "true" : "false",
                  number(cost.over.count),
                  number(one.experts),
                  number(one.context)});
}

}  // namespace simsync
