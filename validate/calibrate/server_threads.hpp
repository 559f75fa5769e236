// How many threads the servers of probes have. Private to this folder.
#pragma once
#include <memory>
#include <vector>

#include "validate/calibrate/model_fit.hpp"

namespace simsync::detail {

/// What a search for a number of threads looks at.
struct ThreadProblem {
  const Cluster& cluster;  ///< grown for the probes
  const std::vector<Probe>& probes;
  const CalibrateOptions& options;
  /// `group.<name>.cpu.threads`, or `group.*.cpu.threads`, with the least and the largest whole number.
  const Unknown& threads;
};

/// Goes on from `fit`, which holds for the number of threads that the cluster states. No derivative finds a whole
/// number: for one after the other, by factors of two and then between them, the other costs of servers are fitted to
/// the rows with servers, and the criterion says which numbers these rows allow. The number is
///   found, when those are within a factor of two of each other: the best one;
///   refused, when they are not and it was demanded;
///   left as stated, with a note, when that is one of them, or when no probe keeps the threads busy;
///   the least of them, with a note, when the rows speak against the stated one.
/// With another number than the stated one everything is fitted again. Cost: some refits of two or three parameters,
/// none when the threads are not busy.
/// @throws InputError for a refusal, a range that is not of whole numbers, a group that the cluster does not have.
std::unique_ptr<ModelFit> with_threads(std::unique_ptr<ModelFit> fit, const ThreadProblem& problem);

}  // namespace simsync::detail
