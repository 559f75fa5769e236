// What a parsed file and its values consist of. Private to base/yaml*.cpp.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace simsync::yaml::detail {

enum class Kind : std::uint8_t { Nothing, Scalar, List, Mapping };

/// Where a value begins, from 0 on.
struct Mark {
  int line = 0;
  int column = 0;
};

/// A value as the file has it.
struct Value {
  Kind kind = Kind::Nothing;
  Mark mark;
  std::string text;                ///< of a scalar
  std::vector<std::size_t> parts;  ///< of a list: its items; of a mapping: key, value, key, value ...
};

struct State {
  std::string file;
  std::string text;
  std::vector<Value> values;  ///< the first one is the root; an alias is its anchor's value once more
  std::vector<Diagnostic> findings;
  std::size_t handed_out = 0;  ///< items and entries so far; aliases make a small file large
};

struct NodeData {
  std::shared_ptr<State> state;
  std::size_t value = 0;
  std::string path;
  std::optional<Mark> mark;  ///< the key's, for a value that has no place of its own

  [[nodiscard]] const Value& get() const { return state->values[value]; }
};

Origin origin_of(const State& state, Mark mark);
/// Adds a finding with its source line, unless it is there already or there are kMaxDiagnostics.
void note(State& state, Diagnostic d);
/// `a mapping`, `a list`, ...
const char* kind_name(Kind kind);

}  // namespace simsync::yaml::detail
