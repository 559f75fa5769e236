// Whether the state of a training step can fit into the devices that are to run it.
#pragma once
#include <string>

#include "models/memory.hpp"
#include "models/profile.hpp"
#include "platforms/cluster.hpp"
#include "strategies/stage_model.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

/// What of the state of training ranks share out.
enum class StateSharing { None, Part, All };

/// What every worker needs, beside the smallest device among the workers.
struct RankMemory {
  MemoryNeed need;
  std::string device;
  Bytes device_bytes;  ///< 0: its description does not tell, and everything fits
  Bytes usable = {};   ///< what driver, CUDA context and communication library leave of it
  // Where it does not fit:
  std::int64_t largest_batch = 0;         ///< samples of a replica's step with which it would, 0 if one does not
  int replicas = 0;                       ///< whose samples were asked for together (--global-batch); 0: those of one
  std::vector<std::string> changes = {};  ///< settings with each of which the same samples would, the cheapest first
  StateSharing sharing = StateSharing::None;
  Bytes least_activations = {};  ///< of one sample, all of them computed again: of no number of workers less
  [[nodiscard]] bool fits() const { return device_bytes.count == 0 || need.total() <= usable; }
};

/// What `strategy` keeps on a worker: weights that servers hand out as a whole, gradients and optimizer state where the
/// worker applies the optimizer after the whole backward pass, copies of gradients in buckets (PyTorch) or in a fusion
/// buffer (Horovod); of sharded variables its share by the stage of ZeRO, the blocks that are gathered at a time, and
/// the gradients of one block. Batch and precision are those of `profile`.
RankMemory rank_memory(const Model& model, const Cluster& cluster, const Strategy& strategy, const Profile& profile,
                       const OptimizerState& optimizer = {});

/// The same of the fullest of these stages (stage_models), without what would help where it does not fit.
RankMemory stage_memory(const std::vector<StageModel>& stages, const Cluster& cluster, const Strategy& strategy,
                        const Profile& profile, const OptimizerState& optimizer = {});

/// `needs about 3.20 GiB, T4 leaves 14.32 GiB of 16.00 GiB`.
std::string memory_text(const RankMemory& memory);
/// `does not fit: needs about ...`, and what it consists of.
std::string misfit_text(const RankMemory& memory);
/// What to change so that it fits.
std::string remedy_text(const RankMemory& memory);

}  // namespace simsync
