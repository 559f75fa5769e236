#include "validate/metrics.hpp"

#include <algorithm>
#include <cmath>

namespace simsync {
namespace {

/// Counts over pairs, from which both figures follow.
struct PairCounts {
  std::size_t all = 0;
  std::size_t measured_ties = 0;
  std::size_t predicted_ties = 0;
  double concordant = 0.0;
  double discordant = 0.0;
  std::size_t ranked = 0;
  double right = 0.0;

  void add(const Sample& a, const Sample& b, double tie_pct) {
    const double measured = a.measured.value() - b.measured.value();
    const double predicted = a.predicted.value() - b.predicted.value();
    ++all;
    if (measured == 0.0) ++measured_ties;
    if (predicted == 0.0) ++predicted_ties;
    if (measured * predicted > 0.0) concordant += 1.0;
    if (measured * predicted < 0.0) discordant += 1.0;
    const double smaller = std::min(a.measured.value(), b.measured.value());
    if (std::abs(measured) <= smaller * tie_pct / 100.0) return;
    ++ranked;
    right += predicted == 0.0 ? 0.5 : (measured * predicted > 0.0 ? 1.0 : 0.0);
  }
};

/// Whether the order of two samples is looked at.
bool ranked(const Sample& a, const Sample& b) {
  return a.group == b.group && (a.alike.empty() || a.alike != b.alike);
}

}  // namespace

double error_pct(const Sample& sample) {
  return 100.0 * (sample.predicted / sample.measured - 1.0);
}

double mean_absolute_error_pct(const std::vector<Sample>& samples) {
  if (samples.empty()) return 0.0;
  double sum = 0.0;
  for (const auto& sample : samples) sum += std::abs(error_pct(sample));
  return sum / static_cast<double>(samples.size());
}

double p90_error_pct(const std::vector<Sample>& samples) {
  if (samples.empty()) return 0.0;
  std::vector<double> errors;
  for (const auto& sample : samples) errors.push_back(std::abs(error_pct(sample)));
  std::sort(errors.begin(), errors.end());
  const std::size_t rank = (errors.size() * 9 + 9) / 10;  // ceil(0.9 n), exact in integers
  return errors[rank - 1];
}

Ranking ranking(const std::vector<Sample>& samples, double tie_pct) {
  PairCounts counts;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (std::size_t j = i + 1; j < samples.size(); ++j) {
      if (ranked(samples[i], samples[j])) counts.add(samples[i], samples[j], tie_pct);
    }
  }
  Ranking out;
  out.pairs = counts.ranked;
  if (counts.ranked > 0) out.accuracy = counts.right / static_cast<double>(counts.ranked);
  const double untied =
      static_cast<double>(counts.all - counts.measured_ties) * static_cast<double>(counts.all - counts.predicted_ties);
  if (untied > 0.0) out.kendall_tau = (counts.concordant - counts.discordant) / std::sqrt(untied);
  return out;
}

}  // namespace simsync
