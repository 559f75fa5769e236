#include "hw/testbed/names.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>

namespace simsync::testbed {
namespace {

constexpr std::string_view kPrefix = "simsync-";

struct Process {
  char state = 'X';
  unsigned long long started = 0;
};

/// From /proc/<pid>/stat, whose second field is a name in parentheses that may hold anything.
std::optional<Process> process(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto after_name = text.rfind(')');
  if (after_name == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(after_name + 1));
  Process out;
  fields >> out.state;
  constexpr int kFieldsBeforeStart = 18;  // fields 4 to 21; the start time is field 22
  std::string skipped;
  for (int i = 0; i < kFieldsBeforeStart; ++i) fields >> skipped;
  fields >> out.started;
  return fields ? std::optional{out} : std::nullopt;
}

/// Takes a number and the hyphen after it from the front of `text`.
template <class T>
bool take_number(std::string_view& text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data() + text.size() || *end != '-') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

}  // namespace

Owner this_process() {
  const pid_t pid = ::getpid();
  const auto self = process(pid);
  return {pid, self ? self->started : 0};
}

bool alive(const Owner& owner) {
  const auto found = process(owner.pid);
  return found && found->started == owner.started && found->state != 'Z' && found->state != 'X';
}

std::string testbed_name(const Owner& owner, int number) {
  return fmt::format("{}{}-{}-{}", kPrefix, owner.pid, owner.started, number);
}

std::optional<Owner> owner_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  Owner owner;
  if (!take_number(name, owner.pid) || !take_number(name, owner.started) || name.empty()) return std::nullopt;
  return owner;
}

std::string host_name(const std::string& testbed, int host) {
  return fmt::format("{}-host{}", testbed, host);
}

std::string switch_name(const std::string& testbed) {
  return testbed + "-switch";
}

std::string namespace_path(const std::string& name) {
  return fmt::format("{}/{}", kNamesFolder, name);
}

}  // namespace simsync::testbed
