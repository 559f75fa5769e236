#include "sim/timeline/worker_pace.hpp"

#include <algorithm>
#include <cmath>

namespace simsync {

namespace {

/// From so many batches, each of whole multiples of `per_step` ends.
double error_of_batches(const std::vector<Seconds>& ends, std::size_t per_step, std::size_t batches) {
  const std::size_t length = (ends.size() - 1) / per_step / batches * per_step;
  const std::size_t first = ends.size() - 1 - batches * length;
  const auto count = static_cast<double>(batches);
  const double mean = (ends.back() - ends[first]).value() / count;
  double squares = 0.0;
  for (std::size_t i = 0; i < batches; ++i) {
    const std::size_t begin = first + i * length;
    const double apart = (ends[begin + length] - ends[begin]).value() - mean;
    squares += apart * apart;
  }
  return std::sqrt(squares / (count - 1.0) / count) / mean;
}

}  // namespace

double relative_error(const std::vector<Seconds>& ends, std::size_t per_step) {
  constexpr std::size_t kShort = 10;
  constexpr std::size_t kLong = 5;
  const std::size_t most = ends.empty() ? 0 : (ends.size() - 1) / per_step;
  if (most < 2) return 1.0;
  return std::max(error_of_batches(ends, per_step, std::min(kShort, most)),
                  error_of_batches(ends, per_step, std::min(kLong, most)));
}

void WorkerPace::note(std::size_t worker, Seconds now) {
  by_worker_[worker].push_back(ends_.size());
  ends_.emplace_back(worker, now);
}

std::vector<Seconds> WorkerPace::step_of_each() const {
  std::vector<Seconds> out;
  for (const auto& ends : by_worker_) {
    const auto first = std::lower_bound(ends.begin(), ends.end(), warm_up());
    const auto steps = std::distance(first, ends.end()) - 1;
    if (steps < 1) {
      out.push_back(ends_.back().second - ends_[warm_up()].second);
      continue;
    }
    out.push_back(1.0 / static_cast<double>(steps) * (ends_[ends.back()].second - ends_[*first].second));
  }
  return out;
}

Seconds WorkerPace::step() const {
  double rate = 0.0;
  for (const Seconds step : step_of_each()) rate += 1.0 / step.value();
  return Seconds{static_cast<double>(by_worker_.size()) / rate};
}

double WorkerPace::step_error() const {
  std::vector<Seconds> ends;
  for (std::size_t i = warm_up(); i < ends_.size(); ++i) ends.push_back(ends_[i].second);
  return relative_error(ends, by_worker_.size());
}

std::vector<Seconds> WorkerPace::batches() const {
  std::vector<Seconds> out;
  const std::size_t batch = by_worker_.size();
  for (std::size_t i = warm_up() + batch; i < ends_.size(); i += batch)
    out.push_back(ends_[i].second - ends_[i - batch].second);
  return out;
}

std::vector<double> WorkerPace::staleness() const {
  std::vector<double> out;
  double steps = 0.0;
  for (const auto& ends : by_worker_) {
    for (std::size_t i = 1; i < ends.size(); ++i) {
      if (ends[i - 1] < warm_up()) continue;
      const std::size_t others = ends[i] - ends[i - 1] - 1;
      if (out.size() <= others) out.resize(others + 1, 0.0);
      out[others] += 1.0;
      steps += 1.0;
    }
  }
  for (double& share : out) share /= steps;
  return out;
}

}  // namespace simsync
