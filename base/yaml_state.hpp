// What a parsed file and its values consist of. Private to base/yaml*.cpp, the only files that name yaml-cpp.
#pragma once
#include <yaml-cpp/yaml.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace simsync::yaml::detail {

struct State {
  std::string file;
  std::vector<std::string> lines;
  YAML::Node root;
  std::vector<Diagnostic> findings;
  std::size_t handed_out = 0;  ///< items and entries so far; aliases make a small file large
};

struct NodeData {
  std::shared_ptr<State> state;
  YAML::Node node;
  std::string path;
  YAML::Mark mark = YAML::Mark::null_mark();  ///< the key's, for a value that has no place of its own
};

Origin origin_of(const State& state, const YAML::Mark& mark);
/// Adds a finding with its source line, unless it is there already or there are kMaxDiagnostics.
void note(State& state, Diagnostic d);
/// `a mapping`, `a list`, ...
const char* kind_name(const YAML::Node& node);

}  // namespace simsync::yaml::detail
