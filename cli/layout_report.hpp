// What a search of layouts has found, for people and as a table.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/problem/layout_question.hpp"

namespace simsync {

/// A layout with what is known of it.
struct ShownLayout {
  EvaluatedLayout found;
  std::optional<Seconds> replayed;  ///< none: not replayed
  std::string solver;               ///< that replayed it
  std::string obstacle;             ///< why nothing did
  [[nodiscard]] Seconds step() const { return replayed.value_or(found.cost.step); }
};

/// Of a step: floating point operations of the model, forward and backward once each, over what the devices could do in
/// that time, 0 to 1 (model FLOPs utilization, Chowdhery et al., "PaLM", 2022). Nothing without a peak rate.
std::optional<double> model_flops_utilization(const LayoutQuestion& question, const std::string& precision,
                                              Seconds step);

/// Which part of the parallelism a layout does without.
enum class LayoutFamily {
  Data,      ///< replicas of one rank
  Tensor,    ///< no pipeline
  Pipeline,  ///< no tensor parallelism
  Hybrid,    ///< both
};
LayoutFamily family_of(const Layout& layout);
const char* name_of(LayoutFamily family);

/// The best of each family among what was evaluated.
std::vector<EvaluatedLayout> best_of_families(const LayoutSearchResult& result);

/// The best that fits and whose layers are split by the rule, among what was evaluated; null: none.
const EvaluatedLayout* best_by_rule(const LayoutSearchResult& result);

std::string layout_csv_header();
std::string layout_csv_row(const LayoutQuestion& question, const ShownLayout& layout);

}  // namespace simsync
