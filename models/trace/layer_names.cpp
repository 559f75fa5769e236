#include "models/trace/layer_names.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace simsync::detail {
namespace {

constexpr std::size_t kLongest = 90;  // room for a number behind it

/// Up to the last '/', without it.
std::string folder_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? std::string{} : name.substr(0, slash);
}

std::string shared_folder(const std::vector<std::string>& variables) {
  const std::string folder = folder_of(variables.front());
  const bool shared = std::all_of(variables.begin(), variables.end(),
                                  [&](const std::string& name) { return folder_of(name) == folder; });
  return shared ? folder : std::string{};
}

std::string cleaned(const std::string& name) {
  std::string out;
  for (const char c : name.substr(0, kLongest)) {
    const bool fits =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
    out += fits ? c : c == '/' ? '.' : '_';
  }
  return out.empty() ? "layer" : out;
}

}  // namespace

std::string LayerNames::unique(const std::string& wanted) {
  std::string name = cleaned(wanted);
  for (int number = 2; !taken_.insert(name).second; ++number) name = fmt::format("{}.{}", cleaned(wanted), number);
  return name;
}

std::string LayerNames::of(const std::vector<std::string>& variables) {
  const std::string folder = shared_folder(variables);
  const bool free = !folder.empty() && !taken_.contains(cleaned(folder));
  return unique(free ? folder : variables.front());
}

std::string name_within(const std::string& variable, const std::vector<std::string>& variables) {
  const std::string folder = shared_folder(variables);
  std::string name = folder.empty() ? variable : variable.substr(folder.size() + 1);
  return name.empty() ? "value" : name.substr(0, kLongest);
}

}  // namespace simsync::detail
