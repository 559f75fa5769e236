// Names for layers that are made of variables.
#pragma once
#include <set>
#include <string>
#include <vector>

namespace simsync::detail {

/// Names that a model file takes (letters, digits, '_', '.', '-'), none twice.
class LayerNames {
public:
  /// For a layer of these variables: the folder that they share (`conv1` of conv1/weights and conv1/biases), else the
  /// name of the first one.
  std::string of(const std::vector<std::string>& variables);
  /// `wanted`, or with a number behind it where that is taken.
  std::string unique(const std::string& wanted);

private:
  std::set<std::string> taken_;
};

/// `variable` without the folder that all of `variables` share: its name within a layer of them.
std::string name_within(const std::string& variable, const std::vector<std::string>& variables);

}  // namespace simsync::detail
