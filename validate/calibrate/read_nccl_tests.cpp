// Text output of nccl-tests (all_reduce_perf, all_gather_perf, reduce_scatter_perf).
//
//   # nThread 1 nGpus 8 minBytes 8 ...
//   #  Rank  0 Group  0 Pid 4021 on     node01 device  0 [0x07] NVIDIA A100
//   #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw
//   #wrong
//        1048576        262144     float     sum      -1    51.40   20.40   30.60      0    ...
//
// The first time is that of the out-of-place run. `size` is the whole result for an all-gather.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/parse_units.hpp"
#include "validate/calibrate/readers.hpp"
#include "validate/calibrate/text_lines.hpp"

namespace simsync {
namespace {

using detail::TextLine;

class NcclTestsReader {
public:
  explicit NcclTestsReader(const std::string& file) : file_(file) {}

  std::vector<Probe> read(const std::string& text) {
    for (const TextLine& line : detail::lines_of(text)) {
      if (line.words.empty()) continue;
      if (line.words.front().starts_with("#")) {
        header(line);
      } else if (parse_integer(line.words.front())) {
        row(line);
      }
    }
    if (probes_.empty()) detail::nothing_in(file_, "nccl-tests output");
    return std::move(probes_);
  }

private:
  void header(const TextLine& line) {
    const auto& words = line.words;
    const auto at = [&](const char* word) { return std::find(words.begin(), words.end(), word); };
    for (const auto& word : words) {
      if (word.starts_with("all_reduce")) kind_ = ProbeKind::AllReduce;
      if (word.starts_with("all_gather")) kind_ = ProbeKind::AllGather;
      if (word.starts_with("reduce_scatter")) kind_ = ProbeKind::ReduceScatter;
    }
    if (at("Rank") != words.end() && at("on") != words.end() && at("on") + 1 != words.end()) ++hosts_[*(at("on") + 1)];
    if (at("size") == words.end() || at("time") == words.end()) return;
    time_ = static_cast<std::size_t>(at("time") - words.begin()) - (words.front() == "#" ? 1 : 0);
  }

  void row(const TextLine& line) {
    if (hosts_.empty()) detail::fail_at(line, file_, "a measurement before the list of ranks ('# Rank 0 ... on HOST')");
    if (time_ == 0) detail::fail_at(line, file_, "a measurement before the line that names its columns");
    if (line.words.size() <= time_)
      detail::fail_at(line, file_, fmt::format("expected at least {} columns, got {}", time_ + 1, line.words.size()));
    const double size = detail::number_in(line.words.front(), 0.0, "a size in bytes", line, file_);
    const double time = detail::number_in(line.words[time_], 0.0, "a time in us", line, file_);
    if (size <= 0.0 || time <= 0.0) return;
    Probe probe;
    probe.kind = kind_;
    for (const auto& [host, ranks] : hosts_) probe.per_node = std::max(probe.per_node, ranks);
    probe.ranks = 0;
    for (const auto& [host, ranks] : hosts_) {
      probe.ranks += ranks;
      if (ranks != probe.per_node) detail::fail_at(line, file_, fmt::format("host '{}' has fewer ranks", host));
    }
    if (probe.ranks < 2)
      detail::fail_at(line, file_, "a run of one rank, which sends nothing", "run on two or more devices");
    probe.bytes = kind_ == ProbeKind::AllGather ? size / probe.ranks : size;
    probe.measured = Seconds{time * 1e-6};
    probe.where = fmt::format("{}:{}", file_, line.number);
    probes_.push_back(std::move(probe));
  }

  std::string file_;
  ProbeKind kind_ = ProbeKind::AllReduce;
  std::map<std::string, int> hosts_;
  std::size_t time_ = 0;  ///< column of the first time; 0: not known yet
  std::vector<Probe> probes_;
};

}  // namespace

std::vector<Probe> read_nccl_tests(const std::string& text, const std::string& file) {
  return NcclTestsReader(file).read(text);
}

}  // namespace simsync
