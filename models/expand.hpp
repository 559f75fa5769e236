// Walks the statements of a model file: templates, blocks with parameters, repetition, branches.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "models/statement.hpp"

namespace simsync::detail {

/// A named list of statements that `use` expands.
struct Block {
  yaml::Node node;
  std::vector<std::string> parameters;
  std::vector<yaml::Node> layers;
  bool used = false;
};

class Expander {
public:
  Expander(Builder& builder, std::map<std::string, Block>& blocks) : builder_(builder), blocks_(blocks) {}

  /// Adds the layers of `statements`, each reading the output of the one before; returns the last output.
  /// Stops at the first statement with findings, since the shapes after it are unknown. @throws InputError
  Tensor run(const std::vector<yaml::Node>& statements, const Scope& scope);

private:
  Tensor statement(const yaml::Node& node, const Scope& scope, const Tensor& current);
  Tensor use(Statement& s);
  Tensor use_once(Statement& s, const Block& block, const Scope& inner, const std::string& defined);
  Tensor branches(Statement& s);
  Scope nested(const Statement& s, const Tensor& input) const;

  Builder& builder_;
  std::map<std::string, Block>& blocks_;
};

/// Reads the mapping under `blocks`.
std::map<std::string, Block> read_blocks(const yaml::Node& node);

}  // namespace simsync::detail
