// Which layouts a search may choose.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "platforms/cluster.hpp"
#include "strategies/layouts/layout.hpp"
#include "strategies/options.hpp"

namespace simsync {

/// Values of every dimension, each ascending and at least one. What does not divide is left out as it is met
/// (LayoutTask::divides).
struct LayoutSpace {
  std::vector<int> tensor;
  std::vector<int> pipeline;
  std::vector<int> experts;
  std::vector<int> context;
  std::vector<PipelineSchedule> schedules;
  std::vector<int> chunks;  ///< of interleaved schedules; 1 of all others
  std::vector<StageBlocks> stage_blocks;
  std::vector<bool> sequence;
  std::vector<std::int64_t> micro_batch;
  std::vector<Recompute> recompute;
  std::vector<int> zero;
  /// Dense layers whose split a descent may choose, those of the same place in all blocks together: names with `*` for
  /// the number of the block. Empty: all layers are split by the rule.
  std::vector<std::string> tied_layers;
};

/// Names, defaults and meanings of the dimensions, for `simsync list space`.
const std::vector<OptionInfo>& layout_dimensions();
/// The space that `given` (dimension, values) restricts. `auto` stands for all that can be: divisors of the workers for
/// tensor (up to four nodes' GPUs) and pipeline (up to the model's blocks), divisors of the model's experts for
/// experts, numbers of ranks that share out the tokens of a sample into parts of at least 8,192 for context, divisors
/// of the samples for micro_batch (up to 64, and all samples of a replica), numbers of chunks up to the blocks of a
/// stage. Recomputation needs blocks. @throws InputError for an unknown dimension, a value that it cannot have, and
/// interleaved schedules alone where no stage can have two chunks.
LayoutSpace layout_space(const std::map<std::string, std::string>& given, const Model& model, const Cluster& cluster,
                         const LayoutTask& task);

/// Chunks that a stage may have with this schedule.
std::vector<int> chunks_of(const LayoutSpace& space, PipelineSchedule schedule);

}  // namespace simsync
