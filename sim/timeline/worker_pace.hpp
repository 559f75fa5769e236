// Asynchronous workers: how fast they are together, and how old what they read is.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "base/units.hpp"

namespace simsync {

/// Relative standard error of the mean time between `ends` of steps, which are in order of time, by batch means:
/// neighboring steps depend on each other, so the ends are cut into batches, whose means hardly do. It is the larger of
/// the errors by ten and by five batches (fewer where there are few ends), and too small where steps depend on each
/// other for longer than a batch. Batches are whole multiples of `per_step` ends, so that ends that come in bunches
/// count right. 1 where there are fewer than two batches.
double relative_error(const std::vector<Seconds>& ends, std::size_t per_step);

class WorkerPace {
public:
  explicit WorkerPace(std::size_t workers) : by_worker_(workers) {}

  /// A worker has ended a step. In order of time.
  void note(std::size_t worker, Seconds now);
  /// How many steps have ended.
  [[nodiscard]] std::size_t ends() const { return ends_.size(); }

  /// Mean step of each worker, after the first fifth of all steps: between its first end and its last one, so that ends
  /// that come in bunches count right. One with fewer than two ends there: all of that time.
  [[nodiscard]] std::vector<Seconds> step_of_each() const;
  /// Time in which all workers together end as many steps as there are workers.
  [[nodiscard]] Seconds step() const;
  /// Its relative_error.
  [[nodiscard]] double step_error() const;
  /// Of the same steps of all workers: how long they take together for as many as there are workers, one such batch
  /// after the other.
  [[nodiscard]] std::vector<Seconds> batches() const;
  /// Share of steps, by how many steps of other workers ended between their begin and their end.
  [[nodiscard]] std::vector<double> staleness() const;

private:
  [[nodiscard]] std::size_t warm_up() const { return ends_.size() / 5; }

  std::vector<std::pair<std::size_t, Seconds>> ends_;  ///< worker and time
  std::vector<std::vector<std::size_t>> by_worker_;    ///< index into ends_
};

}  // namespace simsync
