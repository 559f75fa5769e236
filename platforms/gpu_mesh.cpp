#include "platforms/gpu_mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>

namespace simsync {
namespace {

struct Pair {
  int one = 0;
  int other = 0;
  int links = 1;
};

/// `0-3x2`.
std::optional<Pair> pair_of(const std::string& word) {
  std::istringstream text(word);
  Pair out;
  char dash = 0;
  if (!(text >> out.one >> dash >> out.other) || dash != '-') return std::nullopt;
  char times = 0;
  if (text >> times && (times != 'x' || !(text >> out.links))) return std::nullopt;
  std::string rest;
  return text >> rest ? std::nullopt : std::optional(out);
}

/// Finds the most cycles through all nodes of a graph that share no link.
class CycleSearch {
public:
  /// `links`: of the graph of `nodes` nodes, row by row.
  CycleSearch(std::vector<int> links, std::size_t nodes) : links_(std::move(links)), nodes_(nodes) {}

  int most() {
    collect();
    return best_;
  }

private:
  [[nodiscard]] int& at(std::size_t one, std::size_t other) { return links_[one * nodes_ + other]; }

  /// Each cycle takes two links of every node.
  [[nodiscard]] int bound() const {
    int least = links_[1];
    for (std::size_t node = 0; node < nodes_; ++node) {
      const auto row = links_.begin() + static_cast<std::ptrdiff_t>(node * nodes_);
      const int sum = std::accumulate(row, row + static_cast<std::ptrdiff_t>(nodes_), 0);
      least = node == 0 ? sum : std::min(least, sum);
    }
    return least / 2;
  }

  void take(std::size_t one, std::size_t other, int count) {
    at(one, other) -= count;
    at(other, one) -= count;
  }

  /// Cycles found so far, plus the most that the rest has.
  void collect() {
    best_ = std::max(best_, found_);
    const int possible = found_ + bound();
    if (possible <= best_) return;
    extend({0}, possible);
  }

  /// Every cycle that begins with these nodes. Stops once nothing better is `possible`.
  void extend(std::vector<std::size_t> path, int possible) {
    const std::size_t last = path.back();
    if (path.size() == nodes_) {
      if (at(last, 0) == 0) return;
      take(last, 0, 1);
      ++found_;
      collect();
      --found_;
      take(last, 0, -1);
      return;
    }
    for (std::size_t next = 1; next < nodes_ && best_ < possible && tries_ < GpuMesh::kMostTries; ++next) {
      ++tries_;
      if (at(last, next) == 0 || std::find(path.begin(), path.end(), next) != path.end()) continue;
      take(last, next, 1);
      path.push_back(next);
      extend(path, possible);
      path.pop_back();
      take(last, next, -1);
    }
  }

  std::vector<int> links_;
  std::size_t nodes_;
  int found_ = 0;
  int best_ = 0;
  int tries_ = 0;
};

}  // namespace

GpuMesh::GpuMesh(const std::string& text) : links_(static_cast<std::size_t>(kMost * kMost), 0) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto pair = pair_of(word);
    if (!pair || pair->links < 1 || pair->one == pair->other)
      throw std::invalid_argument(fmt::format("'{}' is no pair of GPUs: expected such as 0-1 or 0-3x2", word));
    if (std::min(pair->one, pair->other) < 0 || std::max(pair->one, pair->other) >= kMost)
      throw std::invalid_argument(fmt::format("'{}': GPUs of a mesh are 0 to {}", word, kMost - 1));
    if (links(pair->one, pair->other) > 0) throw std::invalid_argument(fmt::format("'{}' is named twice", word));
    if (pair->links > kMostLinks)
      throw std::invalid_argument(fmt::format("'{}': a GPU has at most {} links", word, kMostLinks));
    links_[index(pair->one, pair->other)] = links_[index(pair->other, pair->one)] = pair->links;
  }
  if (most_links() > kMostLinks)
    throw std::invalid_argument(fmt::format("a GPU of the mesh has {} links, more than {}", most_links(), kMostLinks));
}

int GpuMesh::most_links() const {
  int most = 0;
  for (int one = 0; one < kMost; ++one) {
    int sum = 0;
    for (int other = 0; other < kMost; ++other) sum += links(one, other);
    most = std::max(most, sum);
  }
  return most;
}

int GpuMesh::rings(const std::vector<int>& gpus) const {
  if (gpus.size() < 2) return 0;
  if (gpus.size() == 2) return links(gpus[0], gpus[1]);
  const auto [known, fresh] = known_.try_emplace(gpus, 0);
  if (!fresh) return known->second;
  std::vector<int> among;
  for (const int one : gpus)
    for (const int other : gpus) among.push_back(links(one, other));
  return known->second = 2 * CycleSearch(std::move(among), gpus.size()).most();
}

}  // namespace simsync
