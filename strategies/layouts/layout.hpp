// How the ranks of a job share out a model and a batch: tensor, pipeline and data parallelism with sharded state.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/blocks.hpp"
#include "strategies/model_parallel.hpp"

namespace simsync {

/// One choice, for a given number of ranks and of samples in a step.
struct Layout {
  int tensor = 1;
  int pipeline = 1;
  int experts = 1;  ///< replicas next to each other that share out experts
  int context = 1;  ///< replicas next to each other that share out the tokens of the same samples
  PipelineSchedule schedule = PipelineSchedule::OneForwardOneBackward;
  int chunks = 1;
  StageBlocks blocks = StageBlocks::Even;
  bool sequence = false;
  std::int64_t micro_batch = 1;  ///< samples of a replica that go through the model at a time
  Recompute recompute = Recompute::None;
  std::vector<SplitChoice> splits = {};  ///< of layers, where they are not the rule's (ModelParallel::splits)
  int zero = 0;  ///< stage of ZeRO; 0: gradients are all-reduced, and every replica keeps all state
  friend auto operator<=>(const Layout&, const Layout&) = default;

  [[nodiscard]] int ranks() const { return tensor * pipeline; }  ///< of a replica
};

/// What a search keeps as it is.
struct LayoutTask {
  int workers = 1;
  std::int64_t samples = 1;  ///< of a step, over all replicas

  [[nodiscard]] int replicas(const Layout& layout) const { return workers / layout.ranks(); }
  /// Replicas with samples of their own.
  [[nodiscard]] int batches(const Layout& layout) const { return replicas(layout) / layout.context; }
  [[nodiscard]] std::int64_t batch(const Layout& layout) const { return samples / batches(layout); }  ///< of each
  [[nodiscard]] std::int64_t micro_steps(const Layout& layout) const { return batch(layout) / layout.micro_batch; }
  /// Whether ranks, samples and passes divide evenly, as schedules need them to.
  [[nodiscard]] bool divides(const Layout& layout) const;
};

/// The builder that makes it: ddp without ZeRO, else fsdp.
const char* builder_of(const Layout& layout);
/// Its options, `--set strategy.<option>=value`, for this task.
std::map<std::string, std::string> options_of(const Layout& layout, const LayoutTask& task);
/// Names of all that options_of may say.
const std::vector<std::string>& layout_options();
/// `tensor 8 x pipeline 4 (interleaved, 2 chunks) x data 16, sequence, ZeRO 1, micro-batch 2, recompute full`.
std::string text_of(const Layout& layout, const LayoutTask& task);

}  // namespace simsync
