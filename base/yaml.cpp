#include "base/yaml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/parse_units.hpp"
#include "base/yaml_state.hpp"

namespace simsync::yaml {

using detail::Kind;
using detail::kind_name;
using detail::Mark;
using detail::NodeData;
using detail::State;
using detail::Value;

namespace {

std::string child_path(const std::string& parent, const std::string& key) {
  return parent.empty() ? key : parent + "." + key;
}

/// Counts `more` values read; false, with a note, once a file has become too large by its aliases.
bool within_budget(const Node& node, State& state, std::size_t more) {
  constexpr std::size_t kMostValues = 4'000'000;
  if (state.handed_out > kMostValues) return false;
  state.handed_out += more;
  if (state.handed_out <= kMostValues) return true;
  node.fail(fmt::format("the file expands to more than {} values", kMostValues));
  return false;
}

std::string shown(const std::string& text) {
  constexpr std::size_t kLongestShown = 60;
  return text.size() <= kLongestShown ? text : text.substr(0, kLongestShown) + "...";
}

std::string range_text(const Range& range, const std::function<std::string(double)>& format) {
  const bool has_low = std::isfinite(range.low);
  const bool has_high = std::isfinite(range.high);
  if (range.low == kPositive.low)
    return has_high ? fmt::format("above 0 and at most {}", format(range.high)) : "above 0";
  if (has_low && has_high) return fmt::format("from {} to {}", format(range.low), format(range.high));
  if (has_low) return fmt::format("at least {}", format(range.low));
  return fmt::format("at most {}", format(range.high));
}

/// Reads a scalar with `parse`; notes what was expected when it does not parse or is out of range.
template <class Parse>
double scalar(const Node& node, const Parse& parse, const Range& range, const std::string& expected) {
  if (!node) return std::clamp(1.0, range.low, range.high);
  const std::string text = node.text();
  if (text.empty()) return std::clamp(1.0, range.low, range.high);
  const std::optional<double> value = parse(text);
  if (!value) {
    node.fail(fmt::format("expected {}, got '{}'", expected, shown(text)));
    return std::clamp(1.0, range.low, range.high);
  }
  if (*value < range.low || *value > range.high) {
    node.fail(fmt::format("{} is out of range: expected {}", shown(text),
                          range_text(range, [](double v) { return format_shortest(v); })));
    return std::clamp(1.0, range.low, range.high);
  }
  return *value;
}

}  // namespace

bool Node::is_scalar() const {
  return data_ && data_->get().kind == Kind::Scalar;
}
bool Node::is_sequence() const {
  return data_ && data_->get().kind == Kind::List;
}
bool Node::is_mapping() const {
  return data_ && data_->get().kind == Kind::Mapping;
}
bool Node::has(const std::string& key) const {
  if (!is_mapping()) return false;
  const auto& values = data_->state->values;
  const auto& parts = data_->get().parts;
  for (std::size_t i = 0; i < parts.size(); i += 2)
    if (values[parts[i]].kind == Kind::Scalar && values[parts[i]].text == key) return true;
  return false;
}

Origin Node::origin() const {
  if (!data_) return {};
  return detail::origin_of(*data_->state, data_->mark.value_or(data_->get().mark));
}

const std::string& Node::key_path() const {
  static const std::string kNone;
  return data_ ? data_->path : kNone;
}

void Node::fail(const std::string& message, const std::string& help, const std::string& note) const {
  if (!data_) return;
  detail::note(
      *data_->state,
      Diagnostic{
          .origin = origin(), .message = message, .key = data_->path, .source_line = {}, .note = note, .help = help});
}

std::string Node::text() const {
  if (!data_) return {};
  const Value& value = data_->get();
  if (value.kind != Kind::Scalar) {
    fail(fmt::format("expected a single value, got {}", kind_name(value.kind)));
    return {};
  }
  if (value.text.empty()) fail("expected a value, got an empty text");
  return value.text;
}

bool Node::boolean() const {
  if (!data_) return false;
  const std::string value = text();
  if (value != "true" && value != "false" && !value.empty())
    fail(fmt::format("expected true or false, got '{}'", shown(value)));
  return value == "true";
}

std::int64_t Node::integer(std::int64_t low, std::int64_t high) const {
  const std::int64_t fallback = std::clamp<std::int64_t>(1, low, high);
  if (!data_) return fallback;
  const std::string value = text();
  if (value.empty()) return fallback;
  const auto parsed = parse_integer(value);
  if (!parsed) {
    fail(fmt::format("expected a whole number, got '{}'", shown(value)));
    return fallback;
  }
  if (*parsed >= low && *parsed <= high) return *parsed;
  const std::string expected = high == std::numeric_limits<std::int64_t>::max()
                                   ? fmt::format("at least {}", low)
                                   : fmt::format("from {} to {}", low, high);
  fail(fmt::format("{} is out of range: expected {}", *parsed, expected));
  return fallback;
}

double Node::number(Range range) const {
  return scalar(*this, parse_number, range, "a number");
}

Seconds Node::seconds(Range range) const {
  const auto parse = [](const std::string& t) -> std::optional<double> {
    const auto v = parse_seconds(t);
    return v ? std::optional{v->value()} : std::nullopt;
  };
  return Seconds{scalar(*this, parse, range, "a time with its unit, such as 10us or 1.5ms")};
}

Bytes Node::bytes(Range range) const {
  const auto parse = [](const std::string& t) -> std::optional<double> {
    const auto v = parse_bytes(t);
    return v ? std::optional{static_cast<double>(v->count)} : std::nullopt;
  };
  return Bytes{static_cast<std::int64_t>(scalar(*this, parse, range, "a size with its unit, such as 25MiB or 512B"))};
}

BytesPerSecond Node::bandwidth(Range range) const {
  const auto parse = [](const std::string& t) -> std::optional<double> {
    const auto v = parse_bandwidth(t);
    return v ? std::optional{v->value()} : std::nullopt;
  };
  return BytesPerSecond{scalar(*this, parse, range, "a bandwidth with its unit, such as 10Gbps or 12.5GB/s")};
}

FlopsPerSecond Node::flops_rate(Range range) const {
  const auto parse = [](const std::string& t) -> std::optional<double> {
    const auto v = parse_flops_rate(t);
    return v ? std::optional{v->value()} : std::nullopt;
  };
  return FlopsPerSecond{scalar(*this, parse, range, "a compute rate with its unit, such as 8.1TFLOPS")};
}

std::size_t Node::choice(const std::vector<std::string>& names) const {
  if (!data_) return 0;
  const std::string value = text();
  if (value.empty()) return 0;
  const auto found = std::find(names.begin(), names.end(), value);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  fail(fmt::format("'{}' is not one of {}", shown(value), fmt::join(names, ", ")), did_you_mean(value, names));
  return 0;
}

std::vector<Node> Node::items() const {
  std::vector<Node> out;
  if (!data_) return out;
  const Value& list = data_->get();
  if (list.kind != Kind::List) {
    fail(fmt::format("expected a list, got {}", kind_name(list.kind)));
    return out;
  }
  if (!within_budget(*this, *data_->state, list.parts.size())) return out;
  out.reserve(list.parts.size());
  for (std::size_t i = 0; i < list.parts.size(); ++i)
    out.push_back(Node(std::make_shared<const NodeData>(
        NodeData{data_->state, list.parts[i], fmt::format("{}[{}]", data_->path, i), {}})));
  return out;
}

std::vector<std::pair<std::string, Node>> Node::entries() const {
  std::vector<std::pair<std::string, Node>> out;
  if (!data_) return out;
  const Value& mapping = data_->get();
  if (mapping.kind != Kind::Mapping) {
    fail(fmt::format("expected a mapping, got {}", kind_name(mapping.kind)));
    return out;
  }
  const auto& parts = mapping.parts;
  if (!within_budget(*this, *data_->state, parts.size() / 2)) return out;
  out.reserve(parts.size() / 2);
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
    const Value& key = data_->state->values[parts[i]];
    const auto refuse = [&](const std::string& why) {
      Node(std::make_shared<const NodeData>(NodeData{data_->state, parts[i], data_->path, {}})).fail(why);
    };
    if (key.kind != Kind::Scalar) {
      refuse("a key must be a single name");
      continue;
    }
    if (!seen.insert(key.text).second) {
      refuse(fmt::format("duplicate key '{}'", shown(key.text)));
      continue;
    }
    // An absent value (`key:`) has no place of its own; the key's place serves.
    std::optional<Mark> mark;
    if (data_->state->values[parts[i + 1]].kind == Kind::Nothing) mark = key.mark;
    out.emplace_back(key.text, Node(std::make_shared<const NodeData>(
                                   NodeData{data_->state, parts[i + 1], child_path(data_->path, key.text), mark})));
  }
  return out;
}

Mapping Node::mapping() const {
  return Mapping(*this);
}

Mapping::Mapping(Node node) : node_(std::move(node)), entries_(node_.entries()) {}

Mapping::Mapping(Mapping&& other) noexcept
    : node_(std::move(other.node_)),
      entries_(std::move(other.entries_)),
      asked_(std::move(other.asked_)),
      owner_(std::exchange(other.owner_, false)) {}

Mapping::~Mapping() {
  if (!owner_ || !node_ || !node_.is_mapping()) return;
  std::vector<std::string> free_names;
  for (const auto& name : asked_) {
    const bool given = std::any_of(entries_.begin(), entries_.end(), [&](const auto& e) { return e.first == name; });
    if (!given) free_names.push_back(name);
  }
  std::sort(asked_.begin(), asked_.end());
  for (const auto& [name, value] : entries_) {
    if (node_.data_->state->findings.size() >= kMaxDiagnostics) return;
    if (std::binary_search(asked_.begin(), asked_.end(), name)) continue;
    std::string help = did_you_mean(name, free_names);
    if (help.empty()) help = fmt::format("known keys: {}", fmt::join(asked_, ", "));
    Node at = value;
    const auto& values = node_.data_->state->values;
    const auto& parts = node_.data_->get().parts;
    for (std::size_t i = 0; i < parts.size(); i += 2) {
      if (values[parts[i]].kind == Kind::Scalar && values[parts[i]].text == name)
        at = Node(std::make_shared<const NodeData>(NodeData{node_.data_->state, parts[i], value.key_path(), {}}));
    }
    at.fail(fmt::format("unknown key '{}'", shown(name)), help);
  }
}

Node Mapping::optional(const std::string& key) {
  if (std::find(asked_.begin(), asked_.end(), key) == asked_.end()) asked_.push_back(key);
  for (const auto& [name, value] : entries_) {
    if (name == key) return value;
  }
  return {};
}

Node Mapping::require(const std::string& key) {
  Node value = optional(key);
  if (!value && node_.is_mapping()) node_.fail(fmt::format("missing key '{}'", key));
  return value;
}

void Mapping::maybe(const std::string& key, const std::function<void(const Node&)>& read) {
  if (const Node value = optional(key)) read(value);
}

}  // namespace simsync::yaml
