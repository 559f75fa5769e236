// Strict YAML: every key is read exactly once, every value has a type, a range and, where it is physical, a unit.
//
// A reader walks a Document; a wrong value is noted with its place and reading goes on with a
// harmless default, so that one run reports up to kMaxDiagnostics findings. `Document::finish`
// throws them all together; nothing read may be used before it has returned.
#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "base/words.hpp"

namespace simsync::yaml {

namespace detail {
struct State;
struct NodeData;
}  // namespace detail

class Mapping;

/// Allowed range of a number, both ends included.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};
inline constexpr Range kPositive{std::numeric_limits<double>::min(), std::numeric_limits<double>::infinity()};
inline constexpr Range kNonNegative{0.0, std::numeric_limits<double>::infinity()};
inline constexpr Range kFraction{0.0, 1.0};

/// A value in a file. A Node that stands for a missing value answers every question with a default,
/// silently: whoever made it has already noted the error.
class Node {
public:
  Node() = default;
  [[nodiscard]] explicit operator bool() const { return data_ != nullptr; }
  [[nodiscard]] bool is_scalar() const;
  [[nodiscard]] bool is_sequence() const;
  [[nodiscard]] bool is_mapping() const;
  /// Whether it is a mapping with this key, which does not count as read.
  [[nodiscard]] bool has(const std::string& key) const;
  [[nodiscard]] Origin origin() const;
  [[nodiscard]] const std::string& key_path() const;

  /// Text of a scalar (quoted or not). An empty text is an error.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool boolean() const;  ///< only `true` and `false`
  [[nodiscard]] std::int64_t integer(std::int64_t low = std::numeric_limits<std::int64_t>::min(),
                                     std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  [[nodiscard]] double number(Range range = {}) const;
  [[nodiscard]] Seconds seconds(Range range = kNonNegative) const;
  [[nodiscard]] Bytes bytes(Range range = kNonNegative) const;
  [[nodiscard]] BytesPerSecond bandwidth(Range range = kPositive) const;
  [[nodiscard]] FlopsPerSecond flops_rate(Range range = kPositive) const;
  /// One of `names`; returns its index.
  [[nodiscard]] std::size_t choice(const std::vector<std::string>& names) const;
  /// One of the names in `values`; `values` holds (name, value) pairs and must not be empty.
  template <class E>
  [[nodiscard]] E one_of(const Words<E>& values) const {
    return values[choice(names_in(values))].second;
  }

  [[nodiscard]] Mapping mapping() const;
  /// The items of a sequence; empty when it is none.
  [[nodiscard]] std::vector<Node> items() const;
  /// The entries of a mapping whose keys are the user's own names (checked for duplicates).
  [[nodiscard]] std::vector<std::pair<std::string, Node>> entries() const;

  /// Notes an error at this value.
  void fail(const std::string& message, const std::string& help = {}, const std::string& note = {}) const;

private:
  friend class Mapping;
  friend class Document;
  explicit Node(std::shared_ptr<const detail::NodeData> data) : data_(std::move(data)) {}
  std::shared_ptr<const detail::NodeData> data_;
};

/// A mapping with fixed keys. Its destructor notes every key that nobody asked for.
class Mapping {
public:
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();

  /// The value of `key`; notes an error when it is missing.
  Node require(const std::string& key);
  /// The value of `key`, or an empty Node.
  Node optional(const std::string& key);
  /// Reads `key` with `read` when it is there: `m.maybe("batch", [&](Node n) { batch = n.integer(1); });`
  void maybe(const std::string& key, const std::function<void(const Node&)>& read);
  [[nodiscard]] const Node& node() const { return node_; }

private:
  friend class Node;
  explicit Mapping(Node node);
  Node node_;
  std::vector<std::pair<std::string, Node>> entries_;
  std::vector<std::string> asked_;
  bool owner_ = true;
};

/// A parsed file.
class Document {
public:
  /// @throws InputError when the file cannot be read, is larger than 16 MiB or is not YAML.
  static Document load(const std::string& path);
  /// `name` stands for the file in messages. @throws InputError when `text` is not YAML.
  static Document parse(const std::string& text, const std::string& name);
  [[nodiscard]] Node root() const;
  [[nodiscard]] const std::string& file() const;
  /// @throws InputError with everything noted so far.
  void finish() const;

private:
  explicit Document(std::shared_ptr<detail::State> state);
  std::shared_ptr<detail::State> state_;
};

}  // namespace simsync::yaml
