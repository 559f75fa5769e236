// Messages that share one stream of a connection: HTTP/2's windows between one after the other and all at once.
#include <optional>
#include <set>
#include <utility>

#include "sim/plan/compile.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/lab.hpp"
#include "tests/support/lab_run.hpp"
#include "tests/support/transfers.hpp"

using namespace simsync;
using namespace simsync::test;

namespace {

constexpr double kRate = 1e6;  ///< bytes per second

/// Messages from node 0 to node 1, all ready at once on one stream. @return when each has arrived.
std::vector<double> arrivals(const std::vector<double>& sizes, double first_turn, double later_turn) {
  std::vector<TimedTransfer> messages;
  for (const double bytes : sizes)
    messages.push_back({.to = 1, .bytes = bytes, .streams = 1, .first_turn = first_turn, .later_turn = later_turn});
  return test::arrivals(lab_cluster(2, 1, {.nic = kRate}), messages);
}

}  // namespace

TEST_CASE("whole messages are served in the order of arrival", "[engine][stream]") {
  const auto ends = arrivals({3e6, 1e6, 2e6}, kWhole, kWhole);
  CHECK_THAT(ends[0], WithinRel(3.0, 1e-6));
  CHECK_THAT(ends[1], WithinRel(4.0, 1e-6));
  CHECK_THAT(ends[2], WithinRel(6.0, 1e-6));
}

TEST_CASE("turns of a frame share the stream evenly", "[engine][stream]") {
  // Processor sharing: 1 MB each by 3 s, when the second is done; another MB of both others by 5 s, when the third is.
  constexpr double kFrame = 1e4;
  const auto ends = arrivals({3e6, 1e6, 2e6}, kFrame, kFrame);
  constexpr double kRound = 3.0 * kFrame / kRate;
  CHECK(std::abs(ends[1] - 3.0) <= kRound);
  CHECK(std::abs(ends[2] - 5.0) <= kRound);
  CHECK_THAT(ends[0], WithinRel(6.0, 1e-6));
}

TEST_CASE("a window lets the others begin before the rest of a message", "[engine][stream]") {
  // 0.5 MB of each, then the rest of each: 0.5, 1.0, 1.5; 4.0, 4.5, 6.0.
  const auto rest_at_once = arrivals({3e6, 1e6, 2e6}, 0.5e6, kWhole);
  CHECK_THAT(rest_at_once[0], WithinRel(4.0, 1e-6));
  CHECK_THAT(rest_at_once[1], WithinRel(4.5, 1e-6));
  CHECK_THAT(rest_at_once[2], WithinRel(6.0, 1e-6));
  // Later turns of 1 MB: 0 at 0.5 and 2.5, 1 at 1.0 and done at 3.0, 2 at 1.5 and 4.0, then 0 at 5.0, 2 done at 5.5, 0
  // at 6.0.
  const auto in_turns = arrivals({3e6, 1e6, 2e6}, 0.5e6, 1e6);
  CHECK_THAT(in_turns[1], WithinRel(3.0, 1e-6));
  CHECK_THAT(in_turns[2], WithinRel(5.5, 1e-6));
  CHECK_THAT(in_turns[0], WithinRel(6.0, 1e-6));
}

TEST_CASE("a message alone takes its bytes over the rate, whatever its turns", "[engine][stream]") {
  for (const double turn : {1e4, 3e5, kWhole}) CHECK_THAT(arrivals({2e6}, turn, turn)[0], WithinRel(2.0, 1e-6));
}

TEST_CASE("windows of a strategy: 0 shares evenly, none serves whole messages", "[engine][stream]") {
  constexpr double kFrame = 16384.0;  // HTTP/2
  const LabModel lab{{.bytes = 1e6, .forward = 1e-3, .backward = 1e-3}};
  const auto turns = [&](std::optional<Bytes> win_bytes, std::optional<Bytes> win_next) {
    Strategy strategy = on_server(lab.model, 1, {1, -1});
    strategy.graph.win_bytes = win_bytes;
    strategy.graph.win_next = win_next;
    std::set<std::pair<double, double>> out;
    for (const Op& op : compile(lab.model, lab.profile, lab_cluster(1, 1, {}, 1), strategy).ops)
      if (const auto* moved = std::get_if<Transfer>(&op.body); moved != nullptr && moved->streams > 0)
        out.insert({moved->first_turn, moved->later_turn});
    return out;
  };
  using Turns = std::set<std::pair<double, double>>;
  CHECK(turns(std::nullopt, std::nullopt) == Turns{{kWhole, kWhole}});
  CHECK(turns(Bytes{0}, std::nullopt) == Turns{{kFrame, kFrame}});
  CHECK(turns(Bytes{65'536}, std::nullopt) == Turns{{65'536.0, kWhole}});
  CHECK(turns(Bytes{65'536}, Bytes{1}) == Turns{{65'536.0, kFrame}});
  CHECK_THROWS_WITH(turns(Bytes{0}, Bytes{65'536}), ContainsSubstring("win_next exclude each other"));
}
