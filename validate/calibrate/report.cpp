#include "validate/calibrate/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/parse_units.hpp"
#include "strategies/names.hpp"

namespace simsync {
namespace {

std::string value_text(const CalibratedParameter& parameter, double value) {
  switch (parameter.scale.dimension) {
    case Dimension::Time:
      return format_seconds(Seconds{value});
    case Dimension::Rate:
      return fmt::format("{:.3g} GB/s", value / 1e9);
    case Dimension::Size:
      return format_bytes(value);
    case Dimension::Number:
      break;
  }
  return fmt::format("{:.4g}", value);
}

}  // namespace

std::string parameter_table(const CalibrationResult& result) {
  const Calibration& c = result.calibration;
  std::string out = fmt::format("{}: {} measurements, {}\n", c.cluster, c.rows, result.model);
  for (const auto& p : c.parameters) {
    const std::string spread =
        fmt::format("{} to {}", value_text(p, p.moved(-p.deviation)), value_text(p, p.moved(p.deviation)));
    out += fmt::format("  {:<46} {:>12}   {}\n", p.key, value_text(p, p.value),
                       p.deviation > 0.0 ? spread : "a whole number");
  }
  for (const auto& [key, value] : c.assumed) out += fmt::format("  {:<46} {:>12}   assumed\n", key, value);
  for (const auto& note : result.notes) out += fmt::format("  note: {}\n", note);
  return out;
}

std::string residual_table(const std::string& title, const std::vector<CalibratedRow>& rows, std::size_t worst) {
  const Residuals r = residuals_of(rows);
  double sum = 0.0;
  for (const auto& row : rows) sum += std::abs(row.error_pct());
  const double mean = rows.empty() ? 0.0 : sum / static_cast<double>(rows.size());
  std::string out = fmt::format("{}: {} rows, error mean {:.1f} %, median {:.1f} %, worst {:.1f} %\n", title,
                                rows.size(), mean, r.median_pct, r.worst_pct);
  std::vector<const CalibratedRow*> order;
  for (const auto& row : rows) order.push_back(&row);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return std::abs(a->error_pct()) > std::abs(b->error_pct()); });
  order.resize(std::min(order.size(), worst));
  for (const auto* row : order)
    out += fmt::format("  {:+7.1f} %  measured {:>10}, predicted {:>10}  {}  ({})\n", row->error_pct(),
                       format_seconds(row->probe.measured), format_seconds(row->predicted), describe(row->probe),
                       row->probe.where);
  return out;
}

const std::vector<std::string>& calibration_header() {
  static const std::vector<std::string> kHeader{"use",         "kind",      "ranks",     "ranks_per_node",
                                                "bytes",       "count",     "algorithm", "measured_s",
                                                "predicted_s", "error_pct", "source",    "compute_s"};
  return kHeader;
}

std::vector<std::string> calibration_cells(const std::string& use, const CalibratedRow& row) {
  const Probe& probe = row.probe;
  return {use,
          name_of(probe.kind),
          std::to_string(probe.ranks),
          probe.per_node > 0 ? std::to_string(probe.per_node) : "",
          format_number(probe.bytes),
          std::to_string(probe.count),
          name_of(probe.algorithm),
          format_number(probe.measured.value()),
          format_number(row.predicted.value()),
          format_number(row.error_pct()),
          probe.where,
          probe.kind == ProbeKind::Overlap ? format_number(probe.compute.value()) : ""};
}

}  // namespace simsync
