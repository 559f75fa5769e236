// What both solvers of a FlowNetwork must do, and that they agree.
#include "sim/engine/flow_network.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>

#include "base/random.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kExact = 1e-9;

/// A flow that starts at a time of its own.
struct FlowAt {
  double start = 0.0;
  int path = 0;
  double bytes = 0.0;
};

struct Route {
  std::vector<int> links;
  double cap = kInfinite;
};

/// Links whose rates may change once, and flows.
struct Scene {
  std::vector<double> bandwidths;
  std::vector<Route> routes;
  std::vector<FlowAt> flows;
  double change_at = 0.0;   ///< of link 0
  double changed_to = 0.0;  ///< 0: it does not
};

/// When each flow ends.
std::vector<double> ends_of(FlowNetwork& network, const Scene& scene) {
  std::vector<BytesPerSecond> bandwidths;
  for (const double bandwidth : scene.bandwidths) bandwidths.emplace_back(bandwidth);
  network.begin(bandwidths);
  for (const Route& route : scene.routes) network.add_path(route.links, BytesPerSecond{route.cap});
  const std::size_t flows = scene.flows.size();
  for (std::size_t i = 0; i < flows; ++i) network.after(Seconds{scene.flows[i].start}, flows + i);
  if (scene.changed_to > 0.0) network.after(Seconds{scene.change_at}, 2 * flows);
  std::vector<double> out(flows, -1.0);
  const auto handle = [&](FlowNetwork::Token token) {
    if (token < flows) {
      out[token] = network.now().value();
    } else if (token < 2 * flows) {
      network.start_flow(scene.flows[token - flows].path, scene.flows[token - flows].bytes, token - flows);
    } else {
      network.set_bandwidth(0, BytesPerSecond{scene.changed_to});
    }
  };
  network.run(handle, [] {});
  return out;
}

std::vector<double> native_ends(const Scene& scene) {
  return ends_of(*native_network(), scene);
}

Scene random_scene(Random& random) {
  Scene scene;
  const std::size_t links = 2 + random.below(12);
  for (std::size_t i = 0; i < links; ++i) scene.bandwidths.push_back(1e8 * (1.0 + 99.0 * random.unit()));
  const std::size_t routes = 1 + random.below(30);
  for (std::size_t i = 0; i < routes; ++i) {
    Route route;
    for (int id = 0; id < static_cast<int>(links); ++id)
      if (random.below(3) == 0) route.links.push_back(id);
    if (route.links.empty()) route.links.push_back(static_cast<int>(random.below(links)));
    if (random.below(3) == 0) route.cap = 1e8 * (0.1 + 20.0 * random.unit());
    scene.routes.push_back(route);
  }
  const std::size_t flows = 1 + random.below(100);
  for (std::size_t i = 0; i < flows; ++i)
    scene.flows.push_back({.start = random.below(2) == 0 ? 0.0 : 0.5 * random.unit(),
                           .path = static_cast<int>(random.below(routes)),
                           .bytes = 1e6 * (1.0 + 100.0 * random.unit())});
  scene.change_at = 0.3 * random.unit();
  if (random.below(2) == 0) scene.changed_to = scene.bandwidths[0] * (0.2 + 0.8 * random.unit());
  return scene;
}

}  // namespace

TEST_CASE("flows share links max-min fairly", "[engine][network]") {
  // Link 0: 10, link 1: 4 B/s. Route a crosses both, b link 0, c link 1. a and c have 2 each, b the other 8 of link 0.
  Scene scene{
      .bandwidths = {10.0, 4.0}, .routes = {{{0, 1}}, {{0}}, {{1}}}, .flows = {{0, 0, 20}, {0, 1, 80}, {0, 2, 20}}};
  for (const double end : native_ends(scene)) CHECK_THAT(end, WithinRel(10.0, kExact));
  // With b capped at 5 nothing changes for a and c, whom link 1 holds up.
  scene.routes[1].cap = 5.0;
  const auto capped = native_ends(scene);
  CHECK_THAT(capped[0], WithinRel(10.0, kExact));
  CHECK_THAT(capped[1], WithinRel(16.0, kExact));
  // A second flow on c from 5 s on: three share link 1, 4/3 each. a has 10 left: 12.5 s. The first c ends then, too;
  // the second, of 30, has had 10 and takes 5 s more alone.
  scene.flows.push_back({5, 2, 30});
  const auto later = native_ends(scene);
  CHECK_THAT(later[0], WithinRel(12.5, kExact));
  CHECK_THAT(later[2], WithinRel(12.5, kExact));
  CHECK_THAT(later[3], WithinRel(17.5, kExact));
}

TEST_CASE("a link that changes its rate takes its flows along", "[engine][network]") {
  // 10 B/s until 2 s, then 5: 40 bytes take 2 + 4 s.
  const Scene scene{
      .bandwidths = {10.0}, .routes = {{{0}}}, .flows = {{0, 0, 40}}, .change_at = 2.0, .changed_to = 5.0};
  CHECK_THAT(native_ends(scene)[0], WithinRel(6.0, kExact));
  CHECK_THAT(ends_of(simgrid_network(), scene)[0], WithinRel(6.0, kExact));
}

TEST_CASE("both solvers end the same flows at the same times", "[engine][network]") {
  Random random(20261123);
  constexpr int kScenes = 300;
  for (int i = 0; i < kScenes; ++i) {
    INFO("scene " << i);
    const Scene scene = random_scene(random);
    const auto reference = ends_of(simgrid_network(), scene);
    const auto own = native_ends(scene);
    double worst = 0.0;
    for (std::size_t f = 0; f < own.size(); ++f) {
      REQUIRE(own[f] > 0.0);
      worst = std::max(worst, std::abs(own[f] / reference[f] - 1.0));
    }
    CHECK(worst < 1e-7);
  }
}

TEST_CASE("what happens at one instant is told in the order of its start", "[engine][network]") {
  // Flows 0 to 3 end at 1 s, started in the order 3, 1, 0, 2; so does the delay 9, which was set last and goes first.
  // A flow that starts then (4) is under way when the ends of the others are told.
  const auto order_in = [](FlowNetwork& network) {
    network.begin({BytesPerSecond{4.0}, BytesPerSecond{4.0}});
    for (const int link : {0, 0, 1, 1}) network.add_path({link}, BytesPerSecond{kInfinite});
    std::vector<FlowNetwork::Token> told;
    int instants = 0;
    for (const int flow : {3, 1, 0, 2}) network.start_flow(flow, 2.0, static_cast<FlowNetwork::Token>(flow));
    network.after(Seconds{1.0}, 9);
    const auto handle = [&](FlowNetwork::Token token) {
      told.push_back(token);
      if (token == 9) network.start_flow(0, 4.0, 4);
      if (token == 2) CHECK(network.flows_across(0) == 1);
    };
    network.run(handle, [&] { ++instants; });
    CHECK(instants == 4);  // the starts, the delay and the flows at 1 s, the flow at 2 s
    CHECK_THAT(network.now().value(), WithinRel(2.0, kExact));
    return told;
  };
  const std::vector<FlowNetwork::Token> expected{9, 3, 1, 0, 2, 4};
  CHECK(order_in(*native_network()) == expected);
  CHECK(order_in(simgrid_network()) == expected);
}

TEST_CASE("what a flow has left can be asked for", "[engine][network]") {
  // Two flows on one path, 5 B/s each: after 1 s 5 of 10 and 15 of 20 are left.
  const auto left_in = [](FlowNetwork& network) {
    network.begin({BytesPerSecond{10.0}});
    const int path = network.add_path({0}, BytesPerSecond{kInfinite});
    network.start_flow(path, 10.0, 0);
    network.start_flow(path, 20.0, 1);
    CHECK(network.starting_bytes(path) == 30.0);
    network.after(Seconds{1.0}, 2);
    std::vector<double> left;
    const auto handle = [&](FlowNetwork::Token token) {
      if (token == 2) network.visit_flows(0, [&](int, double bytes) { left.push_back(bytes); });
    };
    network.run(handle, [] {});
    std::sort(left.begin(), left.end());
    return left;
  };
  for (const auto& left : {left_in(*native_network()), left_in(simgrid_network())}) {
    REQUIRE(left.size() == 2);
    CHECK_THAT(left[0], WithinRel(5.0, kExact));
    CHECK_THAT(left[1], WithinRel(15.0, kExact));
  }
}

TEST_CASE("a network can be used again after a handler has thrown", "[engine][network]") {
  const Scene scene{.bandwidths = {1e6, 2e6},
                    .routes = {{.links = {0}}, {.links = {0, 1}}, {.links = {1}}},
                    .flows = {{0.0, 0, 1e6}, {0.25, 1, 1e6}, {0.5, 2, 3e6}, {0.5, 0, 10.0}}};
  const auto throws = [](FlowNetwork& network) {
    network.begin({BytesPerSecond{1e6}});
    const int path = network.add_path({0}, BytesPerSecond{kInfinite});
    network.after(Seconds{0.0}, 0);
    network.after(Seconds{4.0}, 1);
    network.run(
        [&](FlowNetwork::Token token) {
          if (token == 2) throw std::runtime_error("the handler");
          REQUIRE(token == 0);  // nothing is told of a run that has ended
          network.start_flow(path, 1e6, 2);
          network.start_flow(path, 5e6, 3);
          network.start_flow(path, 1e6, 2);
        },
        [] {});
  };
  const std::unique_ptr<FlowNetwork> native = native_network();
  for (FlowNetwork* network : {&simgrid_network(), native.get()}) {
    const std::vector<double> before = ends_of(*network, scene);
    CHECK_THROWS_WITH(throws(*network), "the handler");
    CHECK(ends_of(*network, scene) == before);
  }
}
