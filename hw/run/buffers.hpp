// Memory of one agent: gradients that it sends, what arrives, what a server keeps, and what all of it should hold.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "hw/run/collectives.hpp"
#include "hw/run/links.hpp"
#include "hw/run/payload.hpp"
#include "hw/run/roles.hpp"

namespace simsync {

/// A value that is not what it should be. The text names op, rank, position and both values.
class WrongResult : public RunError {
public:
  using RunError::RunError;
};

/// Made once, before the first iteration; then only its contents change. Every op has memory of its own, so that no
/// two transfers in flight share any.
class Buffers {
public:
  Buffers(const Roles& roles, AgentId self, Optimizer optimizer);

  /// What this agent sends as instance `i`, with the values of `iteration`.
  std::span<const std::byte> outgoing(const Instance& i, int iteration);
  /// Takes a piece of a transfer to this agent. @return whether it was the last one.
  bool take(const FrameHeader& header, Pieces pieces);
  /// Input and output of a collective, input with the values of `iteration`.
  CollectiveBuffers collective(OpId op, int iteration);

  /// Server: adds what arrived for `i` (an aggregation) to its tensor.
  void add(const Instance& i);
  /// Server: applies the optimizer to the sum, or makes the sum the result where workers apply it.
  void update(OpId op);

  /// Worker: compares samples, or with `all` every value that is not a sample too. @throws WrongResult.
  void check_collective(OpId op, int iteration, bool all) const;
  void check_pull(const Instance& i, int iteration);

private:
  struct Collective {
    std::unique_ptr<Gradient> in;
    std::vector<float> out;
  };
  struct Tensor {  ///< on its server
    std::mutex mutex;
    std::map<int, std::vector<float>> arrived;  ///< by cell
    std::vector<float> sum;
    int added = 0;
    std::vector<float> result;  ///< where workers apply the optimizer, or what nobody pushes
    std::unique_ptr<Parameters> parameters;
  };
  struct Pulled {  ///< on a worker
    std::vector<float> values;
    std::unique_ptr<Parameters> expected;  ///< samples only; null where workers apply the optimizer
  };

  void add_op(OpId id, AgentId self);
  [[nodiscard]] bool applied_by_server(std::int32_t tensor) const {
    return applied_[static_cast<std::size_t>(tensor)] != 0;
  }
  std::span<float> destination(const Instance& i);

  const Roles& roles_;
  int rank_;
  Optimizer optimizer_;
  std::vector<char> applied_;                         ///< tensor -> its server applies the optimizer
  std::vector<char> pushed_;                          ///< tensor -> workers push to it; others keep their values
  std::map<OpId, Collective> collectives_;            ///< by op
  std::map<OpId, std::unique_ptr<Gradient>> pushes_;  ///< by op: this rank's instance
  std::map<OpId, Pulled> pulls_;                      ///< by op
  std::map<std::int32_t, Tensor> tensors_;            ///< on this server
};

}  // namespace simsync
