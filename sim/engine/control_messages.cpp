#include "sim/engine/control_messages.hpp"

#include <algorithm>

namespace simsync::detail {
namespace {

constexpr int kNowhere = -1;     ///< every rank knows for itself
constexpr int kFromWorkers = 0;  ///< number of the connections on which workers send

bool ends_on_server(const Op& op) {
  if (const auto* work = std::get_if<HostWork>(&op.body)) return work->at.is_server();
  const auto* moved = std::get_if<Transfer>(&op.body);
  return moved != nullptr && moved->to.is_server();
}

}  // namespace

ControlMessages::ControlMessages(const Plan& plan, const Groups& groups, const Topology& topology, PortQueues& ports,
                                 const SendQueues& sends)
    : plan_(plan),
      groups_(groups),
      topology_(topology),
      ports_(ports),
      sends_(sends),
      any_(std::any_of(plan.ops.begin(), plan.ops.end(), [](const Op& op) { return op.concerns_server(); })) {}

Seconds ControlMessages::notify(const Instance& done, OpId waiting, int group) {
  const Op& before = op_of(done.op);
  const Op& after = op_of(waiting);
  if (!before.concerns_server() && !after.concerns_server()) return {};
  return between(ends_at(before, done.group), starts_at(after, group),
                 ends_on_server(before) ? plan_.server_connection : kFromWorkers);
}

Seconds ControlMessages::request(const Instance& transfer) {
  const Op& op = op_of(transfer.op);
  if (!op.concerns_server()) return {};
  const int asked = node_at(op.transfer().from, op, transfer.group);
  const Seconds travel = between(starts_at(op, transfer.group), asked, kFromWorkers);
  return op.transfer().asks_host() ? travel + topology_.cluster().group_of(asked).cpu.dispatch_latency : travel;
}

Seconds ControlMessages::acknowledge(const Instance& transfer) {
  const Op& op = op_of(transfer.op);
  if (!op.concerns_server() || op.kind() != OpKind::Transfer) return {};
  return between(ends_at(op, transfer.group), starts_at(op, transfer.group), plan_.server_connection);
}

int ControlMessages::node_at(const End& end, const Op& op, int group) const {
  return end.is_fixed() ? end.place.node : node_of_group(op, group);
}

int ControlMessages::node_of_group(const Op& op, int group) const {
  return groups_.first_place(op.grouping, group).node;
}

int ControlMessages::starts_at(const Op& op, int group) const {
  const std::optional<End> at = op.started_at();
  return at ? node_at(*at, op, group) : kNowhere;
}

int ControlMessages::ends_at(const Op& op, int group) const {
  return op.kind() == OpKind::Transfer ? node_at(op.transfer().to, op, group) : starts_at(op, group);
}

Seconds ControlMessages::between(int from, int to, int connection) {
  if (from == to || from == kNowhere || to == kNowhere) return {};
  const auto [known, fresh] = known_.try_emplace({from, to});
  if (fresh) known->second = topology_.path({from, -1}, {to, -1});
  return ports_.control_message(from, to, known->second.links, known->second.latency,
                                sends_.control_message({from, to, connection}));
}

}  // namespace simsync::detail
