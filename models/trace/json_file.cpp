#include "models/trace/json_file.hpp"

#include <fmt/format.h>

#include <cmath>
#include <istream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/gzip_buffer.hpp"
#include "base/parse_units.hpp"

namespace simsync::detail {
namespace {

using nlohmann::json;

constexpr double kLargestWhole = 9007199254740992.0;

json parse(const std::string& path, const json::parser_callback_t& filter) {
  GzipBuffer buffer(path);
  std::istream stream(&buffer);
  stream.exceptions(std::ios::badbit);  // what the buffer throws passes
  try {
    return json::parse(stream, filter);
  } catch (const json::parse_error& error) {
    throw InputError(fmt::format("{} is not JSON: {}", path, error.what()));
  }
}

}  // namespace

json each_of(const std::string& path, const std::string& list, const std::function<void(const json&)>& take) {
  bool inside = false;  // the value of `list`, or an array that is the whole file
  bool array = false;
  return parse(path, [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth == 0 && event == json::parse_event_t::array_start) array = true;
    if (depth == 1 && event == json::parse_event_t::key) inside = parsed == list;
    const int level = array ? 1 : 2;
    if (event != json::parse_event_t::object_end || depth != level || !(inside || array)) return true;
    take(parsed);
    return false;
  });
}

json load_json(const std::string& path, const std::set<std::string>& left_out) {
  return parse(path, [&](int, json::parse_event_t event, json& parsed) {
    return event != json::parse_event_t::key || !left_out.contains(parsed.get_ref<const std::string&>());
  });
}

double number_of(const json& object, const char* key, double fallback) {
  const auto found = object.find(key);
  if (found == object.end()) return fallback;
  if (found->is_number()) return found->get<double>();
  if (found->is_string()) return parse_number(found->get_ref<const std::string&>()).value_or(fallback);
  return fallback;
}

std::int64_t whole_of(const json& object, const char* key, std::int64_t fallback) {
  const double value = number_of(object, key, static_cast<double>(fallback));
  return std::abs(value) <= kLargestWhole ? static_cast<std::int64_t>(value) : fallback;
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

}  // namespace simsync::detail
