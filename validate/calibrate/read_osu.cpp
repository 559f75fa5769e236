// Text output of the OSU micro-benchmarks: osu_latency, osu_bw and osu_allreduce.
//
//   # OSU MPI Bandwidth Test v7.5
//   # Size      Bandwidth (MB/s)
//   1048576             23950.12
//
// The output does not say where the ranks were: they count as one per node. osu_bw sends windows of 64 messages.
#include <fmt/format.h>

#include "base/parse_units.hpp"
#include "validate/calibrate/readers.hpp"
#include "validate/calibrate/text_lines.hpp"

namespace simsync {
namespace {

enum class OsuTest { Unknown, Latency, Bandwidth, AllReduce };

OsuTest test_of(const std::string& title) {
  const auto has = [&](const char* word) { return title.find(word) != std::string::npos; };
  if (has("Bi-Directional")) return OsuTest::Unknown;
  if (has("Allreduce") || has("All-Reduce")) return OsuTest::AllReduce;
  if (has("Bandwidth Test")) return OsuTest::Bandwidth;
  return has("Latency Test") ? OsuTest::Latency : OsuTest::Unknown;
}

}  // namespace

std::vector<Probe> read_osu(const std::string& text, const std::string& file, const ReadOptions& options) {
  OsuTest test = OsuTest::Unknown;
  std::vector<Probe> out;
  for (const auto& line : detail::lines_of(text)) {
    if (line.words.empty()) continue;
    if (line.words.front().starts_with("#")) {
      if (line.text.find("OSU") == std::string::npos) continue;
      test = test_of(line.text);
      if (test == OsuTest::Unknown)
        detail::fail_at(line, file, "expected the output of osu_latency, osu_bw or osu_allreduce");
      continue;
    }
    if (test == OsuTest::Unknown) detail::fail_at(line, file, "a measurement before the title of the test");
    if (test == OsuTest::AllReduce && options.ranks < 2)
      detail::fail_at(line, file, "osu_allreduce does not say how many ranks took part", "give --ranks");
    if (line.words.size() < 2) detail::fail_at(line, file, "expected a size and a value");
    Probe probe;
    probe.kind = test == OsuTest::AllReduce ? ProbeKind::AllReduce : ProbeKind::Message;
    probe.ranks = test == OsuTest::AllReduce ? options.ranks : 2;
    probe.per_node = 1;
    probe.bytes = detail::number_in(line.words[0], 0.0, "a size in bytes", line, file);
    const double value = detail::number_in(line.words[1], 1e-9, "a value above 0", line, file);
    if (probe.bytes <= 0.0) continue;
    probe.count = test == OsuTest::Bandwidth ? kOsuWindow : 1;
    probe.measured =
        test == OsuTest::Bandwidth ? Seconds{probe.count * probe.bytes / (value * 1e6)} : Seconds{value * 1e-6};
    probe.where = fmt::format("{}:{}", file, line.number);
    out.push_back(std::move(probe));
  }
  if (out.empty()) detail::nothing_in(file, "OSU output");
  return out;
}

}  // namespace simsync
