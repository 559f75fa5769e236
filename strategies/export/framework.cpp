#include "strategies/export/framework.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "strategies/export/common.hpp"

namespace simsync {

const Words<Framework>& framework_words() {
  static const Words<Framework> kWords{{"megatron", Framework::Megatron},
                                       {"nemo", Framework::NeMo},
                                       {"torchtitan", Framework::Torchtitan},
                                       {"deepspeed", Framework::DeepSpeed}};
  return kWords;
}

const char* name_of(Framework framework) {
  switch (framework) {
    case Framework::Megatron:
      return "Megatron-LM core_v0.19.0";
    case Framework::NeMo:
      return "NeMo 2.0.0";
    case Framework::Torchtitan:
      return "torchtitan 0.2.2";
    case Framework::DeepSpeed:
      return "DeepSpeed 0.19.6";
  }
  return "?";
}

FrameworkSettings framework_settings(Framework framework, const ExportQuestion& question) {
  FrameworkSettings out = detail::begin_settings(question);
  if (!out.refusals.empty()) return out;
  switch (framework) {
    case Framework::Megatron:
      out = detail::megatron_settings(question);
      break;
    case Framework::NeMo:
      out = detail::nemo_settings(question);
      break;
    case Framework::Torchtitan:
      out = detail::torchtitan_settings(question);
      break;
    case Framework::DeepSpeed:
      out = detail::deepspeed_settings(question);
      break;
  }
  if (!out.refusals.empty()) out.settings.clear();
  return out;
}

std::string exported_text(Framework framework, const ExportQuestion& question) {
  const FrameworkSettings found = framework_settings(framework, question);
  if (!found.refusals.empty())
    throw PlanError(fmt::format("{} cannot follow strategy '{}': {}", name_of(framework), question.strategy.name,
                                fmt::join(found.refusals, "; ")));
  return to_text(framework, found.settings);
}

}  // namespace simsync
