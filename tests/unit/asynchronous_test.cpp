// Workers that do not wait for each other in every step: asynchronous training and bounded staleness.
#include <algorithm>
#include <set>

#include "base/random.hpp"
#include "sim/engine/enough_steps.hpp"
#include "sim/plan/random_order.hpp"
#include "sim/timeline/worker_pace.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab_run.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr double kExact = 1e-6;

/// Variables on one server, read at the start of a step as TensorFlow does.
Strategy read_at_start(const Model& model, int workers, Place server, bool sync, int staleness = 0) {
  Strategy strategy = on_server(model, workers, server);
  strategy.graph.pull_at_step_start = true;
  for (VariableStrategy& entry : strategy.variables) {
    auto& ps = std::get<PsSynchronizer>(entry.shards.front().synchronizer);
    ps.sync = sync;
    ps.staleness = staleness;
  }
  return strategy;
}

/// 1 MB; forward and backward take 2 ms each.
const LabModel& one_layer() {
  static const LabModel kModel{{.bytes = 1e6, .forward = 2e-3, .backward = 2e-3}};
  return kModel;
}

/// The same, whose steps take 4 ms as often as 8.
const LabModel& four_or_eight() {
  static const LabModel kModel = [] {
    LabModel out = one_layer();
    out.profile.steps = {{{Seconds{2e-3}, Seconds{2e-3}}}, {{Seconds{4e-3}, Seconds{4e-3}}}};
    return out;
  }();
  return kModel;
}

double asynchronous(const Cluster& cluster, int workers) {
  return run(one_layer(), cluster, read_at_start(one_layer().model, workers, {workers, -1}, false)).step.value();
}

/// One group of `fast` nodes, and one of a node that computes `slowdown` times as long; then a server.
Cluster with_straggler(int fast, double slowdown, double nic) {
  Cluster cluster = lab_cluster(fast, 1, {.nic = nic}, 1);
  NodeGroup slow = cluster.groups.front();
  slow.name = "slow";
  slow.count = 1;
  slow.compute_slowdown = slowdown;
  cluster.groups.insert(cluster.groups.begin() + 1, slow);
  return cluster;
}

}  // namespace

TEST_CASE("one worker alone takes the same step whether it waits for others or not", "[async]") {
  const Cluster cluster = lab_cluster(1, 1, {.nic = 1e9, .nic_latency = 1e-4}, 1);
  const double sync = run(one_layer(), cluster, read_at_start(one_layer().model, 1, {1, -1}, true)).step.value();
  CHECK_THAT(asynchronous(cluster, 1), WithinRel(sync, kExact));
  // Push and pull of 1 MB at 1 GB/s, 4 ms of compute, and the latency of each and of the words before and after them.
  CHECK_THAT(sync, WithinRel(1e-3 + 1e-3 + 4e-3 + 4e-4, 1e-3));
}

TEST_CASE("without contention the throughput grows with the workers", "[async]") {
  const double alone = asynchronous(lab_cluster(1, 1, {.nic = kNothing}, 1), 1);
  for (const int workers : {2, 4, 8})
    CHECK_THAT(asynchronous(lab_cluster(workers, 1, {.nic = kNothing}, 1), workers), WithinRel(alone, kExact));
}

TEST_CASE("a saturated server bounds the throughput by its largest demand", "[async]") {
  // A step takes the server's link for 1 ms in each direction, and 6 ms in all.
  const auto per_worker = [](int workers, std::uint64_t seed) {
    LabModel lab = one_layer();
    lab.profile.seed = seed;
    const Cluster cluster = lab_cluster(workers, 1, {.nic = 1e9}, 1);
    return run(lab, cluster, read_at_start(lab.model, workers, {workers, -1}, false)).step.value() / workers;
  };
  // Where workers that meet on a link leave it together it idles now and then, with 16 more often than with 64: how
  // often depends on when each of them began, which is drawn. So a mean over seeds is compared.
  double mean = 0.0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) mean += per_worker(64, seed) / 8.0;
  CHECK_THAT(mean, WithinRel(1e-3, 0.02));
  for (const int workers : {8, 16, 32, 64}) CHECK(per_worker(workers, 1) > 0.999e-3);
  // A server whose thread applies a gradient in 2 ms.
  Cluster cluster = lab_cluster(8, 1, {.nic = 1e9}, 1);
  CpuClass& server = cluster.groups.back().cpu;
  server.threads = 1;
  server.update_rate = BytesPerSecond{0.5e9};
  CHECK_THAT(asynchronous(cluster, 8) / 8, WithinRel(2e-3, 0.01));
}

TEST_CASE("a slow worker holds up none that need not wait", "[async]") {
  const Cluster cluster = with_straggler(3, 4.0, kNothing);
  const Prediction free = run(one_layer(), cluster, read_at_start(one_layer().model, 4, {4, -1}, false));
  // Three workers end 1/4 ms each, one 1/16 ms: 0.8125 steps per ms.
  CHECK_THAT(free.step.value(), WithinRel(4.0 / 812.5, 0.02));
  REQUIRE(free.rank_steps.size() == 4);
  CHECK_THAT(free.rank_steps[0].value(), WithinRel(4e-3, 0.03));
  CHECK_THAT(free.rank_steps[3].value(), WithinRel(16e-3, 0.1));
}

TEST_CASE("bounded staleness: none is synchronous, a large one is asynchronous", "[async]") {
  const Cluster cluster = with_straggler(3, 4.0, kNothing);
  const auto step = [&](bool sync, int staleness) {
    return run(one_layer(), cluster, read_at_start(one_layer().model, 4, {4, -1}, sync, staleness)).step.value();
  };
  CHECK_THAT(step(true, 0), WithinRel(16e-3, 1e-4));
  // A bound delays by how much the fast ones are ahead: in the end the slow one sets the pace.
  CHECK_THAT(step(true, 2), WithinRel(16e-3, 0.01));
  CHECK_THAT(step(true, 1000), WithinRel(step(false, 0), 0.01));
}

TEST_CASE("on a wire a large bound is asynchronous where a request follows its pushes", "[async]") {
  // 4 ms of compute, 1 ms each to push and to read. Asynchronous workers read after their push; with a bound they ask
  // before it has arrived, which hides it where requests overtake what was sent before.
  const auto step = [&](int workers, Seconds send_ahead, int staleness) {
    Cluster wire = lab_cluster(workers, 1, {.nic = 1e9}, 1);
    wire.groups.front().cpu.send_ahead = send_ahead;
    const Place server{workers, -1};
    const Model& model = one_layer().model;
    return run(one_layer(), wire, read_at_start(model, workers, server, staleness >= 0, std::max(staleness, 0)))
        .step.value();
  };
  constexpr int kNone = -1;
  for (const int workers : {1, 2}) {
    CHECK_THAT(step(workers, Seconds{0.0}, kNone), WithinRel(6e-3, 1e-4));
    CHECK_THAT(step(workers, Seconds{0.0}, 1000), WithinRel(5e-3, 1e-4));
    CHECK_THAT(step(workers, Seconds{1.0}, 1000), WithinRel(6e-3, 1e-4));
  }
}

TEST_CASE("a bound by worker clocks: none ahead is lock step, far ahead is asynchronous", "[async]") {
  const Cluster cluster = with_straggler(3, 4.0, kNothing);
  const auto bounded = [&](std::optional<int> slack) {
    Strategy strategy = read_at_start(one_layer().model, 4, {4, -1}, false);
    strategy.graph.slack = slack;
    return run(one_layer(), cluster, strategy);
  };
  for (const int slack : {0, 3}) {
    const Prediction together = bounded(slack);
    CHECK_THAT(together.step.value(), WithinRel(16e-3, 0.01));
    // While a worker makes one step every other one ends at most one more than it may be ahead, and one behind.
    CHECK(together.staleness.size() <= static_cast<std::size_t>(3 * (2 * slack + 2) + 1));
  }
  CHECK_THAT(bounded(1000).step.value(), WithinRel(bounded(std::nullopt).step.value(), 1e-9));
}

TEST_CASE("lock step waits for the worker that draws the longest step", "[async]") {
  // Of two workers that take 4 ms times a factor between 1 - 0.3 sqrt(3) and 1 + 0.3 sqrt(3) the slower one takes 4 ms
  // times 1 + 0.3 sqrt(3) / 3 on average.
  const double longest = 4e-3 * (1.0 + 0.3 / std::sqrt(3.0));
  const Cluster cluster = lab_cluster(2, 1, {.nic = kNothing}, 1);
  LabModel varied = one_layer();
  varied.profile.variation = 0.3;
  const auto step = [&](Strategy strategy, std::optional<int> slack) {
    strategy.graph.slack = slack;
    return run(varied, cluster, strategy, {.steps_per_worker = 1000});
  };
  const Model& model = varied.model;
  const Prediction synchronous = step(read_at_start(model, 2, {2, -1}, true), std::nullopt);
  CHECK_THAT(synchronous.step.value(), WithinRel(longest, 0.02));
  CHECK(synchronous.step_error > 0.0);
  CHECK(synchronous.rank_steps.empty());
  CHECK_THAT(step(read_at_start(model, 2, {2, -1}, false), 0).step.value(), WithinRel(longest, 0.02));
  CHECK_THAT(step(all_reduced(model, 2), std::nullopt).step.value(), WithinRel(longest, 0.02));
}

TEST_CASE("no node stands for others whose workers draw other steps", "[async]") {
  // The longest of four steps, each 4 ms times a factor between 1 - 0.3 sqrt(3) and 1 + 0.3 sqrt(3), is 1 + 0.6 x 0.3
  // sqrt(3) times 4 ms on average.
  LabModel varied = one_layer();
  varied.profile.variation = 0.3;
  const Cluster cluster = lab_cluster(4, 1, {.nic = kNothing}, 0);
  const Strategy strategy = all_reduced(varied.model, 4);
  const Prediction drawn = run(varied, cluster, strategy, {.steps_per_worker = 1000});
  CHECK_THAT(drawn.step.value(), WithinRel(4e-3 * (1.0 + 0.6 * 0.3 * std::sqrt(3.0)), 0.02));
  CHECK(drawn.simulated_ranks == 4);
  CHECK(run(one_layer(), cluster, strategy).simulated_ranks == 1);
  CHECK_THROWS_WITH(run(varied, cluster, strategy, {.fidelity = Fidelity::Folded}),
                    ContainsSubstring("every rank draws how long its steps take"));
}

TEST_CASE("a staleness of one step hides what workers wait for each other in turn", "[async]") {
  // The longer of two draws is 7 ms on average, each of them 6.
  const Cluster cluster = lab_cluster(2, 1, {.nic = kNothing}, 1);
  const auto step = [&](int staleness) {
    return run(four_or_eight(), cluster, read_at_start(four_or_eight().model, 2, {2, -1}, true, staleness),
               {.steps_per_worker = 400})
        .step.value();
  };
  const double near = step(1);
  const double far = step(8);
  CHECK(near < 7e-3);
  CHECK(far < near);
  CHECK_THAT(far, WithinRel(6e-3, 0.05));
}

TEST_CASE("with a bound, however large, servers update once for all workers", "[async]") {
  // A thread takes 2 ms for an update. Asynchronous ones come one after another, 2 ms for the step of each worker; of
  // those with a bound, one in four does it.
  Cluster cluster = lab_cluster(4, 1, {.nic = kNothing}, 1);
  CpuClass& server = cluster.groups.back().cpu;
  server.threads = 1;
  server.sum_rate = BytesPerSecond{kNothing};
  server.update_rate = BytesPerSecond{0.5e9};
  const auto step = [&](bool sync, int staleness) {
    return run(one_layer(), cluster, read_at_start(one_layer().model, 4, {4, -1}, sync, staleness)).step.value();
  };
  CHECK_THAT(step(false, 0), WithinRel(4 * 2e-3, 0.01));
  CHECK_THAT(step(true, 1000), WithinRel(4e-3, 0.01));
}

TEST_CASE("what ends of steps leave in doubt comes from stretches of them", "[async]") {
  // Five stretches of four ends that take 4, 4, 6, 8 and 8 s: mean 6, standard deviation 2, over sqrt(5) and 6. Ten
  // tell less.
  std::vector<Seconds> ends{Seconds{0.0}};
  for (int i = 0; i < 20; ++i) ends.push_back(ends.back() + Seconds{i < 10 ? 1.0 : 2.0});
  CHECK_THAT(relative_error(ends, 1), WithinRel(2.0 / std::sqrt(5.0) / 6.0, 1e-12));
  // Ten stretches of two ends that take 2 and 4 s in turn: mean 3, standard deviation sqrt(10 / 9). Five tell nothing.
  std::vector<Seconds> in_turn{Seconds{0.0}};
  for (int i = 0; i < 20; ++i) in_turn.push_back(in_turn.back() + Seconds{i % 4 < 2 ? 1.0 : 2.0});
  CHECK_THAT(relative_error(in_turn, 1), WithinRel(1.0 / 9.0, 1e-12));
  // Stretches are whole multiples of what ends together: two in each here, which leaves nothing in doubt.
  std::vector<Seconds> bunches;
  for (int i = 0; i < 30; ++i) bunches.emplace_back(static_cast<double>(i / 2));
  CHECK(relative_error(bunches, 2) == 0.0);
  // 1, 1, 2 and 2 s: mean 1.5, standard deviation sqrt(1 / 3), over 2 and 1.5.
  CHECK_THAT(relative_error({ends.begin() + 8, ends.begin() + 13}, 1), WithinRel(std::sqrt(1.0 / 3.0) / 3.0, 1e-12));
  CHECK(relative_error({ends.begin(), ends.begin() + 2}, 1) == 1.0);
}

TEST_CASE("as many steps are simulated as their mean needs, or as was asked for", "[async]") {
  detail::EnoughSteps asked(10, 0, 2);
  CHECK_FALSE(asked.due(19));
  CHECK(asked.due(20));
  CHECK(asked.reached(20, 1.0));
  detail::EnoughSteps enough(0, 0, 2);
  CHECK_FALSE(enough.due(119));
  CHECK(enough.due(120));
  CHECK_FALSE(enough.reached(120, 0.02));
  CHECK_FALSE(enough.due(149));
  CHECK(enough.reached(150, 0.009));
  detail::EnoughSteps never(0, 0, 2);
  std::size_t ends = 0;
  while (!never.due(ends) || !never.reached(ends, 0.5)) ++ends;
  CHECK(ends == 2 * detail::EnoughSteps::kMost);
  CHECK(never.steps() == detail::EnoughSteps::kMost);
  // Of 126 ends the last 101 count, between which lie 100 steps.
  CHECK(detail::EnoughSteps(0, 100, 2).least() == 126);
  CHECK(detail::EnoughSteps(0, 1000, 2).least() == 1251);
  CHECK(detail::EnoughSteps(10, 100, 2).least() == 10);
  detail::EnoughSteps blocks(0, 100, 2);
  CHECK_FALSE(blocks.reached(2 * 126, 0.5));
  CHECK(blocks.steps() == 251);
  CHECK_FALSE(blocks.reached(2 * 251, 0.5));
  CHECK(blocks.steps() == 376);
  CHECK(blocks.reached(2 * 376, 0.5));

  const Cluster cluster = lab_cluster(2, 1, {.nic = kNothing}, 1);
  const auto simulated = [&](double variation) {
    LabModel lab = one_layer();
    lab.profile.variation = variation;
    return run(lab, cluster, read_at_start(lab.model, 2, {2, -1}, false));
  };
  const Prediction steady = simulated(0.0);
  CHECK(steady.steps.size() <= detail::EnoughSteps::kLeast);
  CHECK(steady.step_error < 1e-3);
  // 0.3 / sqrt(2 x 240) = 1.4 % after 300 steps.
  const Prediction moving = simulated(0.3);
  CHECK(moving.steps.size() > 100);
  CHECK(moving.step_error < 0.03);
}

TEST_CASE("staleness of equal workers is the number of the others", "[async]") {
  WorkerPace pace(2);
  for (int step = 0; step < 10; ++step) {
    pace.note(0, Seconds{1.0 * step});
    pace.note(1, Seconds{1.0 * step + 0.5});
  }
  CHECK(pace.ends() == 20);
  CHECK_THAT(pace.step().value(), WithinRel(1.0, 1e-12));
  CHECK(pace.staleness() == std::vector<double>{0.0, 1.0});
  CHECK_THAT(pace.step_of_each()[1].value(), WithinRel(1.0, 1e-12));
}

TEST_CASE("an asynchronous worker draws from the profiled steps", "[async]") {
  LabModel lab{{.bytes = 4.0, .forward = 1e-3, .backward = 1e-3}};
  lab.profile.steps = {{{Seconds{1e-3}, Seconds{1e-3}}}, {{Seconds{2e-3}, Seconds{2e-3}}}};
  const Cluster cluster = lab_cluster(4, 1, {.nic = kNothing}, 1);
  const Prediction drawn = run(lab, cluster, read_at_start(lab.model, 4, {4, -1}, false));
  CHECK_THAT(drawn.step.value(), WithinRel(3e-3, 0.05));  // the mean of 2 and 4 ms
  const Prediction again = run(lab, cluster, read_at_start(lab.model, 4, {4, -1}, false));
  CHECK(again.step == drawn.step);
}

TEST_CASE("a rank draws each profiled step equally often in a block of steps", "[async]") {
  Plan plan;
  plan.set_ranks({{0, 0}, {1, 0}});
  plan.progress.step_end = 0;
  CHECK(longest_block(plan) == 0);
  for (const auto& [profiled, length] : {std::pair{1, 24}, {2, 24}, {7, 21}, {24, 24}, {25, 25}, {300, 300}}) {
    Op op;
    for (int s = 0; s < profiled; ++s) op.compute().samples.emplace_back(s);
    plan.ops = {op};
    CHECK(longest_block(plan) == length);
    std::set<std::vector<double>> orders;
    for (const int rank : {0, 1, 2, 3}) {
      const auto steps_from = [&, &length = length](int first) {
        std::vector<double> steps;
        for (int k = first; k < first + length; ++k) steps.push_back(compute_time(plan, op, rank, k).value());
        return steps;
      };
      orders.insert(steps_from(length));
      CHECK(steps_from(2 * length) == steps_from(length));
      for (const int first : {length, length + 5}) {
        const std::vector<double> steps = steps_from(first);
        for (int s = 0; s < profiled; ++s) CHECK(std::count(steps.begin(), steps.end(), s) == length / profiled);
      }
    }
    CHECK(orders.size() == (profiled > 1 ? 4 : 1));
  }
}

TEST_CASE("rare slow steps of a profile are counted", "[async]") {
  // One step of so many takes so much more than 2 ms that the mean is 3. Nothing is shared, so that this is all.
  const Cluster cluster = lab_cluster(1, 1, {.nic = kNothing}, 1);
  for (const int steps : {5, 50, 100, 400, 1000}) {
    LabModel lab{{.bytes = 4.0, .forward = 1.5e-3, .backward = 1.5e-3}};
    for (int s = 0; s < steps; ++s) {
      const Seconds half{s == 3 ? 1e-3 + 0.5e-3 * steps : 1e-3};
      lab.profile.steps.push_back({{half, half}});
    }
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      lab.profile.seed = seed;
      const Prediction drawn = run(lab, cluster, read_at_start(lab.model, 1, {1, -1}, false));
      CHECK_THAT(drawn.step.value(), WithinRel(3e-3, 1e-3));
      CHECK_THAT(drawn.compute.value(), WithinRel(3e-3, 1e-9));
    }
  }
}

TEST_CASE("orders are drawn from a seed, for every group and iteration", "[async]") {
  Plan plan;
  Op op;
  op.random_order = true;
  const auto order = [&](std::uint64_t seed, int group, int iteration) {
    plan.draws.seed = seed;
    std::vector<int> released{1, 2, 3, 4, 5, 6, 7, 8};
    draw_order(plan, op, group, iteration, released);
    return released;
  };
  // Worked out apart from this code: SplitMix64's output function over 1, 2, 0, 0, the 64-bit Mersenne Twister, and
  // Fisher and Yates's shuffle from the end.
  CHECK(order(1, 0, 0) == std::vector<int>{3, 5, 1, 6, 8, 2, 4, 7});
  for (const auto& other : {order(2, 0, 0), order(0, 0, 0), order(1, 1, 0), order(1, 0, 1)})
    CHECK(other != order(1, 0, 0));
  op.random_order = false;
  CHECK(order(1, 0, 0) == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("what groups draw for one purpose is not what others draw for another", "[async]") {
  const Plan plan;
  std::set<std::uint64_t> firsts;
  std::size_t streams = 0;
  for (const auto purpose : {DrawPurpose::ComputeTime, DrawPurpose::ProfiledSteps, DrawPurpose::ReleaseOrder})
    for (int group = 0; group < 8; ++group)
      for (int iteration = 0; iteration < 8; ++iteration, ++streams)
        firsts.insert(draws_of(plan, purpose, group, iteration).below(std::uint64_t{1} << 62));
  // 192 streams whose first draws are 62 bits: two of them are equal with a probability of 192^2 / 2^63.
  CHECK(firsts.size() == streams);
}

TEST_CASE("steps that vary keep their mean, and differ from worker to worker", "[async]") {
  const Cluster cluster = lab_cluster(2, 1, {.nic = kNothing}, 1);
  const auto varied = [&](double variation, std::uint64_t seed = 1) {
    LabModel lab = one_layer();
    lab.profile.variation = variation;
    lab.profile.seed = seed;
    return run(lab, cluster, read_at_start(lab.model, 2, {2, -1}, false), {.steps_per_worker = 1000});
  };
  const Prediction steady = varied(0.0);
  CHECK_THAT(steady.step.value(), WithinRel(4e-3, 1e-3));
  CHECK_THAT(steady.rank_steps[0].value(), WithinRel(steady.rank_steps[1].value(), 1e-6));
  // 800 steps of each count: the mean of all is known to 0.3 / sqrt(1600) = 0.75 %.
  const Prediction moving = varied(0.3);
  CHECK_THAT(moving.step.value(), WithinRel(4e-3, 0.03));
  CHECK_FALSE(moving.rank_steps[0] == moving.rank_steps[1]);
  CHECK(varied(0.3).step == moving.step);
  const Prediction other = varied(0.3, 2);
  CHECK(other.step != moving.step);
  CHECK_THAT(other.step.value(), WithinRel(4e-3, 0.03));
}
