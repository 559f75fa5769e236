// Divisions of a job's ranks into groups, and which groups share a rank.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace simsync {

using GroupingId = std::int32_t;

/// Groupings that every plan has, in this order; further ones follow.
inline constexpr GroupingId kEachRank = 0;  ///< a group per rank
inline constexpr GroupingId kEachNode = 1;  ///< a group per node: the ranks on it
inline constexpr GroupingId kWholeJob = 2;  ///< one group: all ranks

/// A division of ranks into groups. A rank takes part in one of them at most.
class Grouping {
public:
  Grouping() = default;
  /// `group_of`: by rank the number of its group, -1 where it takes no part. Every number up to the largest occurs.
  /// @throws std::logic_error when one does not.
  Grouping(std::string name, std::vector<int> group_of);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] int count() const { return static_cast<int>(begin_.size()) - 1; }
  /// -1: the rank takes no part.
  [[nodiscard]] int group_of(int rank) const { return group_of_[static_cast<std::size_t>(rank)]; }
  /// Ascending.
  [[nodiscard]] std::span<const int> ranks(int group) const {
    const auto i = static_cast<std::size_t>(group);
    return std::span(ranks_).subspan(static_cast<std::size_t>(begin_[i]),
                                     static_cast<std::size_t>(begin_[i + 1] - begin_[i]));
  }

private:
  std::string name_;
  std::vector<int> group_of_;
  std::vector<int> ranks_;     ///< group after group
  std::vector<int> begin_{0};  ///< group -> its first entry in `ranks_`; one more at the end
};

/// The groups that have one of these ranks. Ranks are numbered by their position in `kept`, which ascends; groups keep
/// their order, and are numbered without gaps.
std::vector<Grouping> among(const std::vector<Grouping>& groupings, const std::vector<int>& kept);

/// Which groups share a rank. The groupings are of the same ranks, and must outlive it.
class SharedRanks {
public:
  explicit SharedRanks(const std::vector<Grouping>& groupings);

  /// Groups of `to` that share a rank with `group` of `from`, ascending. The first call for two groupings costs
  /// O(ranks log ranks), and is not thread-safe.
  [[nodiscard]] std::span<const int> with(GroupingId from, int group, GroupingId to) const;

private:
  /// The answers for two groupings, group after group.
  struct Table {
    std::vector<int> begin;
    std::vector<int> groups;
  };
  [[nodiscard]] Table table_of(const Grouping& from, const Grouping& to) const;

  const std::vector<Grouping>& groupings_;
  mutable std::vector<Table> tables_;  ///< by `from` and `to`; empty until asked for
};

}  // namespace simsync
