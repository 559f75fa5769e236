#include "cli/ranker_flags.hpp"

#include <fmt/format.h>

#include <iostream>

#include "base/file.hpp"
#include "cli/outputs.hpp"
#include "cli/settings.hpp"
#include "strategies/search/learned_ranker.hpp"

namespace simsync {

void add_ranker_flags(CLI::App& command, RankerFlags& flags) {
  command
      .add_option(
          "--ranker", flags.kind,
          "What learns from trials: linear, on all features; boosted: trees; recurrent: linear, and a network over "
          "the model's parts; autosync-linear, on AutoSync's twelve features. Scores of the first three are "
          "averaged with the simulator's order (default: linear, or that of --ranker-from)")
      ->check(CLI::IsMember(names_in(ranker_words())));
  command.add_option("--ranker-from", flags.from, "Begin with what this ranker has learned: a file of --ranker-out")
      ->check(file_name());
  command.add_option("--ranker-out", flags.out, "Write what the ranker has learned to this file")
      ->check(output_file("--ranker-out"));
}

StartingRanker starting_ranker(const RankerFlags& flags) {
  StartingRanker out;
  if (!flags.from.empty()) {
    out.saved = read_ranker(read_file(flags.from), flags.from);
    out.kind = out.saved->kind;
    if (!flags.kind.empty() && flags.kind != name_of(out.kind))
      throw InputError(
          Diagnostic{.origin = {flags.from},
                     .message = fmt::format("a ranker '{}': --ranker asks for '{}'", name_of(out.kind), flags.kind),
                     .key = "kind",
                     .source_line = {},
                     .note = {},
                     .help = "leave --ranker out to go on with this one"});
  }
  if (const auto kind = find_word(ranker_words(), flags.kind)) out.kind = *kind;
  (void)make_ranker(out.kind);  // says now what this build lacks
  return out;
}

void write_ranker(const RankerFlags& flags, const StartingRanker& start, const SearchResult& result,
                  const TrialSetting& setting) {
  if (flags.out.empty()) return;
  const auto examples = examples_of(start.kind, result.trials, setting.target, setting.samples);
  if (examples.size() < 2) {
    std::cerr << "note: --ranker-out: fewer than two strategies ran, so nothing was learned, and no file is written\n";
    return;
  }
  SavedRanker out;
  out.kind = start.kind;
  if (start.saved) {
    out.models = start.saved->models;
    out.clusters = start.saved->clusters;
    out.trials = start.saved->trials;
  }
  auto ranker = learned_ranker(start.kind, examples, start.source());
  out.learned = source_of(start.kind, std::move(ranker), examples);
  out.models.insert(setting.target.model.name());
  out.clusters.insert(setting.target.cluster.name);
  out.trials += static_cast<std::int64_t>(examples.size());
  write_file(flags.out, to_json(out));
}

}  // namespace simsync
