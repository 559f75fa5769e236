// The flags of `simsync search`.
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/ranker_flags.hpp"
#include "cli/search_layouts.hpp"
#include "cli/testbed_flags.hpp"
#include "cli/worker_pool.hpp"
#include "strategies/search/search.hpp"

namespace simsync {

inline constexpr const char* kReplay = "replay";
inline constexpr const char* kSimulate = "simulate";  ///< replay, by another name
inline constexpr const char* kEstimate = "estimate";
inline constexpr const char* kTestbed = "testbed";  ///< what its cluster is called
inline constexpr const char* kCoordinate = "coordinate";
inline constexpr const char* kVariables = "variables";
inline constexpr const char* kLayouts = "layouts";

struct SearchFlags {
  PredictRequest request;
  int workers = 0;  ///< 0: not given
  std::int64_t batch = 0;
  std::vector<std::string> settings;
  std::string method = "autosync";
  std::string evaluator = kReplay;
  TestbedFlags testbed;
  SearchOptions options;
  int steps = 5;
  int warm_up = 2;
  double budget_s = 0.0;
  double price = 0.0;  ///< of a node for an hour
  double money = 0.0;
  RankerFlags ranker;
  std::string out;
  std::string cluster_out;
  std::string csv;
  int jobs = processors();
  bool resume = false;
  // Of a search of layouts:
  std::string space;              ///< variables or layouts; empty: what the method is for
  std::int64_t global_batch = 0;  ///< 0: batch x workers
  int restarts = LayoutSearchOptions{}.restarts;
  int replays = LayoutSearchFlags{}.replays;

  [[nodiscard]] bool is_of_layouts() const { return space == kLayouts || (space.empty() && method == kCoordinate); }
  [[nodiscard]] bool is_measured() const { return evaluator == kMeasure; }
};

/// Adds them to the command, with their checks.
void add_search_flags(CLI::App& command, SearchFlags& flags);
/// Those of one of the two spaces must not be given with the other. @throws InputError.
void refuse_flags_of_other_space(const SearchFlags& flags, const CLI::App& command);
/// Of a search of layouts. @throws InputError where samples or method do not fit.
LayoutSearchFlags layout_flags(const SearchFlags& flags, const CLI::App& command);

}  // namespace simsync
