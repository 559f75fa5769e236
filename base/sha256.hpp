// Content hashes that `sha256sum` prints too.
#pragma once
#include <string>
#include <string_view>

namespace simsync {

/// SHA-256 (FIPS 180-4) of `text` as 64 hexadecimal digits.
std::string sha256(std::string_view text);

}  // namespace simsync
