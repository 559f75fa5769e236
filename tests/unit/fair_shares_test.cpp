// Max-min fair shares, kept up to date: whatever changes, every flow is held up by something.
#include "sim/engine/fair_shares.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "base/random.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;
using namespace simsync::detail;
using Catch::Matchers::WithinRel;

namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-9;

/// The same network as numbers that can be checked.
struct Described {
  std::vector<double> bandwidths;
  std::vector<std::vector<int>> routes;
  std::vector<double> caps;
  std::vector<int> flows;
};

double load_of(const Described& network, const FairShares& shares, int link) {
  double sum = 0.0;
  for (std::size_t p = 0; p < network.routes.size(); ++p)
    for (const int id : network.routes[p])
      if (id == link) sum += network.flows[p] * shares.rate(static_cast<int>(p));
  return sum;
}

/// No link is overloaded, and every flow is at its cap or crosses a full link on which none is faster. Rates with these
/// two properties are max-min fair, and there is one set of them.
void check_fair(const Described& network, const FairShares& shares) {
  const auto links = static_cast<int>(network.bandwidths.size());
  std::vector<bool> is_full;
  std::vector<double> fastest(network.bandwidths.size(), 0.0);
  for (int link = 0; link < links; ++link) {
    const double bandwidth = network.bandwidths[static_cast<std::size_t>(link)];
    const double load = load_of(network, shares, link);
    REQUIRE(load <= bandwidth * (1.0 + kRounding));
    is_full.push_back(load >= bandwidth * (1.0 - kRounding));
  }
  for (std::size_t p = 0; p < network.routes.size(); ++p)
    for (const int link : network.routes[p])
      if (network.flows[p] > 0) {
        double& most = fastest[static_cast<std::size_t>(link)];
        most = std::max(most, shares.rate(static_cast<int>(p)));
      }
  for (std::size_t p = 0; p < network.routes.size(); ++p) {
    if (network.flows[p] == 0) continue;
    const double rate = shares.rate(static_cast<int>(p));
    REQUIRE(rate > 0.0);
    const bool at_cap = rate >= network.caps[p] * (1.0 - kRounding);
    const bool held_up = std::any_of(network.routes[p].begin(), network.routes[p].end(), [&](int link) {
      const auto i = static_cast<std::size_t>(link);
      return is_full[i] && fastest[i] <= rate * (1.0 + kRounding);
    });
    REQUIRE((at_cap || held_up));
  }
}

Described draw_network(Random& random) {
  Described out;
  const std::size_t links = 2 + random.below(30);
  for (std::size_t i = 0; i < links; ++i)
    out.bandwidths.push_back(random.below(2) == 0 ? 1e9 : 1e8 * (1.0 + 9.0 * random.unit()));
  const std::size_t routes = 1 + random.below(60);
  for (std::size_t i = 0; i < routes; ++i) {
    std::vector<int> route;
    const std::size_t length = 1 + random.below(4);
    for (std::size_t k = 0; k < length; ++k) route.push_back(static_cast<int>(random.below(links)));
    out.routes.push_back(route);
    out.caps.push_back(random.below(3) == 0 ? 1e7 * (1.0 + 50.0 * random.unit()) : kUnlimited);
    out.flows.push_back(0);
  }
  return out;
}

}  // namespace

TEST_CASE("a path that crosses a link several times loads it as often", "[engine][network]") {
  // 12 B/s for a path that stands for two flows and one that stands for itself: 3 x 4.
  FairShares shares;
  const int link = shares.add_link(12.0);
  const int twice = shares.add_path({link, link}, kUnlimited);
  const int once = shares.add_path({link}, kUnlimited);
  shares.add_flows(twice, +1);
  shares.add_flows(once, +1);
  shares.share();
  CHECK_THAT(shares.rate(twice), WithinRel(4.0, 1e-12));
  CHECK_THAT(shares.rate(once), WithinRel(4.0, 1e-12));
  shares.add_flows(once, -1);
  shares.share();
  CHECK_THAT(shares.rate(twice), WithinRel(6.0, 1e-12));
}

TEST_CASE("shares stay fair through random changes", "[engine][network]") {
  Random random(7);
  for (int network = 0; network < 100; ++network) {
    Described described = draw_network(random);
    FairShares shares;
    for (const double bandwidth : described.bandwidths) shares.add_link(bandwidth);
    for (std::size_t p = 0; p < described.routes.size(); ++p) shares.add_path(described.routes[p], described.caps[p]);
    for (int change = 0; change < 200; ++change) {
      CAPTURE(network, change);
      for (std::size_t i = 0; i <= random.below(3); ++i) {
        const std::size_t path = random.below(described.routes.size());
        const int more = described.flows[path] > 0 && random.below(2) == 0 ? -described.flows[path] : 1;
        described.flows[path] += more;
        shares.add_flows(static_cast<int>(path), more);
      }
      if (random.below(10) == 0) {
        const std::size_t link = random.below(described.bandwidths.size());
        described.bandwidths[link] *= random.below(2) == 0 ? 0.5 : 2.0;
        shares.set_bandwidth(static_cast<int>(link), described.bandwidths[link]);
      }
      shares.share();
      check_fair(described, shares);
    }
  }
}
