// The built-in tables say what their sources say: nothing was mistyped, nothing has drifted.
#include <map>
#include <vector>

#include "base/csv.hpp"
#include "tests/reference/archive.hpp"
#include "tests/support/catch.hpp"

using namespace simsync;

namespace {

/// A column here, and what it is called in the archive.
using Columns = std::vector<std::pair<std::string, std::string>>;

std::string key_of(const CsvTable& table, std::size_t row, const std::vector<std::string>& columns) {
  std::string key;
  for (const auto& column : columns) key += table.cell(row, column) + "|";
  return key;
}

/// Whether both cells are the same text or the same number.
bool same(const CsvTable& a, std::size_t row_a, const CsvTable& b, std::size_t row_b, const Columns& columns) {
  for (const auto& [ours, theirs] : columns) {
    const std::string& left = a.cell(row_a, ours);
    const std::string& right = b.cell(row_b, theirs);
    if (left != right && a.number(row_a, ours) != b.number(row_b, theirs)) return false;
  }
  return true;
}

/// Every row of a table of validate/reference is one of the archive's.
void check_rows(const std::string& table, const std::string& archive, const std::vector<std::string>& keys,
                const Columns& columns) {
  const CsvTable ours = CsvTable::load(std::string(SIMSYNC_ROOT) + "/validate/reference/" + table);
  const CsvTable theirs = CsvTable::load(test::archived(archive));
  std::multimap<std::string, std::size_t> known;
  for (std::size_t row = 0; row < theirs.size(); ++row) known.emplace(key_of(theirs, row, keys), row);
  REQUIRE(ours.size() > 0);
  for (std::size_t row = 0; row < ours.size(); ++row) {
    const std::string key = key_of(ours, row, keys);
    INFO(table << ":" << ours.line(row) << " " << key);
    const auto [begin, end] = known.equal_range(key);
    REQUIRE(begin != end);
    bool found = false;
    for (auto at = begin; at != end; ++at) found = found || same(ours, row, theirs, at->second, columns);
    CHECK(found);
  }
}

}  // namespace

TEST_CASE("collectives are as archived", "[tables]") {
  check_rows(
      "collectives.csv", "collectives.csv", {"id", "collective", "size_bytes"},
      {{"source_url", "source_url"}, {"gpus_per_node", "gpus_per_node"}, {"nodes", "nodes"}, {"time_us", "time_us"}});
}

TEST_CASE("DDP on A40 is as archived", "[tables]") {
  check_rows("ddp_a40.csv", "ddp_overlap/kopernik_a40_gpt82m.csv", {"id"},
             {{"source_url", "source_url"}, {"gpus", "gpus"}, {"step_ms", "step_ms"}});
}

TEST_CASE("training throughput is as archived", "[tables]") {
  const Columns columns{{"source_url", "source_url"},
                        {"precision", "precision"},
                        {"gpus", "gpus_total"},
                        {"batch", "batch_per_gpu"},
                        {"samples_per_s", "throughput"}};
  check_rows("dlperf_v100.csv", "throughput.csv", {"id"}, columns);
  check_rows("nvidia_examples.csv", "throughput.csv", {"id"}, columns);
}

TEST_CASE("runs with tensor and pipeline parallelism are as archived", "[tables]") {
  check_rows("nanotron.csv", "llm_training/ultrascale_nanotron.csv", {"id"},
             {{"gpus", "gpus"},
              {"tensor", "tp"},
              {"pipeline", "pp"},
              {"replicas", "dp"},
              {"micro_batch", "micro_batch"},
              {"zero", "zero_stage"},
              {"step_ms", "step_time_ms"},
              {"memory_gib", "memory_gib"}});
  const Columns megatron{{"source_url", "source_url"},
                         {"gpus", "gpus"},
                         {"hidden", "hidden"},
                         {"layers", "layers"},
                         {"tensor", "tp"},
                         {"pipeline", "pp"},
                         {"replicas", "dp"},
                         {"micro_batch", "micro_batch"},
                         {"step_ms", "iteration_ms"}};
  check_rows("megatron_v100.csv", "llm_parallel.csv", {"id"}, megatron);
  check_rows("vtrain.csv", "llm_parallel.csv", {"id"}, megatron);
}
