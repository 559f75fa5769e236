#include "hw/run/stolen_time.hpp"

#include "tests/support/catch.hpp"

using namespace simsync;

TEST_CASE("what the kernel tells of stolen time") {
  const ProcessorTicks ticks = processor_ticks("cpu  100 5 20 800 10 1 4 60 30 0\ncpu0 50 2 10 400 5 0 2 30 15 0\n");
  CHECK(ticks.stolen == 60.0);
  CHECK(ticks.all == 1000.0);  // guests are part of user
  CHECK(processor_ticks("").all == 0.0);
  CHECK(processor_ticks("cpu 1 2 3").all == 0.0);
  CHECK(processor_ticks("intr 1 2 3 4 5 6 7 8").all == 0.0);
  CHECK(note_of_stolen_time(0.03).empty());
  CHECK(note_of_stolen_time(0.046).find(" 5 % of its processors' time") != std::string::npos);
  const double share = StolenTime().share();
  CHECK((share >= 0.0 && share <= 1.0));
}
