#include "strategies/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "base/parse_units.hpp"

namespace simsync {

Options::Options(std::string owner, const std::vector<OptionInfo>& known,
                 const std::map<std::string, std::string>& given)
    : owner_(std::move(owner)) {
  std::vector<std::string> names;
  for (const auto& option : known) {
    names.push_back(option.name);
    values_[option.name] = option.fallback;
  }
  std::sort(names.begin(), names.end());
  for (const auto& [name, value] : given) {
    const auto found = values_.find(name);
    if (found == values_.end()) {
      std::string help = did_you_mean(name, names);
      if (help.empty()) help = fmt::format("known options: {}", fmt::join(names, ", "));
      throw InputError(fmt::format("{} has no option '{}'", owner_, name), help);
    }
    found->second = value;
  }
}

const std::string& Options::text(const std::string& name) const {
  const auto found = values_.find(name);
  SIMSYNC_ASSERT(found != values_.end());
  return found->second;
}

void Options::fail(const std::string& name, const std::string& message, const std::string& help) const {
  throw InputError(fmt::format("option '{}' of {}: {}", name, owner_, message), help);
}

void Options::fail_choice(const std::string& name, const std::string& value,
                          const std::vector<std::string>& names) const {
  fail(name, fmt::format("'{}' is not one of {}", value, fmt::join(names, ", ")), did_you_mean(value, names));
}

std::vector<std::string> Options::items(const std::string& name) const {
  std::vector<std::string> out;
  const std::string& all = text(name);
  for (std::size_t at = 0; at <= all.size();) {
    const std::size_t end = std::min(all.find(',', at), all.size());
    out.push_back(all.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool Options::boolean(const std::string& name) const {
  const std::string& value = text(name);
  if (value != "true" && value != "false") fail(name, fmt::format("expected true or false, got '{}'", value));
  return value == "true";
}

std::int64_t Options::integer(const std::string& name, std::int64_t low, std::int64_t high) const {
  const auto value = parse_integer(text(name));
  if (!value) fail(name, fmt::format("expected a whole number, got '{}'", text(name)));
  if (*value >= low && *value <= high) return *value;
  const bool open = high == std::numeric_limits<std::int64_t>::max();
  const std::string expected = open ? fmt::format("at least {}", low) : fmt::format("from {} to {}", low, high);
  fail(name, fmt::format("{} is out of range: expected {}", *value, expected));
}

Bytes Options::size_of_text(const std::string& name, const std::string& text, std::int64_t low) const {
  const auto value = parse_bytes(text);
  if (!value) fail(name, fmt::format("expected a size with its unit, such as 25MiB or 512B, got '{}'", text));
  if (value->count < low) fail(name, fmt::format("{} is out of range: expected at least {}B", text, low));
  return *value;
}

Seconds Options::time_of_text(const std::string& name, const std::string& text) const {
  const auto value = parse_seconds(text);
  if (!value) fail(name, fmt::format("expected a time with its unit, such as 10us or 1.5ms, got '{}'", text));
  if (value->value() < 0.0) fail(name, fmt::format("{} is out of range: expected at least 0", text));
  return *value;
}

Bytes Options::bytes(const std::string& name, std::int64_t low) const {
  return size_of_text(name, text(name), low);
}

Seconds Options::seconds(const std::string& name) const {
  return time_of_text(name, text(name));
}

std::vector<Bytes> Options::sizes(const std::string& name, std::int64_t low) const {
  std::vector<Bytes> out;
  for (const std::string& item : items(name)) out.push_back(size_of_text(name, item, low));
  return out;
}

std::vector<Seconds> Options::times(const std::string& name) const {
  std::vector<Seconds> out;
  for (const std::string& item : items(name)) out.push_back(time_of_text(name, item));
  return out;
}

BytesPerSecond Options::bandwidth(const std::string& name) const {
  const auto value = parse_bandwidth(text(name));
  if (!value) fail(name, fmt::format("expected a rate with its unit, such as 2GB/s or 10Gbps, got '{}'", text(name)));
  if (value->value() <= 0.0) fail(name, fmt::format("{} is out of range: expected more than 0", text(name)));
  return *value;
}

double Options::number(const std::string& name, double low, double high) const {
  const auto value = parse_number(text(name));
  if (!value) fail(name, fmt::format("expected a number, got '{}'", text(name)));
  if (*value < low || *value > high)
    fail(name, fmt::format("{} is out of range: expected from {} to {}", text(name), low, high));
  return *value;
}

}  // namespace simsync
