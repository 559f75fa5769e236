// Streams of random draws that must have nothing to do with each other.
#include "base/random.hpp"

#include <cmath>
#include <initializer_list>
#include <set>
#include <vector>

#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

constexpr int kDraws = 10'000;

/// Pearson's coefficient of draws that are uniform in [0, 1): their mean is 1/2, their variance 1/12.
double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - 0.5) * (b[i] - 0.5);
  return 12.0 * sum / static_cast<double>(a.size());
}

std::vector<double> one_stream(std::initializer_list<std::uint64_t> fields) {
  Random random(stream_seed(1, fields));
  std::vector<double> out;
  for (int i = 0; i < kDraws; ++i) out.push_back(random.unit());
  return out;
}

/// The first draw of the stream in each iteration.
std::vector<double> first_draws(std::uint64_t seed, std::uint64_t purpose, std::uint64_t rank, std::uint64_t begin) {
  std::vector<double> out;
  for (std::uint64_t k = begin; k < begin + kDraws; ++k)
    out.push_back(Random(stream_seed(seed, {purpose, rank, k})).unit());
  return out;
}

}  // namespace

TEST_CASE("a stream's seed is the output of SplitMix64", "[base][random]") {
  // Published: SplitMix64 seeded with 0 begins with e220a8397b1dcdaf. Of no fields, the seed of a stream is the first
  // output; of one field 0, the first output of a generator that was seeded with that.
  constexpr std::uint64_t kFirst = 0xe220a8397b1dcdaf;
  CHECK(stream_seed(0, {}) == kFirst);
  CHECK(stream_seed(0, {0}) == stream_seed(kFirst, {}));
  CHECK(stream_seed(0, {5}) == stream_seed(kFirst + 5, {}));
}

TEST_CASE("streams that differ in any field differ, and so do fields that change places", "[base][random]") {
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 4; ++seed)
    for (std::uint64_t purpose = 0; purpose < 4; ++purpose)
      for (std::uint64_t rank = 0; rank < 32; ++rank)
        for (std::uint64_t k = 0; k < 32; ++k) seen.insert(stream_seed(seed, {purpose, rank, k}));
  CHECK(seen.size() == 4U * 4U * 32U * 32U);
}

TEST_CASE("streams of neighbors are uncorrelated", "[base][random]") {
  // The coefficient of n independent pairs has mean 0 and standard deviation 1/sqrt(n): three of them are 0.03. None of
  // the ten below that are right exceeds that with probability 0.973^10 = 0.76; for these seeds none does.
  const double most = 3.0 / std::sqrt(kDraws);
  SECTION("draw by draw") {
    const auto self = one_stream({0, 8, 8});
    CHECK_THAT(correlation(self, self), WithinAbs(1.0, 0.05));
    for (const auto& other : {one_stream({0, 9, 8}), one_stream({0, 10, 8}), one_stream({0, 8, 9}),
                              one_stream({1, 8, 8}), one_stream({2, 8, 8})})
      CHECK(std::abs(correlation(self, other)) < most);
  }
  SECTION("first draws, iteration by iteration") {
    const auto self = first_draws(1, 0, 8, 0);
    CHECK(std::abs(correlation(self, first_draws(1, 0, 9, 0))) < most);
    CHECK(std::abs(correlation(self, first_draws(1, 0, 10, 0))) < most);
    CHECK(std::abs(correlation(self, first_draws(1, 0, 8, 1))) < most);
    CHECK(std::abs(correlation(self, first_draws(1, 1, 8, 0))) < most);
    CHECK(std::abs(correlation(self, first_draws(2, 0, 8, 0))) < most);
  }
}
