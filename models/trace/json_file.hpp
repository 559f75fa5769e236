// JSON files of profilers, which may be large and compressed with gzip.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

namespace simsync::detail {

inline constexpr std::int64_t kLargestText = 16LL << 20;    ///< bytes of one string
inline constexpr std::int64_t kLargestObject = 64LL << 20;  ///< bytes of one item of a list of the outermost object
inline constexpr std::int64_t kLargestFile = 512LL << 20;   ///< bytes of a file that is held as a whole
inline constexpr int kDeepest = 256;                        ///< arrays and objects inside one another

/// How a list is read.
struct ListReading {
  std::set<std::string> kept;                 ///< keys of the outermost object that are returned
  std::function<void(double)> progress = {};  ///< is told the share of the file that is read
};

/// Hands the objects of the array `list` of the file's outermost object to `take` (or those of the file's outermost
/// array, if it is one) one after another and keeps none: memory does not grow with the list. Returns of the object
/// what the keys `reading.kept` have. Plain or gzip. @throws InputError when the file cannot be read, is not JSON, or
/// has a text or an object that is too large to be held (kLargestText, kLargestObject, kDeepest).
nlohmann::json each_of(const std::string& path, const std::string& list, const ListReading& reading,
                       const std::function<void(const nlohmann::json&)>& take);

/// The whole file, except the values of the keys `left_out` wherever they are. @throws InputError as above, and beyond
/// kLargestFile bytes after decompression.
nlohmann::json load_json(const std::string& path, const std::set<std::string>& left_out);

/// A number that may be written as text, as the JSON form of Protocol Buffers writes 64-bit integers; `fallback` for
/// everything else.
double number_of(const nlohmann::json& object, const char* key, double fallback);
/// The same as a whole number; `fallback` for one beyond 2^53 too.
std::int64_t whole_of(const nlohmann::json& object, const char* key, std::int64_t fallback);
/// A text, or an empty one.
std::string text_of(const nlohmann::json& object, const char* key);

}  // namespace simsync::detail
