// A strategy as settings of the frameworks that train language models, or why they cannot do the same.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/words.hpp"
#include "models/optimizer.hpp"
#include "strategies/strategy.hpp"

namespace simsync {

enum class Framework : std::uint8_t {
  Megatron,    ///< flags of pretrain_*.py
  NeMo,        ///< keys of megatron_gpt_config.yaml
  Torchtitan,  ///< keys of a toml file
  DeepSpeed,   ///< keys of its json file
};
/// Their words in flags: megatron, nemo, torchtitan, deepspeed.
const Words<Framework>& framework_words();
/// With the release whose source was read: `Megatron-LM core_v0.19.0`.
const char* name_of(Framework framework);

/// A strategy, and what else of a training run frameworks are told. Micro-steps and recomputation are the strategy's.
struct ExportQuestion {
  const Strategy& strategy;
  const Model& model;
  std::int64_t batch = 1;          ///< samples of a replica in a step, those of all micro-steps together
  std::string precision = "fp32";  ///< fp32, tf32, amp, fp16, bf16 or fp8
  OptimizerState optimizer = {};
};

/// True alone, without a value, where a framework has flags.
using SettingValue = std::variant<bool, std::int64_t, std::string>;
struct Setting {
  std::string section;  ///< of the file, such as `model.optim`; empty at its top, and for flags
  std::string name;     ///< as the framework spells it
  SettingValue value;
};

struct FrameworkSettings {
  std::vector<Setting> settings;      ///< in the order of the file; empty where the framework cannot express the plan
  std::vector<std::string> notes;     ///< what it does otherwise, whatever it is told, although the same bytes are sent
  std::vector<std::string> refusals;  ///< why it cannot express the plan; empty: it can
};

/// What the framework is told to follow the plan. What the plan says beyond its settings is refused where ranks would
/// exchange other bytes or hold other parts, and noted where only order or overlap differ. The shape of the model, its
/// data, learning rates and the launcher's own arguments are not among the settings.
FrameworkSettings framework_settings(Framework framework, const ExportQuestion& question);

/// Flags, one a line, a yaml, a toml or a json file, with a line feed at the end.
std::string to_text(Framework framework, const std::vector<Setting>& settings);

/// Both: the file. @throws PlanError with the refusals where the framework cannot express the plan.
std::string exported_text(Framework framework, const ExportQuestion& question);

}  // namespace simsync
