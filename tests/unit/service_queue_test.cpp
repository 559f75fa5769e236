// What decides when an op may start: predecessors that are left, and queues.
#include "sim/plan/service_queue.hpp"

#include <string>

#include "sim/plan/countdown.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

TEST_CASE("predecessors are counted by iteration, as far as there are any before it", "[queue]") {
  Countdown countdown({{0, {0, 2}}, {1, {1, 0}}});
  CHECK(countdown.left(0, 0) == 0);
  CHECK(countdown.left(0, 1) == 1);
  CHECK(countdown.left(1, 1) == 2);
  CHECK_FALSE(countdown.tell(1, 1));
  CHECK(countdown.tell(1, 1));
  CHECK(countdown.left(1, 0) == 2);
}

TEST_CASE("a queue serves what fits, a strict one looks behind what does not", "[queue]") {
  const auto served = [](const Queue& queue) {
    ServiceQueue<char> service(queue);
    service.wait(1, 0, 'a', {1.0, 6.0});
    service.wait(0, 1, 'b', {1.0, 5.0});
    service.wait(1, 2, 'c', {1.0, 4.0});
    std::string out;
    while (const auto next = service.next()) out += *next;
    return out;
  };
  CHECK(served({.slots = 1}) == "b");
  CHECK(served({.slots = 2}) == "ba");
  CHECK(served({.slots = 0, .credit = 9.0}) == "ba");  // 5 of 9 are used: one more may start
  CHECK(served({.slots = 0, .credit = 9.0, .strict = true}) == "bc");
}
