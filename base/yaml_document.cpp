// From the text of a file to a Document.
#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/file.hpp"
#include "base/yaml.hpp"
#include "base/yaml_state.hpp"

namespace simsync::yaml {
namespace detail {

Origin origin_of(const State& state, Mark mark) {
  return {state.file, mark.line + 1, mark.column + 1};
}

namespace {

/// From 1 on, without its end; empty beyond the last one.
std::string line_of(const std::string& text, int number) {
  std::size_t begin = 0;
  for (int line = 1; line < number && begin != std::string::npos; ++line) {
    begin = text.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (number < 1 || begin == std::string::npos) return {};
  std::string line = text.substr(begin, text.find('\n', begin) - begin);
  std::erase(line, '\r');
  return line;
}

}  // namespace

void note(State& state, Diagnostic d) {
  if (state.findings.size() >= kMaxDiagnostics) return;
  // An alias is read once for every use; what is wrong with it is told once.
  const bool told = std::any_of(state.findings.begin(), state.findings.end(), [&](const Diagnostic& other) {
    return other.origin.line == d.origin.line && other.origin.column == d.origin.column && other.message == d.message;
  });
  if (told) return;
  d.source_line = line_of(state.text, d.origin.line);
  state.findings.push_back(std::move(d));
}

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::Mapping:
      return "a mapping";
    case Kind::List:
      return "a list";
    case Kind::Scalar:
      return "a single value";
    case Kind::Nothing:
      break;
  }
  return "nothing";
}

}  // namespace detail

using detail::Kind;
using detail::kind_name;
using detail::NodeData;
using detail::State;
using detail::Value;

Document::Document(std::shared_ptr<State> state) : state_(std::move(state)) {}

Document Document::load(const std::string& path) {
  return parse(read_file(path), path);
}

namespace {

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

/// Makes values of the first document's events, and tells whether the file goes on after it.
class TreeBuilder : public YAML::EventHandler {
public:
  explicit TreeBuilder(std::vector<Value>& values) : values_(values) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    ++documents_;
    start_ = mark;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (documents_ == 1) (void)add(Kind::Nothing, mark, anchor);
  }
  void OnAlias(const YAML::Mark&, YAML::anchor_t anchor) override {
    if (goes_on()) return;
    put(anchors_.at(anchor));
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, const std::string& text) override {
    if (goes_on()) return;
    values_[add(Kind::Scalar, mark, anchor)].text = text;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    if (!goes_on()) open_.push_back(add(Kind::List, mark, anchor));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    if (!goes_on()) open_.push_back(add(Kind::Mapping, mark, anchor));
  }
  void OnMapEnd() override { close(); }

  [[nodiscard]] bool several() const { return several_; }
  [[nodiscard]] const YAML::Mark& start() const { return start_; }

private:
  /// Whether a value belongs to a further document.
  bool goes_on() { return several_ = documents_ > 1; }
  std::size_t add(Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    const std::size_t value = values_.size();
    values_.push_back({.kind = kind, .mark = {mark.line, mark.column}, .text = {}, .parts = {}});
    if (anchor != YAML::NullAnchor) anchors_[anchor] = value;
    put(value);
    return value;
  }
  void put(std::size_t value) {
    if (!open_.empty()) values_[open_.back()].parts.push_back(value);
  }
  void close() {
    if (documents_ == 1) open_.pop_back();
  }

  std::vector<Value>& values_;
  std::vector<std::size_t> open_;  ///< lists and mappings that have not ended, outermost first
  std::map<YAML::anchor_t, std::size_t> anchors_;
  int documents_ = 0;
  bool several_ = false;
  YAML::Mark start_;
};

bool is_blank(const std::vector<std::string>& lines) {
  return std::all_of(lines.begin(), lines.end(), [](const std::string& line) {
    const std::size_t first = line.find_first_not_of(" \t");
    return first == std::string::npos || line[first] == '#' || line.starts_with("---");
  });
}

/// Notes what yaml-cpp found, in words that say what to do about the two commonest causes.
void note_invalid(State& state, const YAML::Exception& e) {
  Diagnostic d{.origin = {state.file, e.mark.line + 1, e.mark.column + 1},
               .message = "not valid YAML: " + e.msg,
               .key = {},
               .source_line = {},
               .note = {},
               .help = {}};
  if (e.mark.line < 0) d.origin = {state.file, 0, 0};
  if (dynamic_cast<const YAML::DeepRecursion*>(&e) != nullptr) d.message = "lists and mappings are nested too deep";
  const auto lines = split_lines(state.text);
  const auto line = static_cast<std::size_t>(d.origin.line);
  for (std::size_t i = 1; i <= std::min(line, lines.size()); ++i) {
    const std::string& text = lines[i - 1];
    const std::size_t indent = std::min(text.find_first_not_of(" \t"), text.size());
    if (text.find('\t') >= indent) continue;
    d.help = fmt::format("line {} is indented with a tab; YAML takes spaces only", i);
    break;
  }
  detail::note(state, std::move(d));
}

void read_text(State& state, const std::string& text) {
  constexpr std::size_t kLargest = std::size_t{16} * 1024 * 1024;
  const auto refuse = [&](int line, const std::string& why) {
    detail::note(state, {.origin = {state.file, line, line > 0 ? 1 : 0},
                         .message = why,
                         .key = {},
                         .source_line = {},
                         .note = {},
                         .help = {}});
  };
  if (text.size() > kLargest) return refuse(0, "is larger than 16 MiB");
  if (text.find('\0') != std::string::npos) return refuse(0, "is not a text file");
  state.text = text;
  try {
    // Not YAML::LoadAll: after some wrong texts, such as a lone comma, it finds empty documents without end.
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    TreeBuilder builder(state.values);
    if (parser.HandleNextDocument(builder)) parser.HandleNextDocument(builder);
    if (builder.several()) return refuse(builder.start().line + 1, "expected one YAML document, got several");
  } catch (const YAML::Exception& e) {
    return note_invalid(state, e);
  }
  if (state.values.empty()) state.values.emplace_back();
  const Kind root = state.values.front().kind;
  if (root == Kind::Mapping) return;
  if (root != Kind::Nothing)
    return refuse(0, fmt::format("expected a mapping at the top of the file, got {}", kind_name(root)));
  refuse(0,
         is_blank(split_lines(text)) ? "the file is empty, expected a mapping" : "not valid YAML: expected a mapping");
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

Node Document::root() const {
  return Node(std::make_shared<const NodeData>(NodeData{state_, 0, {}, {}}));
}

const std::string& Document::file() const {
  return state_->file;
}

void Document::finish() const {
  if (!state_->findings.empty()) throw InputError(state_->findings);
}

}  // namespace simsync::yaml
