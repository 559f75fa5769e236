// Direct links between the GPUs of a node that no switch joins, such as NVLink in a DGX-1V.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace simsync {

/// How many links each pair of GPUs has. A link carries its rate in both directions at the same time.
class GpuMesh {
public:
  /// Reads pairs such as `0-1 0-2 0-3x2`: GPU 0 has one link to 1, one to 2 and two to 3.
  /// A node may have fewer of the GPUs: the first of them.
  /// @throws std::invalid_argument, whose text says what is wrong: a pair that is none, is named twice or has a GPU
  /// beyond kMost, or a GPU with more than kMostLinks.
  explicit GpuMesh(const std::string& text);

  static constexpr int kMost = 8;        ///< GPUs
  static constexpr int kMostLinks = 18;  ///< of a GPU: NVLink of an H100, the most of any

  [[nodiscard]] int links(int one, int other) const { return links_[index(one, other)]; }
  /// Links of the GPU that has most.
  [[nodiscard]] int most_links() const;
  /// The most rings that pass each of these GPUs once and share no direction of any link: what a collective among them
  /// runs on, one link's rate each. A cycle through all of these GPUs is two rings, one in each direction; the cycles
  /// share no link. Of two GPUs each link is one ring. 0: there is no cycle. Remembers what it was asked. Cost: a
  /// search that is given up after kMostTries, some tenths of a second; what it has found by then may not be the most.
  [[nodiscard]] int rings(const std::vector<int>& gpus) const;

  static constexpr int kMostTries = 300'000;  ///< links that the search tries; a DGX-1V needs fewer than a tenth

private:
  [[nodiscard]] static std::size_t index(int one, int other) {
    return static_cast<std::size_t>(one) * static_cast<std::size_t>(kMost) + static_cast<std::size_t>(other);
  }

  std::vector<int> links_;                         ///< by index()
  mutable std::map<std::vector<int>, int> known_;  ///< rings by GPUs
};

}  // namespace simsync
