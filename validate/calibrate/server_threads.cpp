#include "validate/calibrate/server_threads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "platforms/reader.hpp"

namespace simsync::detail {
namespace {

/// Numbers whose criterion is larger than the least one by more than this are spoken against (strong evidence in Kass
/// and Raftery, Bayes Factors, JASA 90, 1995).
constexpr double kEvidence = 6.0;

std::vector<Probe> with_servers(const std::vector<Probe>& probes) {
  std::vector<Probe> out;
  std::copy_if(probes.begin(), probes.end(), std::back_inserter(out), [](const Probe& p) { return p.to_server(); });
  return out;
}

CalibrateOptions without_prior(CalibrateOptions options) {
  options.prior.reset();
  return options;
}

int whole(double value, const std::string& key) {
  if (value != std::floor(value) || value < 1.0)
    throw InputError(fmt::format("'{}' is a whole number of at least 1, its range has an end at {:g}", key, value));
  return static_cast<int>(value);
}

/// Of the first group that the key means.
int stated_threads(const Cluster& cluster, std::string key) {
  constexpr std::string_view kEvery = "group.*.";
  if (key.starts_with(kEvery)) key = fmt::format("group.{}.{}", cluster.groups.front().name, key.substr(kEvery.size()));
  return std::stoi(parameter_text(cluster, key));
}

class ThreadSearch {
public:
  ThreadSearch(const ModelFit& fit, const ThreadProblem& problem)
      : fit_(fit),
        key_(problem.threads.key),
        low_(whole(problem.threads.low, key_)),
        high_(whole(problem.threads.high, key_)),
        stated_(std::max(1, stated_threads(problem.cluster, key_))),
        served_(with_servers(problem.probes)),
        options_(without_prior(problem.options)),
        cluster_(fit.fitted()),
        before_(fit.values()) {
    for (const Unknown& unknown : fit.unknowns())
      if (unknown.key.find(".cpu.") != std::string::npos) costs_.push_back(unknown);
  }

  /// Whether the rows are enough to see the number, and threads are what they wait for.
  [[nodiscard]] bool depends() const {
    return served_.size() > costs_.size() && !same(times(cluster_, low_), times(cluster_, high_));
  }
  void run();
  [[nodiscard]] int stated() const { return stated_; }
  [[nodiscard]] int best() const { return best_; }
  /// The least and the largest that the rows allow; more than the largest may do the same.
  [[nodiscard]] int least() const { return allowed_.front(); }
  [[nodiscard]] int most() const { return allowed_.back(); }
  [[nodiscard]] bool open() const { return trials_.at(most()).open; }
  [[nodiscard]] bool identified() const { return !open() && most() <= kMostFactor * least(); }
  [[nodiscard]] bool allows(int count) const { return count >= least() && (count <= most() || open()); }
  /// All parameters as they are found with so many threads.
  [[nodiscard]] std::map<std::string, double> values(int count) const;

private:
  struct Trial {
    double criterion = 0.0;
    bool open = false;  ///< more threads would do the same
    std::map<std::string, double> costs;
  };
  [[nodiscard]] Cluster cluster_with(const Cluster& cluster, int count) const {
    Cluster out = cluster;
    set_parameter(out, key_, std::to_string(count));
    return out;
  }
  [[nodiscard]] std::vector<double> times(const Cluster& cluster, int count) const;
  [[nodiscard]] static bool same(const std::vector<double>& a, const std::vector<double>& b);
  const Trial& trial(int count);
  [[nodiscard]] bool may_be(int count) { return trial(count).criterion <= trial(best_).criterion + kEvidence; }
  void look_at(int count);
  void look_between();

  const ModelFit& fit_;
  std::string key_;
  int low_;
  int high_;
  int stated_;
  std::vector<Probe> served_;
  CalibrateOptions options_;
  Cluster cluster_;
  std::map<std::string, double> before_;
  std::vector<Unknown> costs_;
  std::map<int, Trial> trials_;
  int best_ = 1;
  std::vector<int> allowed_;
};

std::vector<double> ThreadSearch::times(const Cluster& cluster, int count) const {
  const Cluster changed = cluster_with(cluster, count);
  std::vector<double> out;
  for (const Probe& probe : served_) out.push_back(predicted_time(probe, changed).value());
  return out;
}

bool ThreadSearch::same(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](double x, double y) { return std::abs(x - y) <= kNoEffect * y; });
}

const ThreadSearch::Trial& ThreadSearch::trial(int count) {
  const auto [known, fresh] = trials_.try_emplace(count);
  if (!fresh) return known->second;
  const Cluster cluster = cluster_with(cluster_, count);
  ModelFit fit(cluster, served_, options_, {.name = fit_.name(), .assumed = {}, .unknowns = costs_, .stated = {}});
  (void)fit.run_from(before_, fit_.cut());
  const Cluster fitted = fit.fitted();
  known->second = {.criterion = fit.criterion(fit_.cut()),
                   .open = same(times(fitted, count), times(fitted, high_)),
                   .costs = fit.values()};
  return known->second;
}

void ThreadSearch::look_at(int count) {
  if (trial(count).criterion < trial(best_).criterion) best_ = count;
}

/// Whole numbers between the best one and its neighbors among those looked at.
void ThreadSearch::look_between() {
  constexpr int kMost = 8;
  for (int looked = 0; looked < kMost; ++looked) {
    const auto best = trials_.find(best_);
    const int below = best == trials_.begin() ? best_ : std::prev(best)->first;
    const int above = std::next(best) == trials_.end() || best->second.open ? best_ : std::next(best)->first;
    if (above - best_ > 1) {
      look_at(best_ + (above - best_) / 2);
    } else if (best_ - below > 1) {
      look_at(best_ - (best_ - below) / 2);
    } else {
      return;
    }
  }
}

void ThreadSearch::run() {
  const int first = std::clamp(stated_, low_, high_);
  best_ = first;
  for (int count = first; may_be(count) && !trial(count).open && count < high_;) {
    count = std::min(high_, 2 * count);
    look_at(count);
  }
  for (int count = first; may_be(count) && count > low_;) {
    count = std::max(low_, count / 2);
    look_at(count);
  }
  look_between();
  for (const auto& [count, one] : trials_)
    if (one.criterion <= trials_.at(best_).criterion + kEvidence) allowed_.push_back(count);
}

std::map<std::string, double> ThreadSearch::values(int count) const {
  auto out = before_;
  for (const auto& [key, value] : trials_.at(count).costs) out[key] = value;
  return out;
}

}  // namespace

std::unique_ptr<ModelFit> with_threads(std::unique_ptr<ModelFit> fit, const ThreadProblem& problem) {
  const std::string& key = problem.threads.key;
  ThreadSearch search(*fit, problem);
  if (!search.depends()) {
    if (problem.threads.demanded) refuse(key, kHardly);
    fit->note(fmt::format("nothing depends on '{}', which was left as it is", key));
    return fit;
  }
  search.run();
  const std::string allowed = search.open() ? fmt::format("{} or more do the same", search.least())
                                            : fmt::format("{} to {} do the same", search.least(), search.most());
  if (!search.identified() && problem.threads.demanded) refuse(key, allowed);
  if (!search.identified() && search.allows(search.stated())) {
    fit->note(fmt::format("'{}' was left as it is, {}: {}", key, search.stated(), allowed));
    return fit;
  }
  const int count = search.identified() ? search.best() : search.least();
  auto out = std::make_unique<ModelFit>(*fit);
  out->choose(key, count);
  if (count != search.stated() && !out->run_from(search.values(count))) return fit;
  if (!search.identified()) out->note(fmt::format("'{}' is {}, and not {}: {}", key, count, search.stated(), allowed));
  return out;
}

}  // namespace simsync::detail
