#include "base/csv.hpp"
#include "base/divisors.hpp"
#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "base/spread.hpp"
#include "base/yaml.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

TEST_CASE("units are mandatory and exact", "[base]") {
  CHECK(parse_bytes("25MiB")->count == 25 * 1024 * 1024);
  CHECK(parse_bytes("100KB")->count == 100000);
  CHECK(parse_bandwidth("10Gbps")->value() == 1.25e9);
  CHECK(parse_bandwidth("12.5GB/s")->value() == 12.5e9);
  CHECK(parse_seconds("1.5ms")->value() == 1.5e-3);
  CHECK(parse_flops_rate("8.1TFLOPS")->value() == 8.1e12);
  CHECK_FALSE(parse_seconds("10"));
  CHECK(parse_seconds("0")->value() == 0.0);
  CHECK_FALSE(parse_bytes("0.3B"));
  CHECK_FALSE(parse_number("nan"));
  CHECK_FALSE(parse_number("1e400"));
  CHECK_FALSE(parse_number("0x1f"));
}

TEST_CASE("an unknown key is an error with its place and the closest name", "[base]") {
  const auto document = yaml::Document::parse("batch: 3\nlatncy: 4us\n", "m.yaml");
  {
    auto m = document.root().mapping();
    CHECK(m.require("batch").integer(1) == 3);
    m.maybe("latency", [](const yaml::Node&) {});
  }
  try {
    document.finish();
    FAIL("expected an error");
  } catch (const InputError& e) {
    CHECK(std::string(e.what()) ==
          "m.yaml:2:1: error: unknown key 'latncy'\n"
          "    2 | latncy: 4us\n"
          "      | ^\n"
          "  key:  latncy\n"
          "  help: did you mean 'latency'?");
  }
}

TEST_CASE("several findings are reported together", "[base]") {
  const auto document = yaml::Document::parse("a: -1\nb: 10\nb: 11\n", "m.yaml");
  {
    auto m = document.root().mapping();
    (void)m.require("a").integer(1);
    (void)m.require("b").seconds();
    (void)m.require("c");
  }
  try {
    document.finish();
    FAIL("expected an error");
  } catch (const InputError& e) {
    REQUIRE(e.diagnostics().size() == 4);
    CHECK(e.diagnostics()[0].message == "duplicate key 'b'");
    CHECK(e.diagnostics()[1].message == "-1 is out of range: expected at least 1");
    CHECK(e.diagnostics()[2].message == "expected a time with its unit, such as 10us or 1.5ms, got '10'");
    CHECK(e.diagnostics()[3].message == "missing key 'c'");
  }
}

TEST_CASE("quoted cells survive a round trip", "[base]") {
  const auto table = CsvTable::parse("a,b\n" + csv_row({"x,\"y\"", "1.5"}) + "\n", "t.csv");
  CHECK(table.cell(0, "a") == "x,\"y\"");
  CHECK(*table.number(0, "b") == 1.5);
  CHECK_THROWS_WITH(CsvTable::parse("a,b\n1\n", "t.csv"),
                    ContainsSubstring("expected 2 cells as in the header, got 1"));
  CHECK_THROWS_WITH(CsvTable::parse("a\n1,2\n", "t.csv"), ContainsSubstring("expected 1 cell as in the header, got 2"));
}

TEST_CASE("shard counts of AutoDist", "[base]") {
  CHECK(smallest_divisor(1) == 1);
  CHECK(smallest_divisor(2) == 2);
  CHECK(smallest_divisor(9) == 3);
  CHECK(smallest_divisor(25088) == 2);
  CHECK(smallest_divisor(21841) == 21841);
  CHECK(smallest_divisor(30522) == 2);
  CHECK(smallest_non_divisor(1) == 1);
  CHECK(smallest_non_divisor(2) == 2);
  CHECK(smallest_non_divisor(6) == 4);
  CHECK(smallest_non_divisor(30522) == 4);
}

TEST_CASE("a shorter length is cut as the whole", "[base]") {
  // 768 * 0.03 = 23.04: 23 is a prime (one row each), 24 has 2 as a divisor and 5 as the first that does not divide.
  CHECK(closest_length_cut_like(768, 23.04) == 24);
  CHECK(closest_length_cut_like(30522, 915.66) == 918);  // 2 divides, 3 divides, 4 does not: 6 x an odd number
  CHECK(closest_length_cut_like(64, 6.4) == 8);          // 2 divides, 3 does not: 4, 8, 10
  CHECK(closest_length_cut_like(64, 3.0) == 4);          // of 2 (a prime) and 4
  CHECK(closest_length_cut_like(21841, 218.41) == 223);  // primes around: 211 and 223
  CHECK(closest_length_cut_like(9, 0.1) == 9);           // no smaller one
  CHECK(closest_length_cut_like(1, 0.1) == 1);
  CHECK(closest_length_cut_like(6, 12.0) == 18);  // of 6 and 18, both 6 away
}

TEST_CASE("a standard deviation reaches as far on both sides of the prediction", "[base]") {
  // 90 % of a normal distribution lie within 1.6449 standard deviations: e^(1.6449 x 0.1) = 1.178792.
  const Spread spread = spread_of(0.1);
  CHECK_THAT(spread.high, WithinRel(1.178792, 1e-6));
  CHECK_THAT(spread.low * spread.high, WithinRel(1.0, 1e-12));
}

TEST_CASE("a spread holds the prediction", "[base]") {
  const auto read = [](const std::string& text) {
    const auto document = yaml::Document::parse(text, "s.yaml");
    const Spread spread = read_spread(document.root());
    document.finish();
    return spread;
  };
  const Spread spread = read("{low: 0.7, high: 1.5, rows: 9, source: these}");
  CHECK(spread.low == 0.7);
  CHECK(spread.high == 1.5);
  CHECK(spread.rows == 9);
  CHECK(spread.source == "these");
  CHECK_THROWS_AS(read("{low: 1.1, high: 1.5, rows: 9, source: these}"), InputError);
  CHECK_THROWS_AS(read("{low: 0.7, high: 0.9, rows: 9, source: these}"), InputError);
  CHECK_THROWS_AS(read("{low: 0.7, high: 1.5, rows: 0, source: these}"), InputError);
}
