// What a data set was asked for: `dataset.yaml` in its folder.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace simsync {

struct DatasetQuestion {
  std::vector<std::string> models, clusters;  ///< names or paths
  std::vector<int> workers;
  int pairs = 1;  ///< of each combination of these
  std::uint64_t seed = 1;
  std::optional<std::int64_t> batch;                          ///< samples of a worker in a step
  std::string calibration;                                    ///< path; empty: none
  std::vector<std::pair<std::string, std::string>> settings;  ///< `--set key=value`
  int shard = 1;                                              ///< the how manieth of so many parts, from 1
  int shards = 1;
  friend bool operator==(const DatasetQuestion&, const DatasetQuestion&) = default;
};

/// A text that parse_question reads back to an equal value.
std::string to_yaml(const DatasetQuestion& question);
/// `file` stands for the text in messages. @throws InputError with every finding.
DatasetQuestion parse_question(const std::string& text, const std::string& file);

}  // namespace simsync
