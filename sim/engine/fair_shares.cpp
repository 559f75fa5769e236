#include "sim/engine/fair_shares.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.hpp"

namespace simsync::detail {
namespace {

/// What differs by less is equal: sums of the same rates in another order.
constexpr double kRounding = 1e-11;

bool is_less(double a, double b) {
  return a < b * (1.0 - kRounding);
}

}  // namespace

void FairShares::clear() {
  links_.clear();
  paths_.clear();
  crossings_.clear();
  changed_.clear();
}

int FairShares::add_link(double bandwidth) {
  SIMSYNC_ASSERT(bandwidth > 0.0);
  links_.push_back({.bandwidth = bandwidth});
  return static_cast<int>(links_.size()) - 1;
}

void FairShares::set_bandwidth(int link, double bandwidth) {
  SIMSYNC_ASSERT(bandwidth > 0.0);
  link_at(link).bandwidth = bandwidth;
  note_change(link);
}

int FairShares::add_path(const std::vector<int>& links, double cap) {
  SIMSYNC_ASSERT(!links.empty());
  Path path{.cap = cap};
  path.first_crossing = static_cast<std::uint32_t>(crossings_.size());
  for (const int id : links) {
    const auto own = crossings_.begin() + static_cast<std::ptrdiff_t>(path.first_crossing);
    const auto known =
        std::find_if(own, crossings_.end(), [&](const Crossing& crossing) { return crossing.link == id; });
    if (known != crossings_.end()) {
      known->weight += 1.0;
    } else {
      crossings_.push_back({.link = id});
    }
  }
  path.crossing_count = static_cast<std::uint32_t>(crossings_.size()) - path.first_crossing;
  paths_.push_back(path);
  return static_cast<int>(paths_.size()) - 1;
}

void FairShares::note_change(int id) {
  Link& link = link_at(id);
  if (link.has_changed) return;
  link.has_changed = true;
  changed_.push_back(id);
}

void FairShares::add_flows(int id, int change) {
  Path& path = path_at(id);
  if (path.flows == 0) list(id);
  path.flows += change;
  SIMSYNC_ASSERT(path.flows >= 0);
  for (const Crossing& crossing : crossings_of(path)) {
    Link& link = link_at(crossing.link);
    link.load += change * crossing.weight * path.rate;
    ++link.roundings;
    note_change(crossing.link);
  }
  if (path.flows == 0) unlist(id);
}

void FairShares::list(int id) {
  Path& path = path_at(id);
  path.rate = 0.0;
  path.held_up_by = kNobody;
  for (Crossing& crossing : crossings_of(path)) {
    crossing.slot = static_cast<std::uint32_t>(link_at(crossing.link).paths.size());
    link_at(crossing.link).paths.push_back(id);
  }
}

void FairShares::unlist(int id) {
  Path& path = path_at(id);
  if (path.held_up_by >= 0) --link_at(path.held_up_by).holds_up;
  for (const Crossing& crossing : crossings_of(path)) {
    auto& listed = link_at(crossing.link).paths;
    const int last = listed.back();
    listed[crossing.slot] = last;
    listed.pop_back();
    if (last == id) continue;
    for (Crossing& of_last : crossings_of(path_at(last)))
      if (of_last.link == crossing.link) of_last.slot = crossing.slot;
  }
}

/// Sums and differences of rates leave a remainder.
void FairShares::sum_again(Link& link) {
  link.load = 0.0;
  link.roundings = 0;
  const auto id = static_cast<int>(&link - links_.data());
  for (const int number : link.paths) {
    const Path& path = path_at(number);
    for (const Crossing& crossing : crossings_of(path))
      if (crossing.link == id) link.load += path.flows * crossing.weight * path.rate;
  }
}

const std::vector<int>& FairShares::share() {
  with_new_rate_.clear();
  if (changed_.empty()) return with_new_rate_;
  met_.clear();
  taken_in_.clear();
  for (const int id : changed_) meet(id);
  for (const int id : changed_)
    for (const int number : link_at(id).paths) {
      const Path& path = path_at(number);
      if (path.held_up_by == id || path.held_up_by == kNobody) take_in(number);
    }
  do fill();
  while (take_in_more());
  commit();
  for (const int id : changed_) link_at(id).has_changed = false;
  changed_.clear();
  return with_new_rate_;
}

void FairShares::meet(int id) {
  Link& link = link_at(id);
  if (link.is_met) return;
  link.is_met = true;
  link.given_up = 0.0;
  link.held_up_taken = 0;
  if (link.roundings > 64 + static_cast<int>(link.paths.size())) sum_again(link);
  met_.push_back(id);
}

void FairShares::take_in(int id) {
  Path& path = path_at(id);
  if (path.taken_in) return;
  path.taken_in = true;
  taken_in_.push_back(id);
  for (const Crossing& crossing : crossings_of(path)) {
    meet(crossing.link);
    link_at(crossing.link).given_up += path.flows * crossing.weight * path.rate;
  }
  if (path.held_up_by >= 0) ++link_at(path.held_up_by).held_up_taken;
}

void FairShares::prepare_fill() {
  for (const int id : met_) {
    Link& link = link_at(id);
    // Where all are taken in nothing is left of earlier roundings.
    const bool all = link.holds_up == link.held_up_taken && link.load <= link.given_up;
    link.left = std::max(0.0, all ? link.bandwidth : link.bandwidth - (link.load - link.given_up));
    link.takers = link.fastest = 0.0;
    link.next_level = kNone;
  }
  capped_.clear();
  for (const int number : taken_in_) {
    Path& path = path_at(number);
    path.is_shared = false;
    if (path.cap < kUnlimited) capped_.push_back(number);
    for (const Crossing& crossing : crossings_of(path)) link_at(crossing.link).takers += path.flows * crossing.weight;
  }
  const auto is_lower = [&](int one, int other) { return path_at(one).cap < path_at(other).cap; };
  if (!std::is_sorted(capped_.begin(), capped_.end(), is_lower))
    std::stable_sort(capped_.begin(), capped_.end(), is_lower);
  shares_.clear();
  for (const int id : met_)
    if (link_at(id).takers > 0.0) shares_.push_back({link_at(id).left / link_at(id).takers, id});
  next_share_ = 0;
  raised_.clear();
  const auto is_less_share = [](const Share& one, const Share& other) { return one.rate < other.rate; };
  if (!std::is_sorted(shares_.begin(), shares_.end(), is_less_share))
    std::stable_sort(shares_.begin(), shares_.end(), is_less_share);
}

/// The least share that a link has for the flows whose next rate is not known; nothing: all are. Entries may be out of
/// date, then too low. A heap of all would be slow where many are equal.
std::optional<FairShares::Share> FairShares::least_share() {
  for (;;) {
    const bool in_order = next_share_ < shares_.size();
    if (!in_order && raised_.empty()) return std::nullopt;
    const bool from_order = in_order && (raised_.empty() || shares_[next_share_].rate <= raised_.front().rate);
    const Share least = from_order ? shares_[next_share_] : raised_.front();
    const Link& link = link_at(least.link);
    const double present = link.takers > 0.0 ? link.left / link.takers : kUnlimited;
    if (present <= least.rate) return least;
    if (from_order) {
      ++next_share_;
    } else {
      std::pop_heap(raised_.begin(), raised_.end(), std::greater<>());
      raised_.pop_back();
    }
    if (link.takers <= 0.0) continue;
    raised_.push_back({present, least.link});
    std::push_heap(raised_.begin(), raised_.end(), std::greater<>());
  }
}

/// Progressive filling of the paths that are taken in: the least share of all links is the rate of the flows across
/// that link, or the least cap below it that of its path; what they take is gone from the other links, whose shares can
/// only grow by that.
void FairShares::fill() {
  prepare_fill();
  auto capped = capped_.begin();
  while (const auto least = least_share()) {
    while (capped != capped_.end() && path_at(*capped).is_shared) ++capped;
    if (capped != capped_.end() && path_at(*capped).cap <= least->rate) {
      give(*capped, path_at(*capped).cap, kCap);
      continue;
    }
    Link& link = link_at(least->link);
    link.next_level = least->rate;
    for (const int number : link.paths)
      if (path_at(number).taken_in && !path_at(number).is_shared) give(number, least->rate, least->link);
    link.takers = 0.0;
  }
}

void FairShares::give(int number, double rate, int held_up_by) {
  Path& path = path_at(number);
  path.is_shared = true;
  path.next_rate = rate;
  path.next_held_up_by = held_up_by;
  for (const Crossing& crossing : crossings_of(path)) {
    Link& link = link_at(crossing.link);
    const double flows = path.flows * crossing.weight;
    link.takers = std::max(0.0, link.takers - flows);
    link.left = std::max(0.0, link.left - rate * flows);
    link.fastest = std::max(link.fastest, rate);
  }
}

/// Those that the next rates of the others leave too fast, or held up by nothing. False: there are none.
bool FairShares::take_in_more() {
  bool more = false;
  const std::size_t met = met_.size();
  for (std::size_t i = 0; i < met; ++i) more |= take_in_across(met_[i]);
  return more;
}

bool FairShares::take_in_across(int id) {
  Link& link = link_at(id);
  const bool holds_others = link.holds_up > link.held_up_taken;
  const double level = link.holds_up > 0 ? link.level : kUnlimited;  // nobody across the link was faster
  const bool is_full = link.left <= kRounding * link.bandwidth;
  const bool is_overfull = link.load - link.given_up > link.bandwidth * (1.0 + kRounding);
  const double limit = std::max(0.0, link.next_level);
  bool frees = false;     // those that it holds up may become faster
  bool squeezes = false;  // some are too fast
  if (link.next_level >= 0.0) {
    frees = holds_others && is_less(level, limit);
    squeezes = is_less(limit, level);
  } else {
    frees = holds_others && (!is_full || is_less(level, link.fastest));
    squeezes = is_overfull;
  }
  if (!frees && !squeezes) return false;
  const std::size_t before = taken_in_.size();
  for (const int number : link.paths) {
    const Path& path = path_at(number);
    if (path.taken_in) continue;
    if ((frees && path.held_up_by == id) || (squeezes && is_less(limit, path.rate))) take_in(number);
  }
  return taken_in_.size() > before;
}

void FairShares::commit() {
  for (const int number : taken_in_) {
    Path& path = path_at(number);
    path.taken_in = false;
    if (path.held_up_by >= 0) --link_at(path.held_up_by).holds_up;
    path.held_up_by = path.next_held_up_by;
    if (path.held_up_by >= 0) ++link_at(path.held_up_by).holds_up;
    if (path.next_rate == path.rate) continue;
    for (const Crossing& crossing : crossings_of(path)) {
      Link& link = link_at(crossing.link);
      link.load += path.flows * crossing.weight * (path.next_rate - path.rate);
      ++link.roundings;
    }
    path.rate = path.next_rate;
    with_new_rate_.push_back(number);
  }
  for (const int id : met_) {
    Link& link = link_at(id);
    link.is_met = false;
    if (link.next_level >= 0.0) link.level = link.next_level;
  }
}

}  // namespace simsync::detail
