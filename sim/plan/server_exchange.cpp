#include "sim/plan/server_exchange.hpp"

#include <utility>

#include "sim/plan/server_ops.hpp"

namespace simsync {
namespace {

using detail::ServerPiece;

class ExchangeWriter {
public:
  ExchangeWriter(const Cluster& cluster, const ServerExchange& exchange)
      : exchange_(exchange),
        model_(exchange.name, 1, "sample"),
        writer_{.model = model_, .profile = profile_, .cluster = cluster, .strategy = strategy_, .plan = plan_},
        ops_(writer_) {
    plan().model = plan().strategy = exchange.name;
    plan().set_ranks(exchange.ranks);
    plan().servers = {exchange.server};
  }

  Plan push() {
    std::vector<OpId> sent;
    std::vector<After> summed;
    for (int i = 0; i < exchange_.tensors; ++i) {
      const auto [transfer, applied] = push(kEachRank, {End::Kind::Host, {}});
      sent.push_back(transfer);
      summed.push_back(applied);
    }
    const After all = gather(std::move(summed));
    for (const OpId id : sent) op(id).after = {{all.op, 1}};
    return std::move(plan());
  }

  Plan pull() {
    const After start = gather({});
    const std::vector<OpId> read = pulls(start, kEachRank, exchange_.bytes);
    op(start.op).after = {{read.back(), 1}};
    return std::move(plan());
  }

  /// The queue of the reads is the first rank's, so that it asks for each.
  Plan reads(double read) {
    const After start = gather({});
    writer_.pull = writer_.add_queue({.name = "reads", .grouping = kWholeJob, .slots = 1});
    std::vector<After> ended;
    for (const OpId id : pulls(start, kWholeJob, read)) {
      op(id).timed = true;
      ended.push_back({id, 0});
    }
    for (std::size_t rank = 1; rank < exchange_.ranks.size(); ++rank) {
      const auto [transfer, applied] = push(kWholeJob, {End::Kind::Fixed, {exchange_.ranks[rank].node, -1}});
      op(transfer).after = {start};
      ended.push_back(applied);
    }
    op(start.op).after = {{gather(std::move(ended)).op, 1}};
    return std::move(plan());
  }

  Plan message() {
    for (int i = 0; i < exchange_.tensors; ++i)
      (void)writer_.add(ops_.push(next_piece(exchange_.bytes), kEachRank, {End::Kind::Device, {}}, exchange_.bytes));
    const auto last = static_cast<OpId>(plan().ops.size()) - 1;
    for (Op& each : plan().ops) each.after = {{last, 1}};
    return std::move(plan());
  }

private:
  [[nodiscard]] Plan& plan() { return writer_.plan; }
  [[nodiscard]] Op& op(OpId id) { return plan().ops[static_cast<std::size_t>(id)]; }
  [[nodiscard]] ServerPiece piece(double bytes, std::int32_t tensor) const {
    return {.server = exchange_.server, .bytes = bytes, .tensor = tensor, .label = exchange_.name};
  }
  [[nodiscard]] ServerPiece next_piece(double bytes) { return piece(bytes, plan().tensors++); }

  /// The transfer of one more tensor to the server, and what ends once it has been summed.
  std::pair<OpId, After> push(GroupingId grouping, End from) {
    const ServerPiece pushed = next_piece(exchange_.bytes);
    const OpId sent = writer_.add(ops_.push(pushed, grouping, from, pushed.bytes));
    const After summed = ops_.sum(pushed, grouping, pushed.bytes, ops_.dispatched(pushed, grouping, {sent, 0}));
    return {sent, ops_.work(pushed, kWholeJob, {.action = HostAction::Apply}, {summed})};
  }

  /// The transfers of all tensors from the server, once `start` has ended.
  std::vector<OpId> pulls(After start, GroupingId grouping, double bytes) {
    std::vector<OpId> read;
    for (int i = 0; i < exchange_.tensors; ++i) {
      const ServerPiece pulled = next_piece(bytes);
      const HostWork serve{.action = HostAction::Serve, .duration = ops_.per_tensor(pulled)};
      Op transfer = ops_.pull(pulled, grouping, {End::Kind::Host, {}});
      transfer.after = {ops_.work(pulled, grouping, serve, {ops_.dispatched(pulled, grouping, start)})};
      read.push_back(writer_.add(std::move(transfer)));
    }
    return read;
  }

  /// Ends on the server, at once, when all of these have ended.
  After gather(std::vector<After> ended) {
    return ops_.work(piece(exchange_.bytes, 0), kWholeJob, {.action = HostAction::Serve}, std::move(ended));
  }

  const ServerExchange& exchange_;
  Model model_;
  Profile profile_;
  Strategy strategy_;
  Plan plan_;
  detail::PlanWriter writer_;
  detail::ServerOps ops_;
};

}  // namespace

Plan push_plan(const Cluster& cluster, const ServerExchange& exchange) {
  return ExchangeWriter(cluster, exchange).push();
}

Plan pull_plan(const Cluster& cluster, const ServerExchange& exchange) {
  return ExchangeWriter(cluster, exchange).pull();
}

Plan reads_plan(const Cluster& cluster, const ServerExchange& exchange, double read) {
  return ExchangeWriter(cluster, exchange).reads(read);
}

Plan message_plan(const Cluster& cluster, const ServerExchange& exchange) {
  return ExchangeWriter(cluster, exchange).message();
}

}  // namespace simsync
