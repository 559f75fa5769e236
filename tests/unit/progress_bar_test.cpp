#include "base/progress_bar.hpp"

#include <sstream>

#include "base/wrap.hpp"
#include "tests/support/catch.hpp"

namespace simsync {
namespace {

using std::chrono::milliseconds;

/// A bar whose time the test moves.
struct Watched {
  std::ostringstream out;
  std::chrono::steady_clock::time_point now{milliseconds(1'000'000)};
  ProgressBar bar;
  explicit Watched(std::size_t total) : bar(total, out, [this] { return now; }) {}
  std::string after(int ms) {
    now += milliseconds(ms);
    out.str("");
    bar.advance();
    return out.str();
  }
};

TEST_CASE("work under a second shows no bar", "[progress]") {
  Watched watched(3);
  CHECK(watched.after(400).empty());
  CHECK(watched.after(500).empty());
  watched.bar.message("note: a message needs none");
  CHECK(watched.out.str() == "note: a message needs none\n");
}

TEST_CASE("a bar appears after a second, with what is left", "[progress]") {
  // One of four is done after 2 s: three more take 6 s.
  Watched watched(4);
  CHECK(watched.after(2000) == "\r[#######                       ] 1/4  6 s left\x1b[K");
  CHECK(watched.after(10).empty());  // redrawn ten times a second at most
  CHECK(watched.after(2000) == "\r[######################        ] 3/4  1 s left\x1b[K");
  watched.out.str("");
  watched.bar.message("note: above it");
  CHECK(watched.out.str() == "\r\x1b[Knote: above it\n\r[######################        ] 3/4  1 s left\x1b[K");
  CHECK(watched.after(2000) == "\r[##############################] 4/4\x1b[K");
}

TEST_CASE("rounds of work whose end is not known have no total", "[progress]") {
  Watched watched(0);
  watched.now += milliseconds(1500);
  watched.bar.set_round(0.5, "iteration 2, 300 flows so far");
  CHECK(watched.out.str() == "\r[###############               ] iteration 2, 300 flows so far\x1b[K");
}

TEST_CASE("text is wrapped where it has spaces", "[wrap]") {
  CHECK(wrapped("one two three", 7) == "one two\nthree");
  CHECK(wrapped("one two three", 8, 2) == "one two\n  three");
  CHECK(wrapped("unbreakable word", 4) == "unbreakable\nword");
  CHECK(wrapped("", 4).empty());
}

}  // namespace
}  // namespace simsync
