// What the processes of a run hold, handed from one to the other without any wires.
#include "hw/run/buffers.hpp"

#include "tests/support/catch.hpp"
#include "tests/testbed/small_run.hpp"

using namespace simsync;

namespace {

constexpr int kIterations = 4;
using Options = std::map<std::string, std::string>;

/// The largest tensor of two workers and a server.
class Exchange {
public:
  explicit Exchange(const Options& options = {}) : plan_(test::small_plan("ps", 2, options)) {
    for (const Op& op : plan_.ops)
      if (op.tensor() >= 0 && op.bytes() > 1e6) tensor_ = op.tensor();
  }

  /// Everything of one iteration that both workers and the server do.
  void step(int iteration) {
    for (int worker = 0; worker < 2; ++worker) push(worker, iteration);
    update(iteration);
  }
  void push(int worker, int iteration) {
    hand_over(workers_[static_cast<std::size_t>(worker)], server_, {op_of(Phase::Push), worker}, iteration);
    if (const OpId sum = op_of(Phase::Aggregate); sum >= 0) server_.add({sum, worker}, iteration);
  }
  void update(int iteration) { server_.update({op_of(Phase::Update), 0}, iteration); }
  /// What worker 0 would read.
  std::vector<std::byte> kept(int iteration) {
    const auto values = server_.outgoing({op_of(Phase::Pull), 0}, iteration);
    return {values.begin(), values.end()};
  }
  void read(int iteration) { hand_over(server_, workers_[0], {op_of(Phase::Pull), 0}, iteration); }
  void check(int iteration, bool all) { workers_[0].check_pull({op_of(Phase::Pull), 0}, iteration, all); }
  /// A byte of what worker 0 read, at this float, is another one.
  void spoil(std::size_t position) {
    const std::byte wrong{0x55};
    const std::span<const std::byte> piece(&wrong, 1);
    workers_[0].take({.kind = FrameKind::Data,
                      .op = op_of(Phase::Pull),
                      .offset = position * sizeof(float),
                      .total = std::size_t{1} << 30},
                     std::span(&piece, 1));
  }

private:
  [[nodiscard]] OpId op_of(Phase phase) const {
    for (std::size_t id = 0; id < plan_.ops.size(); ++id)
      if (plan_.ops[id].tensor() == tensor_ && plan_.ops[id].reason.phase == phase) return static_cast<OpId>(id);
    return -1;
  }
  static void hand_over(Buffers& from, Buffers& to, const Instance& i, int iteration) {
    const auto payload = from.outgoing(i, iteration);
    to.take({.kind = FrameKind::Data, .op = i.op, .group = i.group, .iteration = iteration, .total = payload.size()},
            std::span(&payload, 1));
  }

  Plan plan_;
  std::int32_t tensor_ = -1;
  Roles roles_{plan_};
  std::array<Buffers, 2> workers_{Buffers(roles_, 0, Optimizer::Momentum, kIterations),
                                  Buffers(roles_, 1, Optimizer::Momentum, kIterations)};
  Buffers server_{roles_, 2, Optimizer::Momentum, kIterations};
};

/// Far from every sample of a tensor of 750,000 floats.
constexpr std::size_t kNoSample = 1000;

}  // namespace

TEST_CASE("a wrong value between the samples shows in the step that compares everything", "[run]") {
  Exchange exchange;
  for (int k = 0; k < kIterations; ++k) {
    exchange.step(k);
    exchange.read(k);
    exchange.check(k, true);
  }
  exchange.step(kIterations);
  exchange.read(kIterations);
  exchange.spoil(kNoSample);
  exchange.check(kIterations, false);
  CHECK_THROWS_AS(exchange.check(kIterations, true), WrongResult);
}

TEST_CASE("bounded staleness: a read may lack as many updates as the bound, and no more", "[run]") {
  Exchange exchange(Options{{"staleness", "1"}});
  exchange.step(0);
  exchange.step(1);
  exchange.read(0);
  exchange.check(1, true);  // both updates
  exchange.step(2);
  exchange.check(2, true);  // what was read lacks the last one
  exchange.step(3);
  CHECK_THROWS_AS(exchange.check(3, false), WrongResult);
}

TEST_CASE("asynchronous: what is read has moved on, and is alike between the samples", "[run]") {
  Exchange exchange(Options{{"sync", "false"}});
  exchange.step(0);
  exchange.read(0);
  exchange.check(0, true);
  CHECK_THROWS_AS(exchange.check(1, false), WrongResult);  // the same again
  exchange.step(1);
  exchange.read(1);
  exchange.spoil(kNoSample);
  CHECK_THROWS_AS(exchange.check(1, true), WrongResult);
}

TEST_CASE("backup workers: what comes too late changes nothing", "[run]") {
  Exchange exchange(Options{{"backups", "1"}});
  Exchange alone(Options{{"backups", "1"}});
  exchange.push(1, 0);
  exchange.push(0, 0);  // before the update, and beyond those that it needs
  exchange.update(0);
  exchange.push(1, 1);
  exchange.update(1);
  exchange.push(0, 1);  // after its update
  exchange.push(0, 2);
  exchange.update(2);
  for (const auto& [worker, iteration] : {std::pair{1, 0}, {1, 1}, {0, 2}}) {
    alone.push(worker, iteration);
    alone.update(iteration);
  }
  CHECK(exchange.kept(2) == alone.kept(2));
  Exchange other(Options{{"backups", "1"}});
  for (int k = 0; k < 3; ++k) other.step(k);
  CHECK_FALSE(exchange.kept(2) == other.kept(2));
  exchange.read(2);
  exchange.check(2, true);
}

TEST_CASE("a rank checks its part of a sum over its group, and what every member contributed") {
  const Plan plan = test::small_plan("fsdp", 4, {{"group", "2"}});
  const Roles roles(plan);
  constexpr int kSelf = 3;  // shard group 2 and 3, replica group 1 and 3
  Buffers own(roles, kSelf, Optimizer::Momentum, kIterations);
  const auto op_of = [&](CollectivePrimitive primitive) {
    for (std::size_t id = 0; id < plan.ops.size(); ++id)
      if (plan.ops[id].kind() == OpKind::Collective && plan.ops[id].collective().primitive == primitive)
        return static_cast<OpId>(id);
    return OpId{-1};
  };
  /// Puts the sum of these ranks' gradients from a position on into the output.
  const auto fill = [&](OpId op, const std::vector<int>& ranks, std::size_t begin) {
    const CollectiveBuffers buffers = own.collective(op, 1, true);
    for (std::size_t at = 0; at < buffers.out.size(); ++at) {
      float plain = 0.0F;
      for (const int rank : ranks) plain += static_cast<float>(rank + 1);
      buffers.out[at] = plain;
    }
    for (const std::size_t at : buffers.looked_at) {
      buffers.out[at] = 0.0F;
      for (const int rank : ranks) buffers.out[at] += gradient_at(rank, begin + at, 1);
    }
    return buffers;
  };
  const OpId scattered = op_of(CollectivePrimitive::ReduceScatter);
  const CollectiveBuffers part = own.collective(scattered, 1, true);
  REQUIRE(part.in.size() == 2 * part.out.size());
  fill(scattered, {2, 3}, part.out.size());
  CHECK_NOTHROW(own.check_collective(scattered, 1, true));
  fill(scattered, {2, 3}, 0);  // the part of the other rank
  CHECK_THROWS_AS(own.check_collective(scattered, 1, true), WrongResult);
  fill(scattered, {1, 3}, part.out.size());  // the ranks of the other group
  CHECK_THROWS_AS(own.check_collective(scattered, 1, true), WrongResult);

  const OpId reduced = op_of(CollectivePrimitive::AllReduce);
  fill(reduced, {1, 3}, 0);
  CHECK_NOTHROW(own.check_collective(reduced, 1, true));
  fill(reduced, {0, 1, 2, 3}, 0);
  CHECK_THROWS_AS(own.check_collective(reduced, 1, true), WrongResult);
}
