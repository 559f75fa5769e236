// Flags of a search about its ranker: which kind, what it has learned before, and where it goes.
#pragma once
#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cli/trials.hpp"
#include "strategies/search/saved_ranker.hpp"
#include "strategies/search/search.hpp"

namespace simsync {

struct RankerFlags {
  std::string kind;  ///< empty: that of `from`, else linear
  std::string from;
  std::string out;
};

void add_ranker_flags(CLI::App& command, RankerFlags& flags);

struct StartingRanker {
  RankerKind kind = RankerKind::Linear;
  std::optional<SavedRanker> saved;
  [[nodiscard]] std::optional<TransferSource> source() const {
    return saved ? std::optional(saved->learned) : std::nullopt;
  }
};

/// @throws InputError for a file that is none, or of another kind than the one that is asked for; CapabilityError for a
/// kind that this build lacks.
StartingRanker starting_ranker(const RankerFlags& flags);
/// What is known after the search, if it is to be kept.
void write_ranker(const RankerFlags& flags, const StartingRanker& start, const SearchResult& result,
                  const TrialSetting& setting);

}  // namespace simsync
