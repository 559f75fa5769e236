// Gradient-boosted trees of XGBoost behind an interface, so that programs load the library when they first need it.
// Private to strategies/search.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace simsync::detail {

/// Examples in groups: a tree is right where of two examples of one group the one with the higher label scores higher.
struct TreeRows {
  std::size_t width = 0;      ///< features of an example
  std::vector<float> values;  ///< example by example
  std::vector<float> labels;
  std::vector<unsigned> groups;  ///< numbers of examples that follow each other
};

class BoostedTrees {
public:
  BoostedTrees() = default;
  virtual ~BoostedTrees() = default;
  BoostedTrees(const BoostedTrees&) = delete;
  BoostedTrees& operator=(const BoostedTrees&) = delete;

  /// Adds so many trees to those that are there.
  virtual void grow(const TreeRows& rows, int trees) = 0;
  [[nodiscard]] virtual double score(const std::vector<double>& features) const = 0;
  /// XGBoost's JSON.
  [[nodiscard]] virtual std::string saved() const = 0;
  /// Features that the trees were grown for.
  [[nodiscard]] virtual std::size_t width() const = 0;
};

/// `saved`: trees to begin with, or none. @throws CapabilityError in a build without XGBoost, std::invalid_argument for
/// what XGBoost cannot read.
std::unique_ptr<BoostedTrees> boosted_trees(const std::string& saved);

extern "C" {
/// The same, into `out`, as load_boosted.cpp calls it.
void simsync_boosted_trees(const std::string& saved, std::unique_ptr<BoostedTrees>& out);
}

}  // namespace simsync::detail
