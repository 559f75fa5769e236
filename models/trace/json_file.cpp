#include "models/trace/json_file.hpp"

#include <fmt/format.h>

#include <cmath>
#include <istream>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/gzip_buffer.hpp"
#include "base/parse_units.hpp"

namespace simsync::detail {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostKept = 1'000'000;
constexpr double kLargestWhole = 9007199254740992.0;

/// How much of a file may be held at a time, in bytes of its text.
struct Limits {
  std::int64_t file = std::numeric_limits<std::int64_t>::max();
  std::int64_t item = std::numeric_limits<std::int64_t>::max();  ///< of the outermost array, or of a list in the object
};

/// Refuses JSON whose parts would have to be held in memory and are too large for it. Looks at every byte once.
class SizeGuard {
public:
  SizeGuard(std::string path, Limits most) : path_(std::move(path)), most_(most) {}

  void look_at(const char* begin, const char* end) {
    total_ += end - begin;
    if (total_ > most_.file) refuse(fmt::format("more than {} MiB", most_.file >> 20), "write less of each step");
    for (const char* at = begin; at != end; ++at) take(*at);
  }

private:
  void take(char c) {
    if (depth_ > list_depth_ && ++item_ > most_.item)
      refuse(fmt::format("an object of more than {} MiB", most_.item >> 20));
    if (in_text_) {
      if (++text_ > kLargestText) refuse(fmt::format("a text of more than {} MiB", kLargestText >> 20));
      in_text_ = escaped_ || c != '"';
      escaped_ = !escaped_ && c == '\\';
      return;
    }
    if (c == '"') {
      in_text_ = true;
      text_ = 0;
    } else if (c == '{' || c == '[') {
      if (++depth_ > kDeepest) refuse(fmt::format("more than {} objects and arrays inside one another", kDeepest));
      if (depth_ == 1) list_depth_ = c == '[' ? 1 : 2;
      if (depth_ <= list_depth_ + 1) item_ = 0;
    } else if (c == '}' || c == ']') {
      --depth_;
    }
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& help = "this is no trace of a profiler") const {
    throw InputError(fmt::format("{} has {}", path_, what), help);
  }

  std::string path_;
  Limits most_;
  std::int64_t total_ = 0;
  std::int64_t text_ = 0;
  std::int64_t item_ = 0;
  int depth_ = 0;
  int list_depth_ = 2;
  bool in_text_ = false;
  bool escaped_ = false;
};

/// A file whose parts are guarded while they are read.
class GuardedBuffer : public GzipBuffer {
public:
  GuardedBuffer(const std::string& path, Limits most, std::function<void(double)> progress)
      : GzipBuffer(path), guard_(path, most), progress_(std::move(progress)) {}

protected:
  int_type underflow() override {
    const int_type next = GzipBuffer::underflow();
    if (next != traits_type::eof()) guard_.look_at(gptr(), egptr());
    if (progress_) progress_(share_read());
    return next;
  }

private:
  SizeGuard guard_;
  std::function<void(double)> progress_;
};

/// What stands at a byte of a file, counted from 1, and where that is.
Diagnostic not_json(const std::string& path, std::size_t byte) {
  GzipBuffer buffer(path);
  std::istream stream(&buffer);
  Diagnostic found;
  found.origin = {path, 1, 1};
  char c = 0;
  for (std::size_t at = 1; stream.get(c) && at < byte; ++at) {
    found.origin.line += c == '\n' ? 1 : 0;
    found.origin.column = c == '\n' ? 1 : found.origin.column + 1;
  }
  const auto code = static_cast<unsigned char>(c);
  constexpr unsigned char kLastAscii = 0x7E;
  if (stream.eof()) {
    found.message = "expected JSON, and the file ends in the middle of it";
    found.help = "was it cut off?";
  } else {
    found.message = code > ' ' && code <= kLastAscii ? fmt::format("expected JSON, got '{}'", c)
                                                     : fmt::format("expected JSON, got the byte 0x{:02X}", code);
    found.help = "a trace is what a profiler wrote: a JSON object or list, plain or compressed with gzip";
  }
  return found;
}

json parse(const std::string& path, Limits most, const json::parser_callback_t& filter,
           const std::function<void(double)>& progress = {}) {
  GuardedBuffer buffer(path, most, progress);
  std::istream stream(&buffer);
  stream.exceptions(std::ios::badbit);  // what the buffer throws passes
  try {
    return json::parse(stream, filter);
  } catch (const json::parse_error& error) {
    throw InputError(not_json(path, error.byte));
  } catch (const json::out_of_range&) {
    throw InputError(fmt::format("{} has a number that is too large", path), "this is no trace of a profiler");
  }
}

}  // namespace

json each_of(const std::string& path, const std::string& list, const ListReading& reading,
             const std::function<void(const json&)>& take) {
  bool inside = false;  // the value of `list`, or an array that is the whole file
  bool array = false;
  bool keeping = false;  // the value of a key in `kept`
  std::int64_t others = 0;
  const auto filter = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth == 0 && event == json::parse_event_t::array_start) array = true;
    if (depth == 1 && event == json::parse_event_t::key) {
      inside = parsed == list;
      keeping = reading.kept.contains(parsed.get_ref<const std::string&>());
      return inside || keeping;
    }
    const int level = array ? 1 : 2;
    if (!(inside || array) && keeping && ++others > kMostKept)
      throw InputError(fmt::format("{} has more than {} values beside '{}'", path, kMostKept, list),
                       "this is no trace of a profiler");
    if (depth != level || !(inside || array)) return true;
    if (event == json::parse_event_t::object_end) take(parsed);
    return event == json::parse_event_t::object_start;
  };
  return parse(path, {.item = kLargestObject}, filter, reading.progress);
}

json load_json(const std::string& path, const std::set<std::string>& left_out) {
  return parse(path, {.file = kLargestFile}, [&](int, json::parse_event_t event, json& parsed) {
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
