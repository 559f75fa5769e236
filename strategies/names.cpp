#include "strategies/names.hpp"

namespace simsync {
const Words<CollectiveAlgorithm>& collective_algorithm_words() {
  static const Words<CollectiveAlgorithm> kWords{{"auto", CollectiveAlgorithm::Auto},
                                                 {"best", CollectiveAlgorithm::Best},
                                                 {"ring", CollectiveAlgorithm::Ring},
                                                 {"double-binary-tree", CollectiveAlgorithm::DoubleBinaryTree},
                                                 {"halving-doubling", CollectiveAlgorithm::HalvingDoubling},
                                                 {"hierarchical", CollectiveAlgorithm::Hierarchical},
                                                 {"broadcast-reduce", CollectiveAlgorithm::BroadcastReduce}};
  return kWords;
}

const Words<Compressor>& compressor_words() {
  static const Words<Compressor> kWords{{"none", Compressor::None},
                                        {"cast32", Compressor::Cast32},
                                        {"fp16", Compressor::Fp16},
                                        {"powersgd", Compressor::PowerSgd}};
  return kWords;
}

const Words<Overlap>& overlap_words() {
  static const Words<Overlap> kWords{{"none", Overlap::None}, {"wait-free", Overlap::WaitFree}};
  return kWords;
}

const Words<Ordering>& ordering_words() {
  static const Words<Ordering> kWords{{"fifo", Ordering::Fifo}, {"priority", Ordering::Priority}};
  return kWords;
}

const Words<Gate>& gate_words() {
  static const Words<Gate> kWords{{"all", Gate::All}, {"per-variable", Gate::PerVariable}};
  return kWords;
}

const Words<UpdateAt>& update_at_words() {
  static const Words<UpdateAt> kWords{{"server", UpdateAt::Server}, {"worker", UpdateAt::Worker}};
  return kWords;
}

const Words<FusionKind>& fusion_kind_words() {
  static const Words<FusionKind> kWords{{"groups", FusionKind::Groups},
                                        {"none", FusionKind::None},
                                        {"buckets", FusionKind::Buckets},
                                        {"cycle", FusionKind::Cycle},
                                        {"merged-gradient", FusionKind::MergedGradient},
                                        {"single", FusionKind::Single}};
  return kWords;
}

const Words<DType>& dtype_words() {
  static const Words<DType> kWords{{name_of(DType::Float32), DType::Float32},
                                   {name_of(DType::Float16), DType::Float16},
                                   {name_of(DType::BFloat16), DType::BFloat16}};
  return kWords;
}

const Words<Recompute>& recompute_words() {
  static const Words<Recompute> kWords{{name_of(Recompute::None), Recompute::None},
                                       {name_of(Recompute::Selective), Recompute::Selective},
                                       {name_of(Recompute::SelectiveOp), Recompute::SelectiveOp},
                                       {name_of(Recompute::Full), Recompute::Full}};
  return kWords;
}

const Words<StageBlocks>& stage_blocks_words() {
  static const Words<StageBlocks> kWords{{"even", StageBlocks::Even},
                                         {"with-ends", StageBlocks::WithEnds},
                                         {"threshold", StageBlocks::Threshold},
                                         {"balanced", StageBlocks::Balanced}};
  return kWords;
}

const char* name_of(CollectiveAlgorithm algorithm) {
  if (algorithm == CollectiveAlgorithm::Pairwise) return "pairwise";
  return word_for(collective_algorithm_words(), algorithm).c_str();
}
const char* name_of(Compressor compressor) {
  return word_for(compressor_words(), compressor).c_str();
}
const char* name_of(Overlap overlap) {
  return word_for(overlap_words(), overlap).c_str();
}
const char* name_of(Ordering ordering) {
  return word_for(ordering_words(), ordering).c_str();
}
const char* name_of(Gate gate) {
  return word_for(gate_words(), gate).c_str();
}
const char* name_of(UpdateAt update_at) {
  return word_for(update_at_words(), update_at).c_str();
}
const char* name_of(FusionKind kind) {
  return word_for(fusion_kind_words(), kind).c_str();
}

const char* name_of(StageBlocks blocks) {
  return word_for(stage_blocks_words(), blocks).c_str();
}

}  // namespace simsync
