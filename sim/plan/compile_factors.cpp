// Sufficient factors: workers exchange the two factors of a dense layer's gradient and multiply them.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "models/precision.hpp"
#include "sim/plan/compile.hpp"
#include "sim/plan/plan_writer.hpp"

namespace simsync::detail {

Seconds rebuild_time(const DeviceClass& device, const std::string& precision, double flops) {
  const auto peak = device.peak.find(precision);
  if (peak == device.peak.end())
    throw PlanError(fmt::format("sufficient factors are multiplied on the device, and '{}' has no peak rate for '{}'",
                                device.name, precision));
  const auto efficiency = device.compute_efficiency.find(precision);
  const double share = efficiency == device.compute_efficiency.end() ? 1.0 : efficiency->second;
  return Seconds{flops / (share * peak->second.value())};
}

void write_sufficient_factors(PlanWriter& writer) {
  const int n = writer.plan.rank_count();
  const DeviceClass& device = writer.device();
  for (const VariableId id : writer.model.backward_order()) {
    const VariableStrategy& how = writer.strategy.variables[id];
    if (!std::holds_alternative<SfbSynchronizer>(how.shards.front().synchronizer)) continue;
    const Variable& variable = writer.model.variable(id);
    const Layer& layer = writer.model.layer(variable.layer);
    const double rows = static_cast<double>(writer.samples()) * std::max(1.0, layer.dense_rows);
    const auto m = static_cast<double>(variable.shape.front());
    const double k = static_cast<double>(variable.elements()) / m;
    Op exchange;
    exchange.grouping = kWholeJob;
    exchange.queue = writer.communication;  // as every collective of the job: a communicator has one stream
    const double bytes = rows * (m + k) * weight_width(variable, writer.profile.precision);
    exchange.body = Collective{
        .primitive = CollectivePrimitive::AllGather,
        .protocol = {},
        .bytes = bytes,
        .setup = collective_setup(writer.cluster.collective, bytes) + writer.strategy.graph.per_operation_cost};
    exchange.priority = how.priority;
    exchange.after = {{writer.gradient_ready(variable.layer), 0}};
    exchange.reason = {Phase::Synchronize, static_cast<std::int32_t>(variable.layer), variable.name + " factors"};
    const OpId exchanged = writer.add(std::move(exchange));
    // Every worker multiplies the factors of the others: the outer products that the formula of HybComm leaves out.
    Op rebuild;
    rebuild.grouping = kEachRank;
    rebuild.queue = writer.compute;
    const Seconds duration = rebuild_time(device, writer.profile.precision, 2.0 * rows * m * k * (n - 1));
    rebuild.body = Compute{.duration = duration,
                           .parts = {{static_cast<std::int32_t>(variable.layer), Phase::Update, duration}},
                           .samples = {}};
    rebuild.after = {{exchanged, 0}};
    rebuild.reason = {Phase::Update, static_cast<std::int32_t>(variable.layer), variable.name + " from factors"};
    writer.to_update.emplace_back(id, writer.add(std::move(rebuild)));
  }
}

}  // namespace simsync::detail
