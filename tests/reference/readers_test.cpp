// Whole tables that other people filled, through the readers of `simsync calibrate --from`.
#include "validate/calibrate/readers.hpp"

#include <map>

#include "tests/reference/archive.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;
using test::archived;

namespace {

std::map<std::string, Probe> by_place(const std::vector<Probe>& probes) {
  std::map<std::string, Probe> out;
  for (const Probe& probe : probes) REQUIRE(out.emplace(probe.where, probe).second);
  return out;
}

std::string place(const CsvTable& table, std::size_t row) {
  return table.file() + ":" + std::to_string(table.line(row));
}

}  // namespace

TEST_CASE("every collective of the archive is read, or is left out for a reason", "[readers]") {
  const CsvTable table = CsvTable::load(archived("collectives.csv"));
  const auto probes = by_place(read_probes(table.file()));
  std::size_t read = 0;
  for (std::size_t row = 0; row < table.size(); ++row) {
    INFO(place(table, row));
    const auto number = [&](const char* column) { return table.number(row, column).value_or(0.0); };
    const std::string& collective = table.cell(row, "collective");
    const bool other = collective == "alltoall" || collective == "sendrecv" || collective == "broadcast";
    const double ranks = number("gpus_per_node") * number("nodes");
    const bool left_out = other || table.cell(row, "in_place") == "1" || table.cell(row, "time_us").empty() ||
                          table.cell(row, "size_bytes").empty() || ranks < 2.0;
    const auto probe = probes.find(place(table, row));
    REQUIRE((probe == probes.end()) == left_out);
    if (left_out) continue;
    ++read;
    CHECK(probe->second.ranks == ranks);
    CHECK_THAT(probe->second.measured.value(), WithinRel(1e-6 * number("time_us"), 1e-12));
    // nccl-tests counts what all ranks together gather.
    const double shares = collective == "all_gather" ? ranks : 1.0;
    CHECK_THAT(shares * probe->second.bytes, WithinRel(number("size_bytes"), 1e-12));
  }
  CHECK(read == probes.size());
  CHECK(read > 1000);
}

TEST_CASE("every message of the archive is read, or is left out for a reason", "[readers]") {
  const CsvTable table = CsvTable::load(archived("p2p.csv"));
  const auto probes = by_place(read_probes(table.file()));
  std::size_t read = 0;
  for (std::size_t row = 0; row < table.size(); ++row) {
    INFO(place(table, row));
    const auto number = [&](const char* column) { return table.number(row, column).value_or(0.0); };
    const bool left_out = table.cell(row, "test") == "osu_bibw" || number("size_bytes") == 0.0;
    const auto probe = probes.find(place(table, row));
    REQUIRE((probe == probes.end()) == left_out);
    if (left_out) continue;
    ++read;
    CHECK(probe->second.per_node == (table.cell(row, "intra_or_inter") == "inter-node" ? 1 : 2));
    // osu_latency tells the time of one message, osu_bw the rate of many (1 MB/s = 1 byte per us).
    const double us = 1e6 * probe->second.measured.value();
    const double moved = probe->second.count * number("size_bytes");
    if (table.cell(row, "test") == "osu_latency") CHECK_THAT(us, WithinRel(number("latency_us"), 1e-12));
    if (table.cell(row, "test") == "osu_bw") CHECK_THAT(moved / us, WithinRel(number("bandwidth_MBps"), 1e-12));
  }
  CHECK(read == probes.size());
  CHECK(read > 50);
}
