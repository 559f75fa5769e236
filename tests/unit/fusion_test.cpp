// Which gradients travel together, derived by hand for each framework's rule.
#include "sim/plan/fusion.hpp"

#include "models/reader.hpp"
#include "sim/plan/compile.hpp"
#include "strategies/builders.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"
#include "tests/support/small_problems.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

using Members = std::vector<std::size_t>;

Gradient gradient(double bytes, double ready, int group = -1) {
  Gradient out;
  out.bytes = bytes;
  out.ready = Seconds{ready};
  out.group = group;
  return out;
}

std::vector<Members> members(const std::vector<Bucket>& buckets) {
  std::vector<Members> out;
  for (const Bucket& bucket : buckets) out.push_back(bucket.members);
  return out;
}

Seconds free_of_charge(double) {
  return Seconds{0.0};
}

/// Bytes of every all-reduce of a plan, in order.
std::vector<double> messages(const Plan& plan) {
  std::vector<double> out;
  for (const Op& op : plan.ops)
    if (op.kind() == OpKind::Collective) out.push_back(op.bytes());
  return out;
}

}  // namespace

TEST_CASE("DDP buckets of ResNet-50 close at 1 MiB, then at 25 MiB", "[plan][fusion]") {
  // Parameter bytes (4 each) from the last layer backwards; a block's batch norms have 2 x channels parameters.
  //   fc: bias 4,000 then weight 2048 x 1000 x 4 = 8,192,000: the first bucket has only 4,000 B before, closes with
  //   the weight at 8,196,000 B >= 1 MiB.
  //   layer4.2: bn3 16,384; conv3 512 x 2048 x 4 = 4,194,304; bn2 4,096; conv2 512 x 512 x 9 x 4 = 9,437,184;
  //   bn1 4,096; conv1 4,194,304: 17,850,368. layer4.1: bn3 and conv3 make it 22,061,056, bn2 22,065,152, and conv2
  //   31,502,336 >= 25 MiB = 26,214,400: the second bucket.
  //   Then bn1 + conv1 of layer4.1: 4,198,400; layer4.0: the shortcut's batch norm and 1024 x 2048 convolution
  //   16,384 + 8,388,608, bn3 + conv3 4,210,688: 16,814,080, bn2 16,818,176, conv2 26,255,360 >= 26,214,400: the third.
  //   In all 25,557,032 parameters are 102,228,128 B: 36,274,432 B are left; the fourth bucket closes somewhere at or
  //   above 25 MiB and the fifth has what remains.
  const Model model = find_model("resnet50");
  Profile profile;
  profile.layers.resize(model.layer_count());
  profile.batch = 32;
  const Cluster cluster = lab_cluster(2, 1);
  const auto sizes = messages(compile(model, profile, cluster, build_strategy("ddp", request_for(model, cluster, 2))));
  REQUIRE(sizes.size() == 5);
  CHECK(sizes[0] == 8'196'000.0);
  CHECK(sizes[1] == 31'502'336.0);
  CHECK(sizes[2] == 26'255'360.0);
  CHECK(sizes[3] >= 26'214'400.0);
  CHECK(sizes[3] + sizes[4] == 36'274'432.0);
}

TEST_CASE("Horovod merges what became ready since the last cycle, up to the threshold", "[plan][fusion]") {
  Fusion rule;
  rule.kind = FusionKind::Cycle;
  rule.cycle = Seconds{5.0};
  rule.threshold = Bytes{100};
  // Ticks at 5, 10, ... Ready at 1, 2, 3: found at tick 5: 40 + 50 fit into 100, 20 more do not: {0, 1}, {2}. Ready at
  // 7 and 10: tick 10, 30 + 60 together. A tensor of 500 alone is larger than the threshold and still travels.
  const auto buckets = fuse(
      rule, {gradient(40, 1), gradient(50, 2), gradient(20, 3), gradient(30, 7), gradient(60, 10), gradient(500, 11)},
      free_of_charge);
  REQUIRE(members(buckets) == std::vector<Members>{{0, 1}, {2}, {3, 4}, {5}});
  // The loop sleeps until its tick: the last member of the first bucket waits from 2 to 5, that of the third not at
  // all.
  CHECK(buckets[0].wait == Seconds{3.0});
  CHECK(buckets[1].wait == Seconds{2.0});
  CHECK(buckets[2].wait == Seconds{0.0});
  CHECK(buckets[3].wait == Seconds{4.0});
}

TEST_CASE("MG-WFBP merges when waiting is shorter than a start-up or costs nothing", "[plan][fusion]") {
  Fusion rule;
  rule.kind = FusionKind::MergedGradient;
  const auto cost = [](double bytes) { return Seconds{2.0 + bytes}; };  // start-up 2, one byte per second
  // 0 is ready at 0 and could start at once; 1 is ready at 1, which is less than a start-up later: merged. Waiting for
  // 2 until 5 would cost 5 - 1 = 4 > 2: the message of 3 + 1 leaves at 1 and ends at 1 + 2 + 4 = 7. 2 (ready at 5)
  // cannot start before 7, and 3 is ready at 6 < 7: merged for nothing. 4 is ready at 9.5, which is 2.5 > 2 after the
  // start at 7: the message of 1 + 1 leaves at 7 and ends at 11. 4 travels last, alone.
  const auto buckets =
      fuse(rule, {gradient(3, 0), gradient(1, 1), gradient(1, 5), gradient(1, 6), gradient(1, 9.5)}, cost);
  REQUIRE(members(buckets) == std::vector<Members>{{0, 1}, {2, 3}, {4}});
  CHECK(buckets[0].bytes == 4.0);
}

TEST_CASE("groups leave in the order of their last members", "[plan][fusion]") {
  Fusion rule;
  rule.kind = FusionKind::Groups;
  // Group 7 has gradients 0 and 3, group 8 has 1 and 2: group 8 is complete first. -1 stands alone.
  const auto buckets =
      fuse(rule,
           {gradient(1, 0, 7), gradient(1, 1, 8), gradient(1, 2, 8), gradient(1, 3, 7), gradient(1, 4), gradient(1, 5)},
           free_of_charge);
  REQUIRE(members(buckets) == std::vector<Members>{{1, 2}, {0, 3}, {4}, {5}});
}

TEST_CASE("none and single are the two ends of fusion", "[plan][fusion]") {
  const std::vector<Gradient> three{gradient(1, 0), gradient(2, 1), gradient(3, 2)};
  Fusion rule;
  rule.kind = FusionKind::None;
  REQUIRE(members(fuse(rule, three, free_of_charge)) == std::vector<Members>{{0}, {1}, {2}});
  rule.kind = FusionKind::Single;
  const auto all = fuse(rule, three, free_of_charge);
  REQUIRE(members(all) == std::vector<Members>{{0, 1, 2}});
  REQUIRE(all.front().bytes == 6.0);
  REQUIRE(fuse(rule, {}, free_of_charge).empty());
}
