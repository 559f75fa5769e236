// Data sets of strategies and their steps, for those who learn from them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/search_question.hpp"
#include "sim/problem/inputs.hpp"
#include "strategies/dataset/question.hpp"

namespace simsync {

/// One model, cluster and number of workers of a data set.
struct Combination {
  std::string model, cluster;              ///< as they call themselves
  std::string model_given, cluster_given;  ///< names or paths of the question
  int workers = 1;
};

struct DatasetOptions {
  DatasetQuestion question;
  std::string out;  ///< folder
  int jobs = 1;
  bool resume = false;
};

/// Those that can run, by name. What cannot is told on standard error.
/// @throws InputError; PlanError when there is none.
std::vector<Combination> combinations_of(const DatasetQuestion& question, Inputs& inputs);

/// What it asks of one of them.
Question question_at(const DatasetQuestion& question, const Combination& at);

/// Makes the pairs and says on standard output what was made. @throws InputError, and WorkerError from its processes.
void make_dataset(const DatasetOptions& options);

/// Writes what AutoDist's format can express of the data set in `folder` to the folder `out`, in the same layout, and
/// says on standard output what it left out. @throws InputError; CapabilityError in a build without protobuf.
void export_dataset(const std::string& folder, const std::string& out);

}  // namespace simsync
