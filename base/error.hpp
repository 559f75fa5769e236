// What can go wrong, and where it was written. Libraries throw these; only `main` prints or exits.
#pragma once
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace simsync {

/// A place in a user's file; line and column count from 1, 0 means "the file as a whole".
struct Origin {
  std::string file;
  int line = 0;
  int column = 0;
};

/// One finding about a user's input.
struct Diagnostic {
  Origin origin;
  std::string message;      ///< what is wrong and what was expected
  std::string key;          ///< key path such as `rules[0].servers[1]`; empty when there is none
  std::string source_line;  ///< the offending line, shown above the caret; empty when there is none
  std::string note;         ///< what else the reader needs to know; may be empty
  std::string help;         ///< the likely mend, such as "did you mean 'x'?"; may be empty

  /// `file:line:column: error: message`, the source line, a caret, then key, note and help.
  [[nodiscard]] std::string text() const;
};

/// The user's file or flag is wrong. Carries every finding of the pass (at most kMaxDiagnostics).
class InputError : public std::runtime_error {
public:
  explicit InputError(std::vector<Diagnostic> diagnostics);
  explicit InputError(Diagnostic diagnostic);
  /// For input that has no place in a file, such as a flag.
  explicit InputError(std::string message, std::string help = {});
  [[nodiscard]] const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

private:
  std::vector<Diagnostic> diagnostics_;
};
inline constexpr std::size_t kMaxDiagnostics = 20;

/// Inputs that are valid alone and not together, such as more workers than devices.
class PlanError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// This build or machine lacks a part that the request needs.
class CapabilityError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Real processes that could not go on: one died, hung or was cut off. The text says which and why.
class RunError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// The command ends with these; see the README.
enum class ExitCode : int { Ok = 0, Finding = 1, Usage = 2, Input = 3, Capability = 4, Internal = 70 };

/// The name among `known` closest to `wrong` by edit distance, or empty when none is close.
std::string closest(std::string_view wrong, const std::vector<std::string>& known);
/// "did you mean 'x'?" for the closest name, else empty.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& known);

/// Throws std::logic_error: a bug of ours, never reachable from input.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace simsync

#define SIMSYNC_ASSERT(expression) \
  ((expression) ? static_cast<void>(0) : ::simsync::assertion_failed(#expression, __FILE__, __LINE__))
