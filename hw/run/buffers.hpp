// Memory of one agent: gradients that it sends, what arrives, what a server keeps, and what all of it should hold.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "hw/run/collective_results.hpp"
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
/// two transfers in flight share any; where ranks may run ahead of each other, as often as they may be ahead.
class Buffers {
public:
  /// `iterations`: of the run; nobody is further ahead.
  Buffers(const Roles& roles, AgentId self, Optimizer optimizer, int iterations);

  /// What this agent sends as instance `i`, with the values of `iteration`.
  std::span<const std::byte> outgoing(const Instance& i, int iteration);
  /// Takes a piece of a transfer to this agent. @return whether it was the last one.
  bool take(const FrameHeader& header, Pieces pieces);
  /// Input and output of a collective, input with the values of `iteration`; with `clear` nothing is left in the
  /// output.
  CollectiveBuffers collective(OpId op, int iteration, bool clear);

  /// Server: adds what arrived for `i` (an aggregation) to its tensor's sum of that iteration, unless it comes too
  /// late.
  void add(const Instance& i, int iteration);
  /// Server: applies the optimizer to the sum, or makes the sum the result where workers apply it. One rank's update
  /// applies that rank's gradient. @throws WrongResult when the values are not what its gradients make of them then.
  void update(const Instance& i, int iteration);

  /// Worker: compares samples, or with `all` every value that is not a sample too. @throws WrongResult.
  void check_collective(OpId op, int iteration, bool all) const;
  /// The values must be those after some number of updates that the plan allows at this time; where each gradient is
  /// applied on its own, smaller than before, because every gradient is positive and one's own has been applied. With
  /// `all` every value that is not a sample too: these have all seen the same gradients.
  void check_pull(const Instance& i, int iteration, bool all);

private:
  struct Collective {
    std::unique_ptr<GradientValues> in;
    std::vector<float> out;
    std::vector<ResultPart> results;
  };
  struct Sum {
    std::vector<float> values;
    std::vector<int> added;  ///< whose, in this order
  };
  struct Tensor {  ///< on its server
    std::mutex mutex;
    std::map<int, std::vector<std::vector<float>>> arrived;  ///< by group and slot
    std::vector<Sum> sums;                                   ///< by slot
    std::vector<float> result;  ///< where workers apply the optimizer, or what nobody pushes
    std::unique_ptr<Parameters> parameters;
    std::unique_ptr<Parameters> expected;  ///< samples only, where it is the order of arrival that decides
    int updates = 0;
  };
  struct Pulled {  ///< on a worker
    std::vector<float> values;
    /// Samples, and one value more for all others; null where workers apply the optimizer.
    std::unique_ptr<Parameters> expected;
    /// The same after `updates` updates, and before as many of the last ones as may be missing.
    std::deque<std::vector<float>> versions;
    int updates = 0;
  };
  /// How a tensor's server goes about what is pushed.
  struct Life {
    bool pushed = false;   ///< workers push to it; others keep their values
    bool applied = false;  ///< its server applies the optimizer
    bool each = false;     ///< every gradient on its own
    int may_miss = 0;      ///< gradients that a sum can do without (After::may_miss)
    int behind = 0;        ///< updates that may be missing in what is read
  };

  void find_lives(int iterations);
  void add_op(OpId id, AgentId self);
  void add_collective(OpId id, AgentId self);
  void add_push(OpId id, AgentId self);
  void add_pull(OpId id, AgentId self);
  /// Whether only the server knows which gradients its values have seen.
  [[nodiscard]] static bool by_arrival(const Life& life) { return life.each || life.may_miss > 0; }
  [[nodiscard]] const Life& life(const Op& op) const { return lives_[static_cast<std::size_t>(op.tensor())]; }
  /// Which of the memories of a tensor an iteration has.
  [[nodiscard]] std::size_t slot(const Op& op, int iteration) const {
    return static_cast<std::size_t>(iteration % (life(op).behind + 1));
  }
  /// Positions of samples in `out`.
  static std::vector<std::size_t> samples_of(const Collective& buffers);
  std::span<float> destination(const Instance& i, int iteration);
  void check_applied(const Instance& i, int iteration, Tensor& tensor, const std::vector<int>& ranks);
  void check_moved_on(const Instance& i, bool all);
  void check_version(const Instance& i, int iteration, bool all);
  void extend_versions(const Op& op, Pulled& pulled, int updates);

  const Roles& roles_;
  int rank_;
  Optimizer optimizer_;
  std::vector<Life> lives_;                             ///< by tensor
  std::map<OpId, Collective> collectives_;              ///< by op
  std::map<OpId, std::vector<GradientValues>> pushes_;  ///< by op and slot: this rank's instance
  std::map<OpId, Pulled> pulls_;                        ///< by op
  std::map<std::int32_t, Tensor> tensors_;              ///< on this server
  std::map<Instance, std::vector<float>> snapshots_;    ///< what is read while others may update it
};

}  // namespace simsync
