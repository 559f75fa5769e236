#include "strategies/layouts/layout_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "base/parse_units.hpp"
#include "strategies/names.hpp"
#include "strategies/split_layers.hpp"

namespace simsync {
namespace {

constexpr const char* kAuto = "auto";

/// Divisors of `number` up to `most`.
std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 1; i <= std::min(number, most); ++i)
    if (number % i == 0) out.push_back(i);
  return out;
}

template <typename Number>
std::vector<Number> numbers(const Options& options, const char* name, const std::vector<std::int64_t>& automatic) {
  if (options.text(name) == kAuto) return {automatic.begin(), automatic.end()};
  std::vector<Number> out;
  const std::string text = options.text(name);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const auto number = parse_integer(text.substr(begin, comma - begin));
    constexpr std::int64_t kMost = 1'000'000;
    if (!number || *number < 0 || *number > kMost)
      options.fail(name, fmt::format("expected whole numbers separated by commas, got '{}'", text));
    out.push_back(static_cast<Number>(*number));
    begin = comma + 1;
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// With `*` for the number of the block that it is in.
std::string tied_name(const std::string& layer) {
  const std::string block = block_of(layer);
  if (block.empty()) return layer;
  const std::size_t number = block.find_last_not_of("0123456789") + 1;
  return block.substr(0, number) + "*" + layer.substr(block.size());
}

std::vector<std::string> tied_dense_layers(const Model& model) {
  std::vector<std::string> out;
  for (LayerId id = 0; id < model.layer_count(); ++id) {
    const Layer& layer = model.layer(id);
    if (layer.kind != LayerKind::Dense || layer.dense_rows <= 0.0) continue;
    const std::string name = tied_name(layer.name);
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  return out;
}

void need_at_least(std::int64_t least, const Options& options, const char* name, std::int64_t first) {
  if (first < least) options.fail(name, fmt::format("expected numbers of at least {}", least));
}

/// Powers of two that leave each rank as many tokens as Llama 3 had: 131,072 over 16 ("The Llama 3 Herd of Models",
/// 2024, table 4).
std::vector<std::int64_t> context_ranks(const Model& model, const LayoutTask& task) {
  constexpr double kFewest = 8192.0;
  double tokens = 0.0;
  for (LayerId id = 0; id < model.layer_count(); ++id) tokens = std::max(tokens, model.layer(id).dense_rows);
  std::vector<std::int64_t> out{1};
  for (std::int64_t ranks = 2; ranks <= task.workers && tokens >= kFewest * static_cast<double>(ranks); ranks *= 2) {
    if (!obstacle_to_context(model, {.context = static_cast<int>(ranks)})) out.push_back(ranks);
  }
  return out;
}

/// Divisors of a step's samples up to 64, and the batch of a replica whatever the number of replicas is.
std::vector<std::int64_t> micro_batches(const LayoutTask& task) {
  constexpr std::int64_t kMostSamples = 64;
  std::vector<std::int64_t> out = divisors(task.samples, kMostSamples);
  for (const std::int64_t replicas : divisors(task.workers, task.workers))
    if (task.samples % replicas == 0) out.push_back(task.samples / replicas);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

const std::vector<OptionInfo>& layout_dimensions() {
  static const std::vector<OptionInfo> kDimensions{
      {"tensor", kAuto, "ranks that split every layer; auto: divisors of the workers up to the GPUs of four nodes"},
      {"pipeline", kAuto, "stages; auto: divisors of the workers up to the model's blocks"},
      {"experts", kAuto, "replicas that share out experts; auto: divisors of the model's experts, 1 without any"},
      {"context", kAuto,
       "replicas that share out the tokens of a sample; auto: powers of two that leave each 8,192 or more"},
      {"schedule", "1f1b,interleaved,zero-bubble", "order of a stage's passes: gpipe, 1f1b, interleaved, zero-bubble"},
      {"chunks", kAuto, "runs of layers on a stage of an interleaved schedule; auto: 2 to the blocks of a stage"},
      {"stage_blocks", "even,with-ends", "blocks of a stage: even, with-ends, threshold, balanced, as ddp has them"},
      {"sequence", "false,true", "whether tensor-parallel ranks share out by tokens what no layer splits"},
      {"micro_batch", kAuto,
       "samples of a replica that are computed at a time; auto: divisors up to 64, and all of them"},
      {"recompute", "none,selective,full", "activations that are computed again"},
      {"splits", "layers",
       "layers: how each dense layer is split is searched, the same in all blocks; rule: as Megatron-LM does"},
      {"zero", "0,1,2,3", "stages of ZeRO; 0: every replica keeps all state"}};
  return kDimensions;
}

LayoutSpace layout_space(const std::map<std::string, std::string>& given, const Model& model, const Cluster& cluster,
                         const LayoutTask& task) {
  const Options options("the space of layouts", layout_dimensions(), given);
  const auto blocks = static_cast<std::int64_t>(blocks_of(model).size());
  const int gpus = cluster.group_of(cluster.workers(1).front().node).gpus;
  constexpr int kNodes = 4;
  LayoutSpace out;
  out.tensor = numbers<int>(options, "tensor", divisors(task.workers, static_cast<std::int64_t>(kNodes) * gpus));
  out.pipeline = numbers<int>(options, "pipeline", divisors(task.workers, std::max<std::int64_t>(1, blocks)));
  out.experts = numbers<int>(options, "experts", divisors(std::max(1, experts_of(model)), task.workers));
  out.context = numbers<int>(options, "context", context_ranks(model, task));
  out.schedules = options.some_of(std::string("schedule"), pipeline_schedule_words());
  std::vector<std::int64_t> chunks(static_cast<std::size_t>(std::max<std::int64_t>(0, blocks / 2 - 1)));
  std::iota(chunks.begin(), chunks.end(), 2);
  out.chunks = numbers<int>(options, "chunks", chunks);
  out.stage_blocks = options.some_of(std::string("stage_blocks"), stage_blocks_words());
  out.sequence = options.some_of<bool>("sequence", {{"false", false}, {"true", true}});
  out.micro_batch = numbers<std::int64_t>(options, "micro_batch", micro_batches(task));
  out.recompute = options.some_of(std::string("recompute"), recompute_words());
  if (blocks == 0) out.recompute = {Recompute::None};
  out.zero = numbers<int>(options, "zero", {});
  if (options.one_of<bool>("splits", {{"layers", true}, {"rule", false}})) out.tied_layers = tied_dense_layers(model);
  for (const auto& [name, first] : {std::pair{"tensor", static_cast<std::int64_t>(out.tensor.front())},
                                    {"pipeline", static_cast<std::int64_t>(out.pipeline.front())},
                                    {"experts", static_cast<std::int64_t>(out.experts.front())},
                                    {"context", static_cast<std::int64_t>(out.context.front())},
                                    {"micro_batch", out.micro_batch.front()}})
    need_at_least(1, options, name, first);
  if (!out.chunks.empty()) need_at_least(2, options, "chunks", out.chunks.front());
  if (out.chunks.empty() && out.schedules == std::vector{PipelineSchedule::Interleaved})
    options.fail("schedule",
                 fmt::format("model '{}' has too few blocks for two chunks on each of two stages", model.name()));
  if (out.zero.back() > 3) options.fail("zero", "stages of ZeRO are 0 to 3");
  return out;
}

std::vector<int> chunks_of(const LayoutSpace& space, PipelineSchedule schedule) {
  return schedule == PipelineSchedule::Interleaved ? space.chunks : std::vector<int>{1};
}

}  // namespace simsync
