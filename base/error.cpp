#include "base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace simsync {

std::string Diagnostic::text() const {
  std::string out;
  if (!origin.file.empty()) {
    out += origin.file + ":";
    if (origin.line > 0) out += fmt::format("{}:{}:", origin.line, origin.column);
    out += " ";
  }
  out += "error: " + message;
  if (!source_line.empty() && origin.line > 0) {
    out += fmt::format("\n{:>5} | {}", origin.line, source_line);
    out += fmt::format("\n      | {:>{}}", "^", std::max(origin.column, 1));
  }
  if (!key.empty()) out += "\n  key:  " + key;
  if (!note.empty()) out += "\n  note: " + note;
  if (!help.empty()) out += "\n  help: " + help;
  return out;
}

namespace {

std::string join(const std::vector<Diagnostic>& diagnostics) {
  std::string out;
  for (const auto& d : diagnostics) out += (out.empty() ? "" : "\n") + d.text();
  return out;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

InputError::InputError(std::vector<Diagnostic> diagnostics)
    : std::runtime_error(join(diagnostics)), diagnostics_(std::move(diagnostics)) {}

InputError::InputError(Diagnostic diagnostic) : InputError(std::vector<Diagnostic>{std::move(diagnostic)}) {}

InputError::InputError(std::string message, std::string help)
    : InputError(Diagnostic{
          .origin = {}, .message = std::move(message), .key = {}, .source_line = {}, .note = {}, .help = std::move(help)}) {}

std::string closest(std::string_view wrong, const std::vector<std::string>& known) {
  constexpr std::size_t kLongestWorthComparing = 200;
  if (wrong.size() > kLongestWorthComparing) return {};
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, wrong.size() / 3) + 1;
  for (const auto& name : known) {
    const std::size_t distance = edit_distance(wrong, name);
    if (distance < best_distance) {
      best_distance = distance;
      best = name;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& known) {
  const std::string name = closest(wrong, known);
  return name.empty() ? std::string{} : fmt::format("did you mean '{}'?", name);
}

void assertion_failed(const char* expression, const char* file, int line) {
  throw std::logic_error(fmt::format("{}:{}: internal error: {}", file, line, expression));
}

}  // namespace simsync
