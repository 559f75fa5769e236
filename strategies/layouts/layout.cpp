#include "strategies/layouts/layout.hpp"

#include <fmt/format.h>

#include "strategies/limits.hpp"
#include "strategies/names.hpp"

namespace simsync {

bool LayoutTask::divides(const Layout& layout) const {
  if (workers % layout.ranks() != 0 || replicas(layout) % layout.context != 0) return false;
  if (samples % batches(layout) != 0 || batch(layout) % layout.micro_batch != 0) return false;
  if (replicas(layout) % layout.experts != 0 || micro_steps(layout) > kMostMicroSteps) return false;
  if ((layout.sequence || !layout.splits.empty()) && layout.tensor == 1) return false;
  if (layout.zero > 0 && replicas(layout) == 1) return false;
  const bool interleaved = layout.schedule == PipelineSchedule::Interleaved;
  if (interleaved != (layout.chunks > 1)) return false;
  if (layout.blocks != StageBlocks::Even && layout.pipeline == 1) return false;
  if (layout.pipeline == 1)
    return layout.schedule == PipelineSchedule::OneForwardOneBackward;  // one stage has one order
  return !interleaved || micro_steps(layout) % layout.pipeline == 0;
}

const char* builder_of(const Layout& layout) {
  return layout.zero == 0 ? "ddp" : "fsdp";
}

std::map<std::string, std::string> options_of(const Layout& layout, const LayoutTask& task) {
  std::map<std::string, std::string> out{
      {"tensor", fmt::format("{}", layout.tensor)},     {"pipeline", fmt::format("{}", layout.pipeline)},
      {"schedule", name_of(layout.schedule)},           {"chunks", fmt::format("{}", layout.chunks)},
      {"sequence", layout.sequence ? "true" : "false"}, {"micro_steps", fmt::format("{}", task.micro_steps(layout))},
      {"recompute", name_of(layout.recompute)},         {"stage_blocks", name_of(layout.blocks)}};
  if (layout.experts > 1) out["experts"] = fmt::format("{}", layout.experts);
  if (layout.context > 1) out["context"] = fmt::format("{}", layout.context);
  if (!layout.splits.empty()) out["splits"] = text_of(layout.splits);
  if (layout.zero > 0) out["stage"] = fmt::format("{}", layout.zero);
  return out;
}

const std::vector<std::string>& layout_options() {
  static const std::vector<std::string> kNames{"tensor",      "pipeline",  "experts",      "context",
                                               "schedule",    "chunks",    "stage_blocks", "sequence",
                                               "micro_steps", "recompute", "splits",       "stage"};
  return kNames;
}

std::string text_of(const Layout& layout, const LayoutTask& task) {
  std::string out = fmt::format("tensor {} x pipeline {}", layout.tensor, layout.pipeline);
  if (layout.pipeline > 1)
    out += fmt::format(" ({}{}{})", name_of(layout.schedule),
                       layout.chunks > 1 ? fmt::format(", {} chunks", layout.chunks) : "",
                       layout.blocks == StageBlocks::Even ? "" : fmt::format(", blocks {}", name_of(layout.blocks)));
  if (layout.context > 1) out += fmt::format(" x context {}", layout.context);
  out += fmt::format(" x data {}", task.batches(layout));
  if (layout.experts > 1) out += fmt::format(", experts over {}", layout.experts);
  if (layout.sequence) out += ", sequence";
  if (!layout.splits.empty()) out += fmt::format(" ({})", text_of(layout.splits));
  if (layout.zero > 0) out += fmt::format(", ZeRO {}", layout.zero);
  out += fmt::format(", micro-batch {}", layout.micro_batch);
  if (layout.recompute != Recompute::None) out += fmt::format(", recompute {}", name_of(layout.recompute));
  return out;
}

}  // namespace simsync
