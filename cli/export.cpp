#include "cli/export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "base/error.hpp"
#include "strategies/export/framework.hpp"
#include "strategies/export/signature_table.hpp"

namespace simsync {
namespace {

constexpr const char* kSignatures = "signatures";

std::vector<std::string> formats() {
  std::vector<std::string> out = names_in(framework_words());
  out.emplace_back(kSignatures);
  return out;
}

}  // namespace

void add_export_flag(CLI::App& command, std::string& format) {
  command
      .add_option("--export", format,
                  "Predict nothing, print what this framework is told to follow the strategy: megatron, nemo, "
                  "torchtitan or deepspeed; signatures: how its tensors lie on the ranks, as a table")
      ->check(CLI::IsMember(formats()))
      ->type_name("framework");
}

void print_export(const std::string& format, const Problem& problem) {
  if (format == kSignatures) {
    std::cout << signature_table(problem.strategy, problem.model);
    return;
  }
  const auto framework = find_word(framework_words(), format);
  SIMSYNC_ASSERT(framework.has_value());
  const ExportQuestion question{.strategy = problem.strategy,
                                .model = problem.model,
                                .batch = problem.samples(),
                                .precision = problem.profile.precision,
                                .optimizer = problem.optimizer};
  try {
    std::cout << exported_text(*framework, question) << std::flush;
  } catch (const PlanError& error) {
    throw InputError(error.what(), fmt::format("'--export {}' has the plan as a table", kSignatures));
  }
  for (const std::string& note : framework_settings(*framework, question).notes)
    std::cerr << fmt::format("note: {}: {}\n", name_of(*framework), note);
}

}  // namespace simsync
