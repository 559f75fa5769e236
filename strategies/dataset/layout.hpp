// AutoSync's layout of a data set: MODEL/CLUSTER-WORKERS/{resource_spec,runtime,strategy}/ID, and one table of all.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace simsync {

/// Files of a data set in `folder`.
std::string table_file(const std::string& folder);     ///< pairs.csv
std::string question_file(const std::string& folder);  ///< dataset.yaml
/// The subfolder of one model, cluster and number of workers.
std::string combination_folder(const std::string& model, const std::string& cluster, int workers);
/// Makes `path` and what it lies in. @throws InputError with the system's reason.
void make_folders(const std::string& path);

/// The three files of a pair; the texts are what they hold.
struct PairFiles {
  std::string id;
  std::string resource_spec;  ///< AutoDist's YAML
  std::string runtime;        ///< runtime_text
  std::string strategy;       ///< simsync's YAML, or AutoDist's binary message
};
/// Into `folder`, which the kinds of files have subfolders of. @throws InputError.
void write_pair(const std::string& folder, const PairFiles& pair);

/// `runtime`, a list of seconds, and `average`, with all digits.
std::string runtime_text(const std::vector<Seconds>& steps);
/// The average of such a text, in YAML or JSON. `file` stands for it in messages. @throws InputError.
Seconds parse_runtime(const std::string& text, const std::string& file);

/// One pair of an archive on disk. Paths.
struct ArchivedPair {
  std::string id;
  std::string resource_spec;
  std::string runtime;
  std::string strategy;
};
/// All pairs below `folder`, by path: of this layout, and of both published ones (`strategies`, `runtimes`, one
/// resource file for all, an extension behind the id of a runtime).
/// @throws InputError when there is no such folder, no pair, or a strategy without runtime or resource specification.
std::vector<ArchivedPair> find_pairs(const std::string& folder);

}  // namespace simsync
