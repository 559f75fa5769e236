#include "sim/engine/link_rates.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

namespace simsync::detail {
namespace {

constexpr double kNarrowest = 1e-6;       // s: doubled until a step fits
constexpr std::size_t kIntervals = 2048;  // of one step, at most
constexpr std::size_t kOfSeveral = 256;   // of each of several steps

/// -1: it belongs to no node.
int node_of(const std::string& link) {
  constexpr std::size_t kDigits = 4;
  const bool of_node = link.starts_with("node") && link.size() > kDigits && std::isdigit(link[kDigits]) != 0;
  return of_node ? std::atoi(link.c_str() + kDigits) : -1;
}

}  // namespace

LinkRates::LinkRates(int steps, InstanceFilter filter)
    : kept_(static_cast<std::size_t>(std::max(0, steps))),
      intervals_(steps == 1 ? kIntervals : kOfSeveral),
      filter_(std::move(filter)) {
  steps_.push_back({.width = kNarrowest});
}

void LinkRates::widen(Step& step) {
  step.width *= 2.0;
  for (auto& [link, bytes] : step.bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const std::size_t from = 2 * i;
      bytes[i] = (from < bytes.size() ? bytes[from] : 0.0) + (from + 1 < bytes.size() ? bytes[from + 1] : 0.0);
    }
  }
}

void LinkRates::add_to(Step& step, const std::vector<int>& links, const Stretch& what) const {
  while (what.end > step.begin + step.width * static_cast<double>(intervals_)) widen(step);
  const auto first = static_cast<std::size_t>((what.begin - step.begin) / step.width);
  const auto last = std::min(intervals_ - 1, static_cast<std::size_t>((what.end - step.begin) / step.width));
  for (const int link : links) {
    auto& bytes = step.bytes[link];
    bytes.resize(intervals_);
    for (std::size_t i = first; i <= last; ++i) {
      const double from = std::max(what.begin, step.begin + static_cast<double>(i) * step.width);
      const double to = std::min(what.end, step.begin + static_cast<double>(i + 1) * step.width);
      if (to > from) bytes[i] += what.rate * (to - from);
    }
  }
}

void LinkRates::add(const std::vector<int>& links, double bytes, Seconds begin, Seconds end) {
  if (end <= begin) return;
  const double rate = bytes / (end - begin).value();
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (step->end >= 0.0 && step->end <= begin.value()) break;
    const double from = std::max(begin.value(), step->begin);
    const double to = step->end < 0.0 ? end.value() : std::min(end.value(), step->end);
    if (to > from) add_to(*step, links, {from, to, rate});
  }
}

void LinkRates::step_ends(Seconds now) {
  steps_.back().end = now.value();
  steps_.push_back({.begin = now.value(), .width = kNarrowest});
  if (kept_ > 0 && steps_.size() > kept_ + 1) steps_.pop_front();
}

std::vector<LinkRate> LinkRates::take(const std::vector<Link>& links) const {
  std::vector<LinkRate> out;
  for (const Step& step : steps_) {
    if (step.end < 0.0) continue;
    for (const auto& [link, bytes] : step.bytes) {
      const int node = node_of(links[static_cast<std::size_t>(link)].name);
      if (node >= 0 && !filter_.keeps_node(node)) continue;
      const auto used = static_cast<std::size_t>((step.end - step.begin) / step.width) + 1;
      LinkRate rate{.link = link, .begin = Seconds{step.begin}, .end = Seconds{step.end}, .width = Seconds{step.width}};
      rate.bytes.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(std::min(used, bytes.size())));
      out.push_back(std::move(rate));
    }
  }
  return out;
}

}  // namespace simsync::detail
