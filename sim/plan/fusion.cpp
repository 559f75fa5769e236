#include "sim/plan/fusion.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace simsync {
namespace {

class Buckets {
public:
  explicit Buckets(const std::vector<Gradient>& gradients) : gradients_(gradients) {}

  void open() {
    out_.push_back({.members = {}, .bytes = 0.0, .priority = std::numeric_limits<int>::max(), .wait = Seconds{}});
  }
  void put(std::size_t index) { put(index, out_.back()); }
  void put(std::size_t index, Bucket& bucket) const {
    bucket.members.push_back(index);
    bucket.bytes += gradients_[index].bytes;
    bucket.priority = std::min(bucket.priority, gradients_[index].priority);
  }
  std::vector<Bucket>& all() { return out_; }

private:
  const std::vector<Gradient>& gradients_;
  std::vector<Bucket> out_;
};

void fuse_groups(const std::vector<Gradient>& gradients, Buckets& buckets) {
  std::map<int, std::size_t> bucket_of_group;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const auto found = bucket_of_group.find(gradients[i].group);
    if (gradients[i].group >= 0 && found != bucket_of_group.end()) {
      buckets.put(i, buckets.all()[found->second]);
      continue;
    }
    bucket_of_group[gradients[i].group] = buckets.all().size();
    buckets.open();
    buckets.put(i);
  }
  // A group leaves when its last member is ready, so groups are launched in the order of their last members.
  std::stable_sort(buckets.all().begin(), buckets.all().end(),
                   [](const Bucket& a, const Bucket& b) { return a.members.back() < b.members.back(); });
}

void fuse_limits(const Fusion& rule, const std::vector<Gradient>& gradients, Buckets& buckets) {
  bool open = false;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!open) buckets.open();
    buckets.put(i);
    const Bytes limit = buckets.all().size() == 1 ? rule.first_limit : rule.limit;
    open = buckets.all().back().bytes < static_cast<double>(limit.count);
  }
}

void fuse_cycles(const Fusion& rule, const std::vector<Gradient>& gradients, Buckets& buckets) {
  const double cycle = std::max(rule.cycle.value(), 1e-9);
  const auto threshold = static_cast<double>(rule.threshold.count);
  double tick_of_bucket = -1.0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const double ready = gradients[i].ready.value();
    const double tick = std::ceil(ready / cycle) * cycle;
    const bool fits = !buckets.all().empty() && buckets.all().back().bytes + gradients[i].bytes <= threshold;
    if (tick != tick_of_bucket || !fits) buckets.open();
    buckets.put(i);
    buckets.all().back().wait = Seconds{tick - ready};
    tick_of_bucket = tick;
  }
}

void fuse_merged(const std::vector<Gradient>& gradients, const std::function<Seconds(double)>& cost, Buckets& buckets) {
  const double start_up = cost(0.0).value();
  double end = 0.0;  // of the message before
  bool open = false;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!open) buckets.open();
    buckets.put(i);
    const double start = std::max(end, gradients[i].ready.value());
    open = i + 1 < gradients.size() && gradients[i + 1].ready.value() - start < start_up;
    if (!open) end = start + cost(buckets.all().back().bytes).value();
  }
}

}  // namespace

std::vector<Bucket> fuse(const Fusion& rule, const std::vector<Gradient>& gradients,
                         const std::function<Seconds(double)>& cost) {
  Buckets buckets(gradients);
  switch (rule.kind) {
    case FusionKind::Groups:
      fuse_groups(gradients, buckets);
      break;
    case FusionKind::Buckets:
      fuse_limits(rule, gradients, buckets);
      break;
    case FusionKind::Cycle:
      fuse_cycles(rule, gradients, buckets);
      break;
    case FusionKind::MergedGradient:
      fuse_merged(gradients, cost, buckets);
      break;
    case FusionKind::None:
    case FusionKind::Single:
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        if (i == 0 || rule.kind == FusionKind::None) buckets.open();
        buckets.put(i);
      }
      break;
  }
  return std::move(buckets.all());
}

}  // namespace simsync
