#include "sim/plan/groupings.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace simsync {

Grouping::Grouping(std::string name, std::vector<int> group_of)
    : name_(std::move(name)), group_of_(std::move(group_of)) {
  int most = -1;
  for (const int group : group_of_) most = std::max(most, group);
  begin_.assign(static_cast<std::size_t>(most) + 2, 0);
  for (const int group : group_of_)
    if (group >= 0) ++begin_[static_cast<std::size_t>(group) + 1];
  for (std::size_t i = 1; i < begin_.size(); ++i) {
    SIMSYNC_ASSERT(begin_[i] > 0);
    begin_[i] += begin_[i - 1];
  }
  ranks_.resize(static_cast<std::size_t>(begin_.back()));
  std::vector<int> next = begin_;
  for (std::size_t rank = 0; rank < group_of_.size(); ++rank) {
    if (group_of_[rank] < 0) continue;
    int& place = next[static_cast<std::size_t>(group_of_[rank])];
    ranks_[static_cast<std::size_t>(place++)] = static_cast<int>(rank);
  }
}

std::vector<Grouping> among(const std::vector<Grouping>& groupings, const std::vector<int>& kept) {
  std::vector<Grouping> out;
  for (const Grouping& grouping : groupings) {
    std::vector<int> number(static_cast<std::size_t>(grouping.count()), -1);
    for (const int rank : kept)
      if (const int group = grouping.group_of(rank); group >= 0) number[static_cast<std::size_t>(group)] = 0;
    int groups = 0;
    for (int& group : number)
      if (group == 0) group = groups++;
    std::vector<int> group_of;
    for (const int rank : kept) {
      const int group = grouping.group_of(rank);
      group_of.push_back(group < 0 ? -1 : number[static_cast<std::size_t>(group)]);
    }
    out.emplace_back(grouping.name(), std::move(group_of));
  }
  return out;
}

SharedRanks::SharedRanks(const std::vector<Grouping>& groupings)
    : groupings_(groupings), tables_(groupings.size() * groupings.size()) {}

std::span<const int> SharedRanks::with(GroupingId from, int group, GroupingId to) const {
  const auto first = static_cast<std::size_t>(from);
  const auto second = static_cast<std::size_t>(to);
  Table& table = tables_[first * groupings_.size() + second];
  if (table.begin.empty()) table = table_of(groupings_[first], groupings_[second]);
  const auto i = static_cast<std::size_t>(group);
  return std::span(table.groups)
      .subspan(static_cast<std::size_t>(table.begin[i]), static_cast<std::size_t>(table.begin[i + 1] - table.begin[i]));
}

SharedRanks::Table SharedRanks::table_of(const Grouping& from, const Grouping& to) const {
  Table out{.begin = {0}, .groups = {}};
  std::vector<int> found;
  for (int group = 0; group < from.count(); ++group) {
    found.clear();
    for (const int rank : from.ranks(group))
      if (to.group_of(rank) >= 0) found.push_back(to.group_of(rank));
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    out.groups.insert(out.groups.end(), found.begin(), found.end());
    out.begin.push_back(static_cast<int>(out.groups.size()));
  }
  return out;
}

}  // namespace simsync
