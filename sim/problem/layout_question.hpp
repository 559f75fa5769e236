// Many layouts of one question: what each is estimated to take, and whether it fits.
#pragma once
#include <map>
#include <memory>
#include <optional>

#include "sim/plan/sent_bytes.hpp"
#include "sim/problem/problem.hpp"
#include "strategies/layouts/layout_search.hpp"

namespace simsync {

class LayoutQuestion {
public:
  /// Reads what `request` names; its strategy and its batch count for nothing, and options of strategies that a layout
  /// says itself are refused. `samples` are those of a step over all replicas. `inputs` must outlive it.
  /// @throws InputError, PlanError as prepare().
  LayoutQuestion(const PredictRequest& request, std::int64_t samples, Inputs& inputs);
  ~LayoutQuestion();
  LayoutQuestion(LayoutQuestion&&) noexcept;
  LayoutQuestion& operator=(LayoutQuestion&&) = delete;

  [[nodiscard]] const Model& model() const;
  [[nodiscard]] const Cluster& cluster() const;  ///< with as many nodes as take part
  [[nodiscard]] const LayoutTask& task() const;
  [[nodiscard]] const OptimizerState& optimizer() const;

  /// By StagesEstimator and stage_memory. Nothing where the layout cannot be: what it would be refused for is kept if
  /// it is the first. Takes what is over as 0 where memory is ignored.
  [[nodiscard]] std::optional<LayoutCost> cost(const Layout& layout);
  /// Why the first layout that cannot be was refused; empty: all can be so far.
  [[nodiscard]] const std::string& first_refusal() const;
  [[nodiscard]] bool ignores_memory() const;
  /// Of a layout that can be, for prepare().
  [[nodiscard]] PredictRequest request_for(const Layout& layout) const;
  [[nodiscard]] Strategy strategy(const Layout& layout) const;
  /// Of the fullest stage, without what would help. @throws PlanError where the layout cannot be.
  [[nodiscard]] RankMemory memory(const Layout& layout) const;
  /// Of the busiest rank. @throws PlanError where the layout cannot be.
  [[nodiscard]] SentBytes sent(const Layout& layout) const;
  /// least_elements_sent of the task, in bytes of the precision.
  [[nodiscard]] double least_bytes_sent() const;

private:
  struct Parts;
  void refuse_values_of_options() const;
  /// With these options and those that were set.
  [[nodiscard]] Strategy build(const std::string& builder, std::map<std::string, std::string> options,
                               std::int64_t batch) const;
  /// What a layout asks of estimates.
  struct Asked {
    Strategy strategy;
    Profile profile;
  };
  [[nodiscard]] Asked asked(const Layout& layout) const;
  [[nodiscard]] RankMemory memory(const Asked& of) const;

  std::unique_ptr<Parts> parts_;
};

}  // namespace simsync
