// Words for the choices of a strategy, the same in files, options and messages.
#pragma once
#include "base/words.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

const Words<CollectiveAlgorithm>& collective_algorithm_words();
const Words<Compressor>& compressor_words();
const Words<Overlap>& overlap_words();
const Words<Ordering>& ordering_words();
const Words<Gate>& gate_words();
const Words<UpdateAt>& update_at_words();
const Words<FusionKind>& fusion_kind_words();
const Words<DType>& dtype_words();
const Words<Recompute>& recompute_words();
const Words<StageBlocks>& stage_blocks_words();

const char* name_of(CollectiveAlgorithm algorithm);
const char* name_of(Compressor compressor);
const char* name_of(Overlap overlap);
const char* name_of(Ordering ordering);
const char* name_of(Gate gate);
const char* name_of(UpdateAt update_at);
const char* name_of(FusionKind kind);
const char* name_of(StageBlocks blocks);

}  // namespace simsync
