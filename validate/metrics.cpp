#include "validate/metrics.hpp"

#include <algorithm>
#include <cmath>

namespace simsync {
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

void PairRanking::add(const Sample& a, const Sample& b) {
  const double measured = a.measured.value() - b.measured.value();
  const double predicted = a.predicted.value() - b.predicted.value();
  ++all_;
  if (measured == 0.0) ++measured_ties_;
  if (predicted == 0.0) ++predicted_ties_;
  if (measured * predicted > 0.0) concordant_ += 1.0;
  if (measured * predicted < 0.0) discordant_ += 1.0;
  const double smaller = std::min(a.measured.value(), b.measured.value());
  if (std::abs(measured) <= smaller * tie_pct_ / 100.0) return;
  ++ranked_;
  right_ += predicted == 0.0 ? 0.5 : (measured * predicted > 0.0 ? 1.0 : 0.0);
}

Ranking PairRanking::result() const {
  Ranking out;
  out.pairs = ranked_;
  out.within_error = all_ - ranked_;
  if (ranked_ > 0) out.accuracy = right_ / static_cast<double>(ranked_);
  const double untied = static_cast<double>(all_ - measured_ties_) * static_cast<double>(all_ - predicted_ties_);
  if (untied > 0.0) out.kendall_tau = (concordant_ - discordant_) / std::sqrt(untied);
  return out;
}

Ranking ranking(const std::vector<Sample>& samples, double tie_pct) {
  PairRanking pairs(tie_pct);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (std::size_t j = i + 1; j < samples.size(); ++j) {
      if (samples[i].group == samples[j].group) pairs.add(samples[i], samples[j]);
    }
  }
  return pairs.result();
}

}  // namespace simsync
