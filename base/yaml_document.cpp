// From the text of a file to a Document.
#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <sstream>

#include "base/file.hpp"
#include "base/yaml.hpp"
#include "base/yaml_state.hpp"

namespace simsync::yaml {
namespace detail {

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

const char* kind_name(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Map:
      return "a mapping";
    case YAML::NodeType::Sequence:
      return "a list";
    case YAML::NodeType::Scalar:
      return "a single value";
    default:
      return "nothing";
  }
}

}  // namespace detail

using detail::kind_name;
using detail::NodeData;
using detail::State;

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

/// Tells whether a file goes on after its first document.
class DocumentCounter : public YAML::EventHandler {
public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    ++documents_;
    start_ = mark;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override { content(); }
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override { content(); }
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    content();
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    content();
  }
  void OnMapEnd() override {}

  [[nodiscard]] bool several() const { return several_; }
  [[nodiscard]] const YAML::Mark& start() const { return start_; }

private:
  void content() { several_ = documents_ > 1; }
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
  Diagnostic d{.origin = detail::origin_of(state, e.mark),
               .message = "not valid YAML: " + e.msg,
               .key = {},
               .source_line = {},
               .note = {},
               .help = {}};
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
    detail::note(state, {.origin = {state.file, line, line > 0 ? 1 : 0},
                         .message = why,
                         .key = {},
                         .source_line = {},
                         .note = {},
                         .help = {}});
  };
  if (text.size() > kLargest) return refuse(0, "is larger than 16 MiB");
  if (text.find('\0') != std::string::npos) return refuse(0, "is not a text file");
  state.lines = split_lines(text);
  try {
    // Not YAML::LoadAll: after some wrong texts, such as a lone comma, it finds empty documents without end.
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    DocumentCounter counter;
    if (parser.HandleNextDocument(counter)) parser.HandleNextDocument(counter);
    if (counter.several()) return refuse(counter.start().line + 1, "expected one YAML document, got several");
    state.root = YAML::Load(text);
  } catch (const YAML::Exception& e) {
    return note_invalid(state, e);
  }
  if (state.root.IsMap()) return;
  if (!state.root.IsNull())
    return refuse(0, fmt::format("expected a mapping at the top of the file, got {}", kind_name(state.root)));
  refuse(0, is_blank(state.lines) ? "the file is empty, expected a mapping" : "not valid YAML: expected a mapping");
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
  return Node(std::make_shared<const NodeData>(NodeData{state_, state_->root, ""}));
}

const std::string& Document::file() const {
  return state_->file;
}

void Document::finish() const {
  if (!state_->findings.empty()) throw InputError(state_->findings);
}

}  // namespace simsync::yaml
