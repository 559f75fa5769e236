#include "strategies/search/deal.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace simsync {
namespace {

std::vector<std::size_t> largest_first(const std::vector<double>& bytes) {
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  return order;
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

/// The largest first, each by a softmax over what is missing of a share of all bytes. AutoSync takes bytes as they are,
/// so that megabytes always go to the largest deficit; here the scale is the mean shard.
std::vector<std::size_t> by_deficit(const std::vector<double>& bytes, const std::vector<double>& weights,
                                    Decisions& decisions) {
  const double total = sum_of(bytes);
  const double temperature = std::max(1.0, total / static_cast<double>(bytes.size()));
  const double all = sum_of(weights);
  std::vector<double> deficits;
  for (const double weight : weights) deficits.push_back(total * weight / all);
  std::vector<std::size_t> out(bytes.size());
  for (const std::size_t i : largest_first(bytes)) {
    out[i] = decisions.softmax(deficits, temperature);
    deficits[out[i]] -= bytes[i];
  }
  return out;
}

}  // namespace

std::vector<std::size_t> deal_to_servers(ServerRule rule, const std::vector<double>& bytes,
                                         const std::vector<double>& weights, Decisions& decisions) {
  SIMSYNC_ASSERT(!weights.empty());
  if (bytes.empty()) return {};
  std::vector<std::size_t> out(bytes.size());
  switch (rule) {
    case ServerRule::Random:
      for (std::size_t& server : out) server = decisions.below(weights.size());
      return out;
    case ServerRule::LeastLoaded: {
      std::vector<double> loads(weights.size(), 0.0);
      for (const std::size_t i : largest_first(bytes)) {
        const auto least = std::min_element(loads.begin(), loads.end());
        *least += bytes[i];
        out[i] = static_cast<std::size_t>(least - loads.begin());
      }
      return out;
    }
    case ServerRule::Proportional:
      return by_deficit(bytes, weights, decisions);
  }
  return out;
}

std::vector<int> deal_to_groups(GroupRule rule, const std::vector<double>& bytes, std::size_t groups,
                                Decisions& decisions) {
  SIMSYNC_ASSERT(groups >= 1);
  std::vector<int> out(bytes.size());
  switch (rule) {
    case GroupRule::Random: {
      std::size_t used = 0;
      for (int& group : out) {
        const std::size_t label = decisions.label(used, groups);
        used = std::max(used, label + 1);
        group = static_cast<int>(label);
      }
      return out;
    }
    case GroupRule::Chunks:
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int>(i * groups / out.size());
      return out;
    case GroupRule::Balanced: {
      if (bytes.empty()) return out;
      const std::vector<std::size_t> dealt = by_deficit(bytes, std::vector<double>(groups, 1.0), decisions);
      std::transform(dealt.begin(), dealt.end(), out.begin(), [](std::size_t g) { return static_cast<int>(g); });
      return out;
    }
    case GroupRule::Ordered: {
      const double share = sum_of(bytes) / static_cast<double>(groups);
      double filled = 0.0;
      for (std::size_t i = 0; i < out.size(); ++i) {
        const auto full = static_cast<int>(share > 0.0 ? filled / share : 0.0);
        out[i] = std::min(full, static_cast<int>(groups) - 1);
        filled += bytes[i];
      }
      return out;
    }
  }
  return out;
}

}  // namespace simsync
