// How many blocks of a model lie in each of its chunks: the rules of frameworks, and the best there is.
#pragma once
#include <vector>

namespace simsync {

/// Blocks (transformer layers) by model chunk, in the model's order; model chunk k lies on stage k % stages. The first
/// chunk has what is before the blocks, too (the embedding), the last one what is after them (the head). Only those two
/// may be without a block, and only if the embedding or the head costs or weighs something.
using BlockCounts = std::vector<int>;

/// The embedding and the head, in whole blocks.
struct BlockWeights {
  int before = 0;
  int after = 0;
};

/// Any measure of work that adds up, such as seconds or operations.
struct BlockCosts {
  std::vector<double> blocks;
  double before = 0.0;  ///< embedding
  double after = 0.0;   ///< head and loss
};

/// As many blocks in every chunk. With a weight of 1 an embedding or a head counts as a block of its chunk. Source:
/// Megatron-LM, get_num_layers_to_build, and its flags account_for_embedding_in_pipeline_split and
/// account_for_loss_in_pipeline_split.
/// @throws PlanError when they do not divide evenly, with the numbers that do.
BlockCounts even_blocks(int blocks, int model_chunks, const BlockWeights& weights = {});

/// The same where the first chunks may have one block more. Source: torchtitan, generate_llm_fqn_per_model_part.
/// @throws PlanError when there are more chunks than blocks and weights, or a weight is more than a chunk's share.
BlockCounts spread_blocks(int blocks, int model_chunks, const BlockWeights& weights = {});

/// Chunk k ends with the block that takes the sum of all costs up to there beyond (k + 1) / model_chunks of the whole.
/// Source: nanotron, build_model. @throws PlanError when that leaves the last chunks empty.
BlockCounts threshold_blocks(const BlockCosts& costs, int model_chunks);

/// The contiguous partition whose most expensive chunk is the cheapest; of several, that with the least sum of squares,
/// then that whose first chunks have most blocks. Sums within 1e-12 of each other count as equal. Takes time in
/// proportion to model_chunks x blocks^2. @throws PlanError for too few blocks.
BlockCounts balanced_blocks(const BlockCosts& costs, int model_chunks);

/// For counts that a user gives. @throws PlanError when they are not as many as there are chunks, do not add up to the
/// blocks, or leave a chunk empty that must not be.
void check_blocks(const BlockCounts& counts, const BlockCosts& costs, int model_chunks);

/// What each model chunk costs, the embedding and the head included. `counts` must pass check_blocks.
std::vector<double> chunk_costs(const BlockCounts& counts, const BlockCosts& costs);
/// What each stage costs, given its chunks' costs; the stages divide their number.
std::vector<double> stage_costs(const std::vector<double>& chunk_costs, int stages);

}  // namespace simsync
