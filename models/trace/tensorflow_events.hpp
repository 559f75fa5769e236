// What TensorFlow records of one step: operations by device, from RunMetadata or from a timeline.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace simsync::detail {

/// One record of NodeExecStats, or the event of a timeline made of it.
struct TfNode {
  std::string device;  ///< /job:worker/replica:0/task:0/device:GPU:0
  std::string name;
  std::string op;                   ///< `unknown` where the record does not tell
  std::vector<std::string> inputs;  ///< as the graph names them
  std::string tensor;               ///< of a RecvTensor: what it brings
  double begin = 0.0;               ///< microseconds
  double end = 0.0;
  std::int64_t bytes = -1;  ///< of its first output; -1 when not told
};

/// All records of a file. @throws InputError when it holds neither step statistics nor a timeline.
std::vector<TfNode> load_tf_nodes(const std::string& path);

/// `^gradients/add:1` and `gradients/add/_7` are `gradients/add`: without mark of control, output and transfer.
std::string base_of(const std::string& input);
/// Whether it moves a tensor between devices or tasks.
bool is_transfer(const TfNode& node);

}  // namespace simsync::detail
