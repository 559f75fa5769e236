#include "platforms/device_name.hpp"

#include <cctype>

namespace simsync {
namespace {

/// Lower case, letters and digits alone.
std::string squeezed(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// `v100` of V100-SXM2-16GB, `rtx2080ti` of RTX-2080Ti.
std::string chip_of(const std::string& device_class) {
  const std::size_t end = device_class.find('-');
  const bool numbered = device_class.substr(0, end).find_first_of("0123456789") != std::string::npos;
  if (numbered || end == std::string::npos) return squeezed(device_class.substr(0, end));
  return squeezed(device_class.substr(0, device_class.find('-', end + 1)));
}

}  // namespace

bool names_chip(const std::string& driver_name, const std::string& device_class) {
  return squeezed(driver_name).find(chip_of(device_class)) != std::string::npos;
}

}  // namespace simsync
