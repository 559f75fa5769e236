// What one rank of a stage exchanges with the ranks that have the same variables, for estimates. Private to sim/plan.
#pragma once
#include <optional>
#include <vector>

#include "sim/plan/sharded_passes.hpp"
#include "sim/plan/stage_times.hpp"
#include "sim/plan/units.hpp"

namespace simsync::detail {

/// For one stage of one strategy, whose variables are all all-reduced or all sharded.
class StageExchange {
public:
  /// Keeps references to `part`, `whole` (the strategy of the whole model) and `profile`.
  StageExchange(const StageTimes& times, const ModelMesh& mesh, const StageModel& part, const Strategy& whole,
                const Profile& profile);

  /// Empty where nothing is sharded.
  [[nodiscard]] const std::vector<Unit>& units() const { return units_; }
  /// Collectives of a unit, s, without its compute.
  [[nodiscard]] UnitTimes times_of(const Unit& unit);
  /// Of the bytes that a rank of the stage holds, what it updates.
  [[nodiscard]] double updated_share() const;
  /// When all gradients are summed, s: those of a layer are there at `ready`, and the stage computes until `computed`.
  [[nodiscard]] double summed(const std::vector<double>& ready, double computed);
  /// s that the stream of gradients has been busy for in summed().
  [[nodiscard]] double busy() const { return busy_; }
  /// Bytes of the gradient of a tied table that the stage holds (StageModel::shared_copy); 0 without one.
  [[nodiscard]] double table_bytes() const;

private:
  /// Gradients that leave together.
  struct Message {
    double ready = 0.0;
    double time = 0.0;      ///< over those that share out the state, or over all that sum it
    double replicas = 0.0;  ///< of its share, over groups that share out the state
  };

  [[nodiscard]] int shares(GradientSum sum) const { return sharded_ ? shard_ranks(graph_, sum) : 1; }
  [[nodiscard]] double sent_bytes_of(VariableId id) const;
  [[nodiscard]] MeshGroups::Question ranks_that_sum(GradientSum sum) const;
  std::vector<Message> reduced_messages(const std::vector<double>& ready, GradientSum sum);
  std::vector<Message> sharded_messages(const std::vector<double>& ready);
  double sum_of_partial_shares();
  double arrival(const std::vector<Message>& messages, double computed);

  StageTimes times_;
  ModelMesh mesh_;
  const StageModel& part_;
  const GraphStrategy& graph_;
  const Profile& profile_;
  Strategy strategy_;  ///< of the stage's variables
  bool sharded_;
  std::vector<Unit> units_;
  double busy_ = 0.0;
};

}  // namespace simsync::detail
