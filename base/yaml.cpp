#include "base/yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/file.hpp"
#include "base/parse_units.hpp"

namespace simsync::yaml {
namespace detail {

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

namespace {

Origin origin_of(const State& state, const YAML::Mark& mark) {
  if (mark.line < 0) return {state.file, 0, 0};
  return {state.file, mark.line + 1, mark.column + 1};
}

void note(State& state, Diagnostic d) {
  if (state.findings.size() >= kMaxDiagnostics) return;
  // An alias is read once for every use; what is wrong with it is told once.
  const bool told = std::any_of(state.findings.begin(), state.findings.end(), [&](const Diagnostic& other) {
    return other.origin.line == d.origin.line && other.origin.column == d.origin.column && other.message == d.message;
  });
  if (told) return;
  const auto line = static_cast<std::size_t>(d.origin.line);
  if (line >= 1 && line <= state.lines.size()) d.source_line = state.lines[line - 1];
  state.findings.push_back(std::move(d));
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else if (c != '\r') {
      lines.back() += c;
    }
  }
  return lines;
}

}  // namespace
}  // namespace detail

using detail::NodeData;
using detail::State;

namespace {

std::string child_path(const std::string& parent, const std::string& key) {
  return parent.empty() ? key : parent + "." + key;
}

const char* kind_name(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map: return "a mapping";
    case YAML::NodeType::Sequence: return "a list";
    case YAML::NodeType::Scalar: return "a single value";
    default: return "nothing";
  }
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
  if (range.low == kPositive.low) return has_high ? fmt::format("above 0 and at most {}", format(range.high)) : "above 0";
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

bool Node::is_scalar() const { return data_ && data_->node.IsScalar(); }
bool Node::is_sequence() const { return data_ && data_->node.IsSequence(); }
bool Node::is_mapping() const { return data_ && data_->node.IsMap(); }

Origin Node::origin() const {
  if (!data_) return {};
  return detail::origin_of(*data_->state, data_->mark.is_null() ? data_->node.Mark() : data_->mark);
}

const std::string& Node::key_path() const {
  static const std::string kNone;
  return data_ ? data_->path : kNone;
}

void Node::fail(const std::string& message, const std::string& help, const std::string& note) const {
  if (!data_) return;
  detail::note(*data_->state, Diagnostic{.origin = origin(),
                                         .message = message,
                                         .key = data_->path,
                                         .source_line = {},
                                         .note = note,
                                         .help = help});
}

std::string Node::text() const {
  if (!data_) return {};
  if (!data_->node.IsScalar()) {
    fail(fmt::format("expected a single value, got {}", kind_name(data_->node)));
    return {};
  }
  if (data_->node.Scalar().empty()) fail("expected a value, got an empty text");
  return data_->node.Scalar();
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
  const std::string expected = high == std::numeric_limits<std::int64_t>::max() ? fmt::format("at least {}", low)
                                                                                : fmt::format("from {} to {}", low, high);
  fail(fmt::format("{} is out of range: expected {}", *parsed, expected));
  return fallback;
}

double Node::number(Range range) const { return scalar(*this, parse_number, range, "a number"); }

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
  if (!data_->node.IsSequence()) {
    fail(fmt::format("expected a list, got {}", kind_name(data_->node)));
    return out;
  }
  if (!within_budget(*this, *data_->state, data_->node.size())) return out;
  std::size_t index = 0;
  for (const auto& item : data_->node) {
    out.push_back(Node(std::make_shared<const NodeData>(
        NodeData{data_->state, item, fmt::format("{}[{}]", data_->path, index++)})));
  }
  return out;
}

std::vector<std::pair<std::string, Node>> Node::entries() const {
  std::vector<std::pair<std::string, Node>> out;
  if (!data_) return out;
  if (!data_->node.IsMap()) {
    fail(fmt::format("expected a mapping, got {}", kind_name(data_->node)));
    return out;
  }
  if (!within_budget(*this, *data_->state, data_->node.size())) return out;
  std::unordered_set<std::string> seen;
  for (const auto& entry : data_->node) {
    const Node key(std::make_shared<const NodeData>(NodeData{data_->state, entry.first, data_->path}));
    if (!entry.first.IsScalar()) {
      key.fail("a key must be a single name");
      continue;
    }
    const std::string& name = entry.first.Scalar();
    if (!seen.insert(name).second) {
      key.fail(fmt::format("duplicate key '{}'", shown(name)));
      continue;
    }
    const std::string path = child_path(data_->path, name);
    // An absent value (`key:`) has no place of its own; the key's place serves.
    const YAML::Mark mark = entry.second.IsNull() ? entry.first.Mark() : YAML::Mark::null_mark();
    out.emplace_back(name, Node(std::make_shared<const NodeData>(NodeData{data_->state, entry.second, path, mark})));
  }
  return out;
}

Mapping Node::mapping() const { return Mapping(*this); }

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
    for (const auto& entry : node_.data_->node) {
      if (entry.first.IsScalar() && entry.first.Scalar() == name)
        at = Node(std::make_shared<const NodeData>(NodeData{node_.data_->state, entry.first, value.key_path()}));
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

Document::Document(std::shared_ptr<State> state) : state_(std::move(state)) {}

Document Document::load(const std::string& path) { return parse(read_file(path), path); }

namespace {

/// Notes what yaml-cpp found, in words that say what to do about the two commonest causes.
void note_invalid(State& state, const YAML::Exception& e) {
  Diagnostic d{.origin = detail::origin_of(state, e.mark), .message = "not valid YAML: " + e.msg, .key = {}, .source_line = {}, .note = {}, .help = {}};
  if (dynamic_cast<const YAML::DeepRecursion*>(&e) != nullptr) d.message = "lists and mappings are nested too deep";
  const auto line = static_cast<std::size_t>(d.origin.line);
  for (std::size_t i = 1; i <= std::min(line, state.lines.size()); ++i) {
    const std::string& text = state.lines[i - 1];
    const std::size_t indent = std::min(text.find_first_not_of(" \t"), text.size());
    if (text.find('\t') >= indent) continue;
    d.help = fmt::format("line {} is indented with a tab; YAML takes spaces only", i);
    break;
  }
  detail::note(state, std::move(d));
}

void read_text(State& state, const std::string& text) {
  constexpr std::size_t kLargest = 16U * 1024U * 1024U;
  const auto refuse = [&](int line, const std::string& why) {
    detail::note(state, {.origin = {state.file, line, line > 0 ? 1 : 0}, .message = why, .key = {}, .source_line = {}, .note = {}, .help = {}});
  };
  if (text.size() > kLargest) return refuse(0, "is larger than 16 MiB");
  if (text.find('\0') != std::string::npos) return refuse(0, "is not a text file");
  state.lines = detail::split_lines(text);
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) return refuse(documents[1].Mark().line + 1, "expected one YAML document, got several");
    if (!documents.empty()) state.root = documents.front();
  } catch (const YAML::Exception& e) {
    return note_invalid(state, e);
  }
  if (!state.root.IsMap())
    refuse(0, state.root.IsNull() ? "the file is empty, expected a mapping"
                                  : fmt::format("expected a mapping at the top of the file, got {}", kind_name(state.root)));
}

}  // namespace

Document Document::parse(const std::string& text, const std::string& name) {
  auto state = std::make_shared<State>();
  state->file = name;
  read_text(*state, text);
  Document document(std::move(state));
  document.finish();
  return document;
}

Node Document::root() const { return Node(std::make_shared<const NodeData>(NodeData{state_, state_->root, ""})); }

const std::string& Document::file() const { return state_->file; }

void Document::finish() const {
  if (!state_->findings.empty()) throw InputError(state_->findings);
}

}  // namespace simsync::yaml
